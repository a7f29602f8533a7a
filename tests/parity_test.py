#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same situation, told to a real API server by kubectl and written as a scenario, is encoded to the same bytes, whether
the server is watched or its lists are read from a dump; and a change of any one thing that matters changes them.

    parity_test.py ENCODER [--situations N]

Needs root and the testbed's servers; where one is missing it says which and ends with status 77.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(TOP), str(TOP / "parity")]

from live_support import Cluster, why_not  # noqa: E402
from situation import FOREIGN, Situation  # noqa: E402

NAME = "test-parity"
SEED = 1
KINDS = "nodes,pods,deployments,replicasets,statefulsets,daemonsets,jobs,persistentvolumes,persistentvolumeclaims,namespaces"


class Server(Cluster):
    """A control plane whose controllers are dead: objects stay as they are written."""

    def start(self):
        self.kubeconfig = self.testbed("up", "--nodes", "0").strip()
        for component in ("kube-scheduler", "kube-controller-manager"):
            self.testbed("stop", component)

    def send(self, verb, objects, *words):
        self.kubectl(verb, *words, "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def uids(self, *kinds):
        items = self.get(",".join(kinds), "--all-namespaces")["items"]
        return {(i["metadata"]["namespace"], i["kind"], i["metadata"]["name"]): i["metadata"]["uid"] for i in items}

    def write(self, situations):
        self.send("create", [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": s.name}} for s in situations])
        self.send("create", [{"apiVersion": "v1", "kind": "ServiceAccount",
                              "metadata": {"name": "default", "namespace": s.name}} for s in situations])
        nodes = [s.node_object(name) for s in situations for name in s.nodes]
        self.send("create", nodes)
        self.send("replace", nodes)  # Without the taint of newcomers, which a controller would take away.
        self.send("create", [o for s in situations for o in s.owner_objects()])
        self.send("create", list(self.replica_sets(situations)))
        uids = self.uids("deployments", "replicasets", "statefulsets")
        self.owners = {s.name: {(kind, name): uid for (space, kind, name), uid in uids.items() if space == s.name}
                       for s in situations}
        self.write_pods([(s, p) for s in situations for p in s.pods])
        for s in situations:
            ending = [p["name"] for p in s.pods if p["fate"] == "terminating"]
            if ending:
                self.kubectl("delete", "pods", "-n", s.name, "--wait=false", *ending)

    def replica_sets(self, situations):
        uids = self.uids("deployments")
        for s in situations:
            for owner in s.owner_objects():
                if owner["kind"] != "Deployment":
                    continue
                name = owner["metadata"]["name"]
                spec = {k: v for k, v in owner["spec"].items() if k != "strategy"}
                yield {"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": spec, "metadata": {
                    "name": f"{name}-5d9f", "namespace": s.name, "ownerReferences": [{
                        "apiVersion": "apps/v1", "kind": "Deployment", "name": name, "controller": True,
                        "uid": uids[s.name, "Deployment", name]}]}}

    def write_pods(self, pods):
        self.send("create", [s.pod_object(p, self.owners[s.name]) for s, p in pods])
        self.send("replace", [s.pod_status(p) for s, p in pods], "--subresource=status")


def changes(server, situation, folder):
    """(what, how) of single changes that a policy must see. Each is made on top of those before."""
    s = situation
    replicas = s.replicas()
    # Of a workload that keeps others, on a node that takes pods.
    spare = [p for p in replicas if len(s.replicas(p["workload"])) > 2]
    foreign = [p for p in s.pods if p["workload"] == FOREIGN and p["fate"] == "running"
               and not s.nodes[p["node"]]["closed"]]
    open_nodes = [n for n, node in s.nodes.items() if not node["closed"] and s.layers[s.kinds[node["kind"]]["layer"]]]
    vacant = [n for n in open_nodes[5:] if not any(p["node"] == n for p in replicas)]
    if len(spare) < 3 or len(foreign) < 2 or not vacant:
        return None
    kinds = list(s.kinds)

    def node_patch(index, patch, *words):
        server.kubectl("patch", "node", s.node_name(open_nodes[index]), *words, "--type=merge", "-p", json.dumps(patch))

    def pod_patch(pod, patch, *words):
        server.kubectl("patch", "pod", "-n", s.name, pod["name"], *words, "--type=merge", "-p", json.dumps(patch))

    def allocatable(index, **amounts):
        node_patch(index, {"status": {"allocatable": amounts}}, "--subresource=status")

    def application(edit):
        path = folder / "application.yaml"
        content = json.loads(path.read_text())
        edit(content)
        path.write_text(json.dumps(content))

    def new_pod(name, workload, index):
        pod = {"name": name, "workload": workload, "node": open_nodes[index], "cpu": 7, "memory": 9 * 1024**2,
               "fate": "running"}
        if workload != FOREIGN:
            pod.update(cpu=s.workloads[workload]["cpu"], memory=s.workloads[workload]["memory"])
        server.write_pods([(s, pod)])

    node_cpu, node_memory = s.nodes[open_nodes[0]]["cpu"], s.nodes[open_nodes[0]]["memory"]
    movable = next(n for n in s.workloads if s.can_move(n))
    endpoint = next(iter(s.endpoints))
    called = s.endpoints[endpoint].get("calls") or s.endpoints[endpoint]["parallel"]
    group = "calls" if "calls" in s.endpoints[endpoint] else "parallel"
    callee = next(iter(called[0]))
    layers = list(s.layers)

    def other_kind():
        kind = next(k for k in kinds if k != s.nodes[open_nodes[1]]["kind"])
        node_patch(1, {"metadata": {"labels": {"type": kind}}})

    return [
        ("a node's allocatable CPU", lambda: allocatable(0, cpu=f"{node_cpu + 40}m")),
        ("a node's allocatable memory", lambda: allocatable(0, memory=str(node_memory + 64 * 1024**2))),
        ("a node's label", other_kind),
        ("a node is cordoned", lambda: node_patch(2, {"spec": {"unschedulable": True}})),
        ("a node is uncordoned", lambda: node_patch(2, {"spec": {"unschedulable": None}})),
        ("a node is not ready", lambda: node_patch(3, {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
                                                   "--subresource=status")),
        ("a node is tainted", lambda: node_patch(4, {"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}})),
        ("a pod has failed", lambda: pod_patch(spare[0], {"status": {"phase": "Failed"}}, "--subresource=status")),
        ("a pod has no owner any more", lambda: pod_patch(spare[1], {"metadata": {"ownerReferences": None}})),
        ("a new replica", lambda: new_pod("new", spare[0]["workload"], 0)),
        ("a pod of somebody else", lambda: new_pod("visitor", FOREIGN, 0)),
        ("a pod of somebody else is gone", lambda: server.kubectl(
            "delete", "pod", "-n", s.name, "--force", "--grace-period=0", foreign[0]["name"])),
        ("a pod of somebody else has ended", lambda: pod_patch(foreign[1], {"status": {"phase": "Succeeded"}},
                                                               "--subresource=status")),
        ("a pod is being deleted", lambda: server.kubectl("delete", "pod", "-n", s.name, "--wait=false", "new")),
        ("a node is gone", lambda: server.kubectl("delete", "node", s.node_name(vacant[0]))),
        ("a latency", lambda: application(lambda a: a["latency"][layers[0]].update({layers[1]: "93ms"}))),
        ("an execution time", lambda: application(
            lambda a: a["workloads"][callee]["execution"].update(
                {s.kinds[s.nodes[s.replicas(callee)[0]["node"]]["kind"]]["cpu_type"]: "77ms"}))),
        ("who may move", lambda: application(lambda a: a["workloads"][movable].update(movable=False))),
        ("a layer takes no pods", lambda: application(
            lambda a: a["layers"][s.kinds[s.nodes[open_nodes[2]]["kind"]]["layer"]].update(accepts_moves=False))),
        ("a payload", lambda: application(lambda a: a["endpoints"][endpoint][group][0][callee].update(data="5MB"))),
    ]


class Encoder:
    """The program that encodes, watching the API server from now on."""

    def __init__(self, program, server):
        self.server = server
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([program, server.kubeconfig], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        self.errors.close()

    def encode(self, folders):
        """What it says of each folder, given all that the API server has."""
        with tempfile.NamedTemporaryFile("w", suffix=".json") as dump:
            dump.write(self.server.kubectl("get", KINDS, "--all-namespaces", "-o", "json"))
            dump.flush()
            self.process.stdin.write(" ".join(map(str, (dump.name, *folders))) + "\n")
            self.process.stdin.flush()
            return list(iter(self.answer, None))

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            raise AssertionError(f"{self.process.args[0]}: status {self.process.wait()}\n{self.errors.read()}")
        return json.loads(line) if line.strip() else None


def is_alike(result):
    return result["watched"] == result["dumped"] == result["simulated"]


def check_changes(encoder, server, situations, work):
    """Each must be seen, by the watch as by a list."""
    for situation in situations:
        list_of = changes(server, situation, work / situation.name)
        if list_of:
            break
    else:
        raise AssertionError("no situation is large enough for all changes")
    last = encoder.encode([work / situation.name])[0]["watched"]
    unseen = []
    for what, make in list_of:
        make()
        result = encoder.encode([work / situation.name])[0]
        now = result["watched"]
        if now == last or now != result["dumped"]:
            unseen.append(f"{what} {result['difference']}")
        last = now
    print(f"{len(list_of) - len(unseen)} of {len(list_of)} single changes seen in {situation.name}")
    for what in unseen:
        print(f"  not seen: {what}")
    return not unseen


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("encoder")
    parser.add_argument("--situations", type=int, default=100)
    arguments = parser.parse_args()
    reason = why_not()
    if reason:
        print(f"parity: skipped: {reason}")
        return 77
    situations = [Situation(number, SEED) for number in range(arguments.situations)]
    server = Server(NAME)
    with tempfile.TemporaryDirectory(prefix="parity-") as folder:
        work = pathlib.Path(folder)
        for situation in situations:
            situation.write(work / situation.name)
        try:
            server.start()
            with Encoder(arguments.encoder, server) as encoder:
                encoder.encode([])  # It has listed what there is: all that follows comes by its watches.
                server.write(situations)
                results = encoder.encode([work / s.name for s in situations])
                equal = sum(map(is_alike, results))
                print(f"{equal} of {len(results)} situations are encoded alike, watched, dumped and simulated, "
                      f"{sum(r['bytes'] for r in results)} bytes in all")
                for result in results:
                    if not is_alike(result):
                        print(f"  {result['situation']}: {result['difference']}")
                seen = check_changes(encoder, server, situations, work)
        finally:
            server.testbed("down")
    return 0 if equal == len(situations) and seen else 1


if __name__ == "__main__":
    sys.exit(main())
