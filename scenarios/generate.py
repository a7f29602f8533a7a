#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes continuum-20x150.yaml and the larger ones into this folder. The same bytes every time."""

import math
import pathlib
import random
import sys

DOMAINS = ("account address alert asset audit basket billing booking camera catalog chat claim content coupon customer "
           "delivery device discount document event fleet forecast friend fraud grid health image inventory invoice "
           "label ledger loyalty map media menu meter notice order parcel payment permit photo policy price profile "
           "quote rating record refund region report review rider route sample schedule search sensor session ship "
           "signal stock store stream supply survey ticket token tour track trade traffic trip user vehicle video "
           "voice wallet weather").split()
ROLES = ["api", "worker", "index", "ranker", "filter", "planner", "mixer", "resolver"]  # Of the inner tiers.

HEADER = """# {title}
# Written by scenarios/generate.py: {nodes} nodes, {pods} pods of {workloads} workloads, {endpoints} endpoints.

rudderfish: scenario/v1
name: {name}
seed: 1
model: reach

layers:
  cloud: {{}}
  edge: {{}}
  client: {{accepts_moves: false}}

# One way, from -> to; drawn once an episode.
latency:
  cloud: {{cloud: 0.5ms, edge: 20ms to 200ms, client: 20ms to 200ms}}
  edge: {{cloud: 20ms to 200ms, edge: 1ms to 5ms, client: 1ms to 10ms}}
  client: {{cloud: 20ms to 200ms, edge: 1ms to 10ms, client: 1ms to 10ms}}

# Execution times are given by cpu_type: edge processors are slower than those in the cloud.
node_types:
  cloud-vm-16: {{layer: cloud, cpu_type: "3", bandwidth: 1000Mbit}}
  cloud-vm-8: {{layer: cloud, cpu_type: "0", bandwidth: 500Mbit}}
  edge-vm-4: {{layer: edge, cpu_type: "1", bandwidth: 200Mbit}}
  edge-vm-2: {{layer: edge, cpu_type: "2", bandwidth: 200Mbit}}
  client-vm-2: {{layer: client, cpu_type: "1", bandwidth: 200Mbit}}

# What is allocatable: drawn for each node in each episode, from a range or a list.
nodes:
"""
SLOWNESS = {"0": 1.0, "1": 1.5, "2": 2.0, "3": 0.8}


class Call:
    def __init__(self, workload, megabytes):
        self.workload, self.megabytes, self.callees = workload, megabytes, []


def names(rng, count):
    combinations = [f"{domain}-{role}" for domain in DOMAINS for role in ROLES]
    return rng.sample(combinations, count)


def workloads(rng, count, pods, clients):
    """Clients first, then gateways, inner tiers and databases; replicas add up to `pods`."""
    gateways, databases = clients, max(2, count // 8)
    inner = count - clients - gateways - databases
    made = [dict(name=f"client-{i + 1}", tier=0, replicas=1) for i in range(clients)]
    made += [dict(name=f"gateway-{i + 1}", tier=1) for i in range(gateways)]
    made += [dict(name=name, tier=2 + i * 4 // inner) for i, name in enumerate(names(rng, inner))]
    made += [dict(name=f"{domain}-db", tier=6) for domain in rng.sample(DOMAINS, databases)]
    weights = [0 if w["tier"] == 0 else rng.lognormvariate(0, 0.5) for w in made]
    left = pods - clients - (count - clients)
    shares = [left * weight / sum(weights) for weight in weights]
    for workload, share in zip(made, shares):
        workload.setdefault("replicas", 1 + int(share))
    for i in range(pods - sum(w["replicas"] for w in made)):
        made[clients + i % (count - clients)]["replicas"] += 1
    for workload in made:
        # A thousandth of a core and a mebibyte are not worth a digit.
        workload["cpu"] = min(600, max(50, round(rng.lognormvariate(math.log(170), 0.6), -1)))
        workload["memory"] = min(768, max(64, round(rng.lognormvariate(math.log(220), 0.5) / 16) * 16))
        workload["execution"] = round(min(60, max(0.5, rng.lognormvariate(math.log(6), 0.8))), 1)
    return made


def call_trees(rng, made, endpoints):
    """Every workload is called by at least one endpoint; databases by several."""
    clients = [w for w in made if w["tier"] == 0]
    gateways = [w for w in made if w["tier"] == 1]
    megabytes = lambda: rng.choice([0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5])
    trees = []
    for i in range(endpoints):
        trees.append((clients[i % len(clients)], [Call(gateways[i % len(gateways)], megabytes())]))
    for workload in sorted((w for w in made if w["tier"] > 1), key=lambda w: w["tier"]):
        uses = 1 if workload["tier"] < 6 else min(endpoints, rng.randint(2, 4))
        for _, calls in rng.sample(trees, uses):
            callers = [c for c in calls if c.workload["tier"] < workload["tier"]]
            callers = [c for c in callers if len(c.callees) < 4] or callers
            deepest = max(c.workload["tier"] for c in callers)
            caller = rng.choice([c for c in callers if c.workload["tier"] >= deepest - 1])
            call = Call(workload, megabytes())
            caller.callees.append(call)
            calls.append(call)
    return [(client, calls[0]) for client, calls in trees]


def write_calls(rng, callees, indent, out):
    """Half of the callers wait for one call after another, the others send theirs out at once, some in branches."""
    if len(callees) < 2 or rng.random() < 0.5:
        out.append(f"{indent}calls:")
        for call in callees:
            write_call(rng, call, indent + "  ", out)
        return
    out.append(f"{indent}parallel:")
    rest = list(callees)
    while rest:
        take = 2 if len(rest) > 2 and rng.random() < 0.4 else 1
        branch, rest = rest[:take], rest[take:]
        if take == 1:
            write_call(rng, branch[0], indent + "  ", out)
            continue
        out.append(f"{indent}  - calls:")
        for call in branch:
            write_call(rng, call, indent + "      ", out)


def write_call(rng, call, indent, out):
    if not call.callees:
        out.append(f"{indent}- {call.workload['name']}: {{data: {call.megabytes}MB}}")
        return
    out.append(f"{indent}- {call.workload['name']}:")
    out.append(f"{indent}    data: {call.megabytes}MB")
    write_calls(rng, call.callees, indent + "    ", out)


def scenario(name, title, groups, pods, workload_count, clients, endpoints, seed, limits):
    rng = random.Random(seed)
    made = workloads(rng, workload_count, pods, clients)
    trees = call_trees(rng, made, endpoints)
    nodes = sum(count for _, count, _, _ in groups)
    out = [HEADER.format(title=title, name=name, nodes=nodes, pods=pods, workloads=workload_count,
                         endpoints=endpoints).rstrip()]
    for kind, count, cpu, memory in groups:
        out.append(f"  - {{type: {kind}, count: {count}, cpu: {cpu}, memory: {memory}}}")
    out += ["", "workloads:"]
    for w in made:
        out.append(f"  {w['name']}:")
        out.append(f"    requests: {{cpu: {w['cpu']:.0f}m, memory: {w['memory']}Mi}}")
        out.append(f"    replicas: {w['replicas']}")
        if w["tier"] == 0:
            out += ["    layers: [client]", "    movable: false"]
            continue
        if w["tier"] == 6 and rng.random() < 0.5:  # Some data does not move.
            out += ["    layers: [cloud]", "    movable: false"]
        else:
            out.append("    layers: [cloud, edge]")
        times = ", ".join(f'"{kind}": {w["execution"] * slow:.4g}ms' for kind, slow in SLOWNESS.items())
        out.append(f"    execution: {{{times}}}")
    out += ["", "# Who calls whom: `calls` one after another, `parallel` at once.", "patterns:", "  mesh:"]
    for number, (client, call) in enumerate(trees, 1):
        out += [f"    endpoint-{number}:", f"      client: {client['name']}", f"      rate: {rng.randint(1, 20)}",
                f"      qos: {rng.choice([200, 300, 500])}ms"]
        write_calls(rng, [call], "      ", out)
    out += ["", "task: {kind: migration, objective: latency, step_penalty_ms: 0.05, step_penalty: constant, "
            f"{limits}}}"]
    return "\n".join(out) + "\n"


# Nodes of each type, of a hundred.
NODES = (("cloud-vm-16", 10, "6 to 15", "12Gi to 56Gi"),
         ("cloud-vm-8", 20, "[2, 5, 7]", "[4Gi, 16Gi, 27.68Gi]"),
         ("edge-vm-4", 35, "2 to 4", "[4Gi, 8Gi, 14Gi]"),
         ("edge-vm-2", 30, "1 to 2", "[2Gi, 4Gi, 7.65Gi]"),
         ("client-vm-2", 5, "2", "7.65Gi"))


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent
    # nodes, pods, workloads, clients, endpoints, seed. max_steps is more than a greedy plan takes. Many nodes have many
    # equivalent moves: fewer stand for them all.
    for nodes, pods, workload_count, clients, endpoints, seed, limits, title in (
            (20, 150, 10, 1, 2, 20, "max_steps: 100", "A continuum with twenty nodes and replicas by the dozen."),
            (40, 350, 20, 2, 3, 40, "max_steps: 100", "A continuum with forty nodes."),
            (100, 1000, 40, 4, 6, 100, "max_steps: 400, max_candidates: 256", "A continuum with a hundred nodes."),
            (1000, 10000, 200, 8, 16, 1000, "max_steps: 1000, max_candidates: 256",
             "A continuum with a thousand nodes.")):
        groups = [(kind, round(share * nodes / 100), cpu, memory) for kind, share, cpu, memory in NODES]
        name = f"continuum-{nodes}x{pods}"
        text = scenario(name, title, groups, pods, workload_count, clients, endpoints, seed, limits)
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
