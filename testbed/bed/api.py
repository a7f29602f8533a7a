# SPDX-License-Identifier: Apache-2.0
"""As much of a client of the API server as bringing a cluster up needs."""
import http.client
import json
import ssl


class ApiError(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Api:
    """One kept connection; not to be shared between threads."""

    def __init__(self, port, authority, timeout_s=10):
        context = ssl.create_default_context(cafile=authority.certificate("ca"))
        context.load_cert_chain(authority.certificate("admin"), authority.key("admin"))
        self.connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=timeout_s)

    def request(self, method, path, body=None):
        """The answer as parsed JSON, or text. Raises ApiError for a refusal, OSError for no answer."""
        data = None if body is None else json.dumps(body)
        try:
            self.connection.request(method, path, data, {"Content-Type": "application/json", "User-Agent": "testbed"})
            response = self.connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            raise OSError(str(error)) from None
        kind = response.getheader("Content-Type", "")
        answer = json.loads(content) if kind.startswith("application/json") else content.decode(errors="replace")
        if response.status >= 300:
            raise ApiError(response.status, answer.get("message", "") if isinstance(answer, dict) else answer)
        return answer

    def succeeds(self, path):
        try:
            self.request("GET", path)
            return True
        except (OSError, ApiError):
            return False


def is_ready(node):
    """Ready, and no longer tainted as a newcomer, so that pods may land on it."""
    conditions = {c["type"]: c["status"] for c in node.get("status", {}).get("conditions", [])}
    taints = [t["key"] for t in node.get("spec", {}).get("taints", [])]
    return conditions.get("Ready") == "True" and not any(t.startswith("node.kubernetes.io/") for t in taints)
