#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a test needs of a Jaeger: takes OTLP/JSON at /v1/traces, and answers /api/services and /api/traces as its query service does.

  trace_server.py ADDRESS PORT
"""
import http.server
import json
import sys
import threading
import urllib.parse

KINDS = {1: "internal", 2: "server", 3: "client", 4: "producer", 5: "consumer"}
TRACES, LOCK = {}, threading.Lock()


def take(body):
    for part in json.loads(body).get("resourceSpans", []):
        tags = {one["key"]: one["value"]["stringValue"] for one in part["resource"]["attributes"] if "stringValue" in one["value"]}
        process = tags.get("k8s.pod.name", tags["service.name"])
        for span in (span for scope in part["scopeSpans"] for span in scope["spans"]):
            start, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
            trace = TRACES.setdefault(span["traceId"], {"traceID": span["traceId"], "spans": [], "processes": {}})
            trace["processes"][process] = {"serviceName": tags["service.name"],
                                           "tags": [{"key": key, "type": "string", "value": value} for key, value in tags.items()]}
            parent = span.get("parentSpanId")
            references = [{"refType": "CHILD_OF", "traceID": span["traceId"], "spanID": parent}] if parent else []
            trace["spans"].append({"traceID": span["traceId"], "spanID": span["spanId"], "operationName": span["name"],
                                   "references": references, "startTime": start // 1000, "duration": (end - start) // 1000,
                                   "processID": process, "logs": [], "warnings": None,
                                   "tags": [{"key": "span.kind", "type": "string", "value": KINDS.get(span.get("kind"), "internal")}]})


def services_of(trace):
    return {process["serviceName"] for process in trace["processes"].values()}


def traces_of(query):
    found = [trace for trace in TRACES.values() if query["service"] in services_of(trace)
             and int(query["start"]) <= min(span["startTime"] for span in trace["spans"]) <= int(query["end"])]
    return sorted(found, key=lambda trace: -trace["spans"][0]["startTime"])[:int(query["limit"])]


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, json_value):
        body = json.dumps(json_value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with LOCK:
            take(body)
        self.answer({})

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        with LOCK:
            if url.path == "/api/services":
                data = sorted(set().union(*map(services_of, TRACES.values()))) if TRACES else []
            else:
                data = traces_of(dict(urllib.parse.parse_qsl(url.query)))
        self.answer({"data": data, "errors": None})

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
