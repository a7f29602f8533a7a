# SPDX-License-Identifier: Apache-2.0
"""What Nova asks of Glance and Neutron, though its fake driver needs neither: one image, and no ports. Nothing else."""
import http.server
import json
import sys

IMAGE = {"id": "11111111-1111-4111-8111-111111111111", "name": "empty", "status": "active", "visibility": "public",
         "container_format": "bare", "disk_format": "raw", "min_disk": 0, "min_ram": 0, "size": 1, "checksum": "0" * 32,
         "protected": False, "owner": "service", "tags": [], "created_at": "2026-01-01T00:00:00Z",
         "updated_at": "2026-01-01T00:00:00Z", "schema": "/v2/schemas/image"}


def answer(path):
    path = path.split("?")[0].rstrip("/")
    if path.endswith("/v2/schemas/image"):
        kinds = {bool: "boolean", int: "integer", str: "string", list: "array"}
        return {"name": "image", "properties": {name: {"type": kinds[type(value)]} for name, value in IMAGE.items()},
                "additionalProperties": {"type": "string"}}
    if path.endswith("/v2/images"):
        return {"images": [IMAGE], "schema": "/v2/schemas/images", "first": "/v2/images"}
    if path.endswith("/v2/images/" + IMAGE["id"]):
        return IMAGE
    if "/v2.0/" in path:
        return {path.rsplit("/", 1)[1].replace("-", "_"): []}
    if path == "":
        return {"versions": [{"id": "v2.9", "status": "CURRENT", "links": [{"rel": "self", "href": "/v2/"}]}]}
    return None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        found = answer(self.path)
        body = json.dumps(found if found is not None else {"error": "not found"}).encode()
        self.send_response(200 if found is not None else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
