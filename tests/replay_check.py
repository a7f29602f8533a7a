#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays the decisions of `rudderfish evaluate -o json` by an independent implementation of REACH's rules.

    replay_check.py EVALUATION.json STARTS.jsonl CONFIG_DIR [PATTERN_DIR]

CONFIG_DIR holds REACH's nodes.json and services.json, PATTERN_DIR (by default the folder around
CONFIG_DIR) its *_call_patterns.json. Nothing is shared with the program under test: this reads the
published formats and follows the published simulator (REACH, arXiv 2510.06675, with directional
latencies between layers), in Python's floating point.

Checked for every episode: the latency at the start, the number of allowed actions there, that every
move is allowed when it is made, what it was predicted to gain, and the latency at the end.
Exits with 0 if all agree, 1 if not, 2 if a file is missing.
"""

import json
import os
import sys

LATENCY_TOLERANCE_MS = 1e-6
# Free resources this near to a request may be judged either way: REACH adds them up in floats.
ROOM_TOLERANCE = 1e-9
SAME_LAYER_MS = 1.0
MOST_DIFFERENCES_SHOWN = 20


def cpu_cores(text):
    return int(text[:-1]) / 1000 if text.endswith("m") else float(int(text))


def memory_g(text):
    if text.endswith("M"):
        return float(text[:-1]) / 1024
    if text.endswith("G"):
        return float(text[:-1])
    raise ValueError(f"memory {text!r}: REACH reads this as 0")


def time_ms(text):
    if text.endswith("ms"):
        return float(text[:-2])
    if text.endswith("s"):
        return 1000 * float(text[:-1])
    raise ValueError(f"time {text!r}")


def bandwidth_mb_per_s(text):
    return int(text[:-1]) / 8


class World:
    """What is the same for all starts: node types, services and call patterns."""

    def __init__(self, config_dir, pattern_dir):
        with open(os.path.join(config_dir, "nodes.json")) as file:
            self.node_types = json.load(file)["node_type"]
        with open(os.path.join(config_dir, "services.json")) as file:
            self.services = json.load(file)
        self.pattern_dir = pattern_dir
        self.patterns = {}

    def pattern(self, name):
        if name not in self.patterns:
            path = os.path.join(self.pattern_dir, f"{name}_call_patterns.json")
            with open(path) as file:
                self.patterns[name] = json.load(file)
        return self.patterns[name]


class Replay:
    """One start state, and what moves make of it."""

    def __init__(self, world, line):
        self.world = world
        self.layer_latency = line["latency_between_layer"]
        self.endpoints = world.pattern(line["pattern"])
        self.nodes = {}
        for node in line["nodes"]:
            kind = world.node_types[node["name"].rpartition("-")[0]]
            self.nodes[node["name"]] = {
                "layer": node["layer"],
                "cpu_type": str(kind["cpu_type"]),
                "bandwidth": bandwidth_mb_per_s(kind["bandwidth"]),
                "background": node.get("background_mbytes_per_s", 0.0),
                "cpu": node["cpu_free"],
                "memory": node["mem_free"],
            }
        self.node_of = {pod["name"]: pod["node"] for pod in line["pods"]}
        self.service_of = {pod["name"]: pod["service"] for pod in line["pods"]}
        self.pods_of = {}
        for pod, service in self.service_of.items():
            self.pods_of.setdefault(service, []).append(pod)

    def requests(self, pod):
        service = self.world.services[self.service_of[pod]]
        return cpu_cores(service["cpu-requests"]), memory_g(service["memory-requests"])

    def may_move(self, pod, target, slack):
        """`slack` is added to what is free."""
        service = self.world.services[self.service_of[pod]]
        node = self.nodes[target]
        cpu, memory = self.requests(pod)
        return (
            self.node_of[pod] != target
            and service["type"] != "persistent"
            and service.get("layer") != "client"
            and node["layer"] != "client"
            and node["cpu"] + slack >= cpu
            and node["memory"] + slack >= memory
        )

    def allowed_actions(self, slack):
        pairs = ((pod, node) for pod in self.node_of for node in self.nodes)
        return 1 + sum(self.may_move(pod, node, slack) for pod, node in pairs)

    def move(self, pod, target):
        cpu, memory = self.requests(pod)
        source = self.nodes[self.node_of[pod]]
        source["cpu"] += cpu
        source["memory"] += memory
        self.nodes[target]["cpu"] -= cpu
        self.nodes[target]["memory"] -= memory
        self.node_of[pod] = target

    def calls(self):
        """(caller, callee, payload in G, requests a second) of every call of every endpoint."""

        def below(caller, groups, rate):
            for group in groups:
                for callee, call in group.items():
                    yield caller, callee, memory_g(call.get("data-size", "0M")), rate
                    yield from below(callee, call.get("call-path", []), rate)

        for endpoint in self.endpoints.values():
            yield from below(endpoint["client"], endpoint["call-path"], endpoint["rps"])

    def bandwidth_shares(self):
        """MB/s that each pod has for itself."""
        traffic = dict.fromkeys(self.node_of, 0.0)
        for caller, callee, payload, rate in self.calls():
            callers, callees = self.pods_of[caller], self.pods_of[callee]
            pair = rate * payload / (len(callers) * len(callees))
            for a in callers:
                for b in callees:
                    if self.node_of[a] != self.node_of[b]:
                        traffic[a] += pair
                        traffic[b] += pair
        usage = {name: node["background"] for name, node in self.nodes.items()}
        for pod, node in self.node_of.items():
            usage[node] += traffic[pod]
        shares = {}
        for pod, node in self.node_of.items():
            bandwidth = self.nodes[node]["bandwidth"]
            others = usage[node] - traffic[pod]
            shares[pod] = bandwidth - others if others / bandwidth < 0.9 else bandwidth / 10
        return shares

    def hop_ms(self, a, b):
        source = self.nodes[self.node_of[a]]["layer"]
        target = self.nodes[self.node_of[b]]["layer"]
        return SAME_LAYER_MS if source == target else self.layer_latency[source][target]

    def latency_ms(self):
        shares = self.bandwidth_shares()

        def network(caller, callee, payload):
            pairs = [(a, b) for a in self.pods_of[caller] for b in self.pods_of[callee]]
            times = (payload / min(shares[a], shares[b]) + self.hop_ms(a, b) for a, b in pairs)
            return sum(times) / len(pairs)

        def groups_ms(caller, groups):
            longest = 0.0
            for group in groups:
                total = 0.0
                for callee, call in group.items():
                    payload = memory_g(call.get("data-size", "0M"))
                    total += network(caller, callee, payload) + call_ms(callee, call)
                longest = max(longest, total)
            return longest

        def call_ms(service, call):
            pods = self.pods_of[service]
            times = call["execution-time"]
            execution = sum(
                time_ms(times[self.nodes[self.node_of[pod]]["cpu_type"]]) for pod in pods
            )
            return execution / len(pods) + groups_ms(service, call.get("call-path", []))

        total = sum(groups_ms(e["client"], e["call-path"]) for e in self.endpoints.values())
        return total / len(self.endpoints)


def replay_episode(world, line, episode):
    """Yields what does not agree."""
    replay = Replay(world, line)
    latency = replay.latency_ms()
    if abs(latency - episode["initial"]) > LATENCY_TOLERANCE_MS:
        yield f"starts at {latency!r} ms, not {episode['initial']!r}"
    low, high = replay.allowed_actions(-ROOM_TOLERANCE), replay.allowed_actions(ROOM_TOLERANCE)
    if not low <= episode["allowed_actions"] <= high:
        yield f"has {low} allowed actions at the start, not {episode['allowed_actions']}"
    for number, decision in enumerate(episode["decisions"], start=1):
        pod, target = decision["pod"], decision["to"]
        if decision["kind"] != "migrate" or pod not in replay.node_of or target not in replay.nodes:
            yield f"decision {number} names something that is not there: {decision}"
            return
        if replay.node_of[pod] != decision["from"]:
            yield f"decision {number}: {pod} is on {replay.node_of[pod]}, not {decision['from']}"
        if not replay.may_move(pod, target, ROOM_TOLERANCE):
            yield f"decision {number} is not allowed: {pod} to {target}"
        replay.move(pod, target)
        before, latency = latency, replay.latency_ms()
        if abs(before - latency - decision["predicted"]) > LATENCY_TOLERANCE_MS:
            yield f"decision {number} gains {before - latency!r} ms, not {decision['predicted']!r}"
    if abs(latency - episode["final"]) > LATENCY_TOLERANCE_MS:
        yield f"ends at {latency!r} ms, not {episode['final']!r}"


def main(arguments):
    if len(arguments) not in (3, 4):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    config_dir = arguments[2]
    pattern_dir = arguments[3] if len(arguments) == 4 else os.path.join(config_dir, "..")
    try:
        with open(arguments[0]) as file:
            evaluation = json.load(file)
        with open(arguments[1]) as file:
            starts = [json.loads(line) if line.strip() else None for line in file]
        world = World(config_dir, pattern_dir)
    except OSError as error:
        print(f"replay_check: {error}", file=sys.stderr)
        return 2
    episodes = decisions = differences = 0
    for policy in evaluation["policies"]:
        for episode in policy["episodes"]:
            episodes += 1
            decisions += len(episode["decisions"])
            for difference in replay_episode(world, starts[episode["start"]], episode):
                differences += 1
                if differences <= MOST_DIFFERENCES_SHOWN:
                    print(f"{policy['name']}, start {episode['start']}: {difference}")
    if episodes == 0:
        print("replay_check: no episodes to replay")
        return 1
    print(f"{episodes} episodes, {decisions} decisions replayed: {differences} differences")
    return 0 if differences == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
