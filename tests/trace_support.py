# SPDX-License-Identifier: Apache-2.0
"""Traces of requests as applications would report them: of a tree of calls, spans in the formats of Jaeger and OpenTelemetry."""
import json
import random

START_NS = 1_790_000_000_000_000_000


class Recorder:
    """Spans of requests that come one after another.

    A call is (service, {node: ms}, [group of calls, ...], options); groups run in parallel, the calls of one after another.
    `pods` says where each service runs, [(pod, node)]; `clocks` by how many ns the clock of a node is fast.
    """

    def __init__(self, pods, network_ns, clocks=None, seed=1):
        self.pods, self.network_ns, self.clocks = pods, network_ns, clocks or {}
        self.random = random.Random(seed)
        self.spans = []

    def request(self, operation, call, at_ns, bytes_=None):
        trace = f"{self.random.getrandbits(128):032x}"
        self.serve(trace, "", operation, call, at_ns, bytes_)

    def serve(self, trace, parent, operation, call, at_ns, bytes_):
        """Returns when the answer leaves."""
        service, times, groups = call[:3]
        pod, node = self.random.choice(self.pods[service])
        span = f"{self.random.getrandbits(64):016x}"
        now = at_ns + round(1e6 * times[node] * self.random.uniform(0.8, 1.2))
        ends = [now]
        for group in groups:
            at = now
            for callee in group:
                size = callee[3] if len(callee) > 3 else None
                client = f"{self.random.getrandbits(64):016x}"
                there = at + round(self.network_ns * self.random.uniform(0.9, 1.1))
                left = self.serve(trace, client, f"/{callee[0]}", callee, there, size)
                back = left + round(self.network_ns * self.random.uniform(0.9, 1.1))
                self.note(trace, client, span, f"call {callee[0]}", 3, service, pod, node, at, back, size)
                at = back + 1000
            ends.append(at)
        self.note(trace, span, parent, operation, 2, service, pod, node, at_ns, max(ends), bytes_)
        return max(ends)

    def note(self, trace, span, parent, name, kind, service, pod, node, start, end, bytes_):
        fast = self.clocks.get(node, 0)
        self.spans.append({"trace": trace, "span": span, "parent": parent, "name": name, "kind": kind, "service": service,
                           "pod": pod, "node": node, "start": start + fast, "end": end + fast, "bytes": bytes_})

    def otlp(self, namespace):
        """One line for each source, as a collector writes them."""
        lines = []
        for source in sorted({(s["service"], s["pod"], s["node"]) for s in self.spans}):
            spans = []
            for s in self.spans:
                if (s["service"], s["pod"], s["node"]) != source:
                    continue
                span = {"traceId": s["trace"], "spanId": s["span"], "name": s["name"], "kind": s["kind"],
                        "startTimeUnixNano": str(s["start"]), "endTimeUnixNano": str(s["end"])}
                if s["parent"]:
                    span["parentSpanId"] = s["parent"]
                if s["bytes"] is not None:
                    span["attributes"] = [{"key": "http.request.body.size", "value": {"intValue": str(s["bytes"])}}]
                spans.append(span)
            names = ("service.name", "k8s.pod.name", "k8s.node.name", "k8s.namespace.name")
            attributes = [{"key": key, "value": {"stringValue": value}} for key, value in zip(names, (*source, namespace))]
            lines.append(json.dumps({"resourceSpans": [{"resource": {"attributes": attributes},
                                                        "scopeSpans": [{"spans": spans}]}]}, separators=(",", ":")))
        return "\n".join(lines) + "\n"

    def jaeger(self, namespace):
        """What the query API answers."""
        kinds = {2: "server", 3: "client"}
        traces = {}
        for s in self.spans:
            trace = traces.setdefault(s["trace"], {"traceID": s["trace"], "spans": [], "processes": {}})
            process = f"p-{s['pod']}"
            tags = [("k8s.pod.name", s["pod"]), ("k8s.node.name", s["node"]), ("k8s.namespace.name", namespace)]
            trace["processes"][process] = {"serviceName": s["service"],
                                           "tags": [{"key": k, "type": "string", "value": v} for k, v in tags]}
            span = {"traceID": s["trace"], "spanID": s["span"], "operationName": s["name"], "references": [],
                    "startTime": s["start"] // 1000, "duration": (s["end"] - s["start"]) // 1000, "processID": process,
                    "tags": [{"key": "span.kind", "type": "string", "value": kinds[s["kind"]]}], "logs": [], "warnings": None}
            if s["parent"]:
                span["references"] = [{"refType": "CHILD_OF", "traceID": s["trace"], "spanID": s["parent"]}]
            if s["bytes"] is not None:
                span["tags"].append({"key": "http.request_content_length", "type": "int64", "value": s["bytes"]})
            trace["spans"].append(span)
        return json.dumps({"data": list(traces.values()), "total": 0, "limit": 0, "offset": 0, "errors": None})


SHOP_PODS = {"web": [("web-7d4b-bx9k", "cloud-a"), ("web-7d4b-cx9k", "edge-a"), ("web-7d4b-dx9k", "edge-b")],
             "cart": [("cart-7d4b-bx9k", "cloud-b"), ("cart-7d4b-cx9k", "edge-c")], "db": [("db-0", "cloud-a")]}


def by_zone(cloud, edge):
    return {f"cloud-{letter}": cloud for letter in "ab"} | {f"edge-{letter}": edge for letter in "abc"}


def shop(requests=200, clocks=None, seed=1):
    """The shop of tests/data/kube-dump: web, then cart with two calls of db; the same in every request."""
    recorder = Recorder(SHOP_PODS, 2_000_000, clocks, seed)
    db = ("db", by_zone(2, 4), [], 10_000)
    cart = ("cart", by_zone(3, 6), [[db, db]], 20_000)
    web = ("web", by_zone(5, 9), [[cart]])
    for i in range(requests):
        recorder.request("GET /buy", web, START_NS + i * 50_000_000, bytes_=100_000)
    return recorder
