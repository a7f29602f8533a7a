#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""REACH's rules (arXiv 2510.06675), written down a second time and without our program: recomputes latency_ms and
allowed_actions of every start state in a folder and compares. With --write it fills them in.

  reach_check.py [--write] [FOLDER]     FOLDER holds start_states.jsonl and REACH's configuration; default: our own
"""

import json
import pathlib
import sys

OURS = pathlib.Path(__file__).resolve().parent / "data" / "reach-like"


def gib(text):
    return float(text[:-1]) / (1024 if text.endswith("M") else 1)


def milliseconds(text):
    return float(text[:-2]) if text.endswith("ms") else float(text[:-1]) * 1000


def cores(text):
    return int(text[:-1]) / 1000 if text.endswith("m") else int(text)


class Config:
    def __init__(self, folder, config, pattern):
        nodes = json.loads((folder / config / "nodes.json").read_text(encoding="utf-8"))
        self.services = json.loads((folder / config / "services.json").read_text(encoding="utf-8"))
        self.endpoints = json.loads((folder / f"{pattern}_call_patterns.json").read_text(encoding="utf-8"))
        self.type_of = {}
        for types in nodes["cluster_setup"].values():
            for name, group in types.items():
                for i in range(group["count"]):
                    self.type_of[f"{name}-{i + 1}"] = nodes["node_type"][name]

    def bandwidth(self, node):
        return int(self.type_of[node]["bandwidth"][:-1]) / 8


class Start:
    """One line of the file, and what REACH would say of it."""

    def __init__(self, config, line):
        self.config, self.line = config, line
        self.layer = {node["name"]: node["layer"] for node in line["nodes"]}
        self.pods = {}
        for pod in line["pods"]:
            self.pods.setdefault(pod["service"], []).append(pod["node"])
        self.traffic = {service: [0.0] * len(nodes) for service, nodes in self.pods.items()}
        for endpoint in config.endpoints.values():
            self.add_traffic(endpoint["client"], endpoint["call-path"], endpoint["rps"])
        self.usage = {node: 0.0 for node in self.layer}
        for service, nodes in self.pods.items():
            for node, traffic in zip(nodes, self.traffic[service]):
                self.usage[node] += traffic

    def add_traffic(self, caller, path, rps):
        for group in path:
            for callee, call in group.items():
                pairs = len(self.pods[caller]) * len(self.pods[callee])
                share = rps * gib(call.get("data-size", "0M")) / pairs
                for a, from_node in enumerate(self.pods[caller]):
                    for b, to_node in enumerate(self.pods[callee]):
                        if from_node != to_node:
                            self.traffic[caller][a] += share
                            self.traffic[callee][b] += share
                self.add_traffic(callee, call.get("call-path", []), rps)

    def pod_bandwidth(self, service, replica):
        node = self.pods[service][replica]
        bandwidth, others = self.config.bandwidth(node), self.usage[node] - self.traffic[service][replica]
        return bandwidth - others if others / bandwidth < 0.9 else bandwidth / 10

    def hop(self, a, b):
        a, b = self.layer[a], self.layer[b]
        return 1.0 if a == b else self.line["latency_between_layer"][a][b]

    def net(self, caller, callee, data):
        total = 0.0
        for a, from_node in enumerate(self.pods[caller]):
            for b, to_node in enumerate(self.pods[callee]):
                bandwidth = min(self.pod_bandwidth(caller, a), self.pod_bandwidth(callee, b))
                total += data / bandwidth + self.hop(from_node, to_node)
        return total / (len(self.pods[caller]) * len(self.pods[callee]))

    def execution(self, service, times):
        nodes = self.pods[service]
        return sum(milliseconds(times[str(self.config.type_of[node]["cpu_type"])]) for node in nodes) / len(nodes)

    def path_ms(self, caller, path):
        slowest = 0.0
        for group in path:
            total = 0.0
            for callee, call in group.items():
                total += self.net(caller, callee, gib(call.get("data-size", "0M")))
                total += self.execution(callee, call["execution-time"])
                total += self.path_ms(callee, call.get("call-path", []))
            slowest = max(slowest, total)
        return slowest

    def latency_ms(self):
        endpoints = self.config.endpoints.values()
        return sum(self.path_ms(e["client"], e["call-path"]) for e in endpoints) / len(endpoints)

    def allowed_actions(self):
        allowed = 1  # Stop.
        for pod in self.line["pods"]:
            service = self.config.services[pod["service"]]
            if service["type"] == "persistent" or service.get("layer", "all") == "client":
                continue
            for node in self.line["nodes"]:
                allowed += (node["name"] != pod["node"] and node["layer"] != "client" and
                            node["cpu_free"] >= cores(service["cpu-requests"]) and
                            node["mem_free"] >= gib(service["memory-requests"]))
        return allowed


def main():
    arguments = [a for a in sys.argv[1:] if a != "--write"]
    folder = pathlib.Path(arguments[0]) if arguments else OURS
    states, wrong = folder / "start_states.jsonl", 0
    lines = [json.loads(line) for line in states.read_text(encoding="utf-8").splitlines()]
    for number, line in enumerate(lines, 1):
        start = Start(Config(folder, line["config"], line["pattern"]), line)
        latency_ms, allowed = start.latency_ms(), start.allowed_actions()
        if "--write" in sys.argv:
            line["latency_ms"], line["allowed_actions"] = latency_ms, allowed
        elif abs(line["latency_ms"] - latency_ms) > 1e-9 or line["allowed_actions"] != allowed:
            wrong += 1
            print(f"{states}:{number}: latency_ms {line['latency_ms']} should be {latency_ms}, "
                  f"allowed_actions {line['allowed_actions']} should be {allowed}")
    if "--write" in sys.argv:
        states.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    print(f"{states}: {len(lines)} start states, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
