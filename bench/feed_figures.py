#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what one process that places and moves pods watches and keeps, beside one process for each; prints it as Markdown.

  feed_figures.py [--program build/release/rudderfish] [--nodes 5000] [--pods 50000] [--beside OTHER_PROGRAM]

The API server is one that only lists and watches. `--beside`: the two processes of another build, in place of this one's.
"""
import argparse
import collections
import http.server
import json
import pathlib
import subprocess
import tempfile
import threading
import time

TOP = pathlib.Path(__file__).resolve().parents[1]
WORKLOADS, REPLICAS, OWN_NODES = 5, 20, 50  # Of the application that is moved.
PODS_OF_A_SET = 50
SETTLES_S = 12
MIGRATION = "migration: {mode: shadow, policy: greedy, interval: 1s}"
PLACEMENT = "placement: {mode: enforce}"
APPLICATION = """rudderfish: application/v1
name: bench
model: physical
namespace: bench
layers: {cloud: {}, client: {accepts_moves: false}}
latency:
  cloud: {cloud: 1ms, client: 25ms}
  client: {cloud: 25ms, client: 1ms}
node_types:
  own: {nodes: {matchLabels: {layer: cloud}}, layer: cloud, cpu_type: fast, bandwidth: 1Gbit}
  device: {nodes: {matchLabels: {layer: client}}, layer: client, cpu_type: fast, bandwidth: 1Gbit}
"""


def meta(name, uid, **more):
    return {"name": name, "uid": f"{uid:08x}-59b9-4e43-8f0c-2d3a1c5b7e90", "resourceVersion": str(1000 + uid),
            "creationTimestamp": "2026-05-01T10:00:00Z", **more}


def owner(kind, name):
    return [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"{name}-uid", "controller": True, "blockOwnerDeletion": True}]


def node(i):
    name = f"node-{i:05}"
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
              "topology.kubernetes.io/zone": f"zone-{i % 3}", "topology.kubernetes.io/region": "region-1",
              "node.kubernetes.io/instance-type": f"type-{i % 5}"}
    if i < OWN_NODES:
        labels["layer"] = "cloud"
    condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-05-01T10:00:00Z", "reason": "KubeletReady"}
    return {"kind": "Node", "metadata": meta(name, i, labels=labels), "spec": {"podCIDR": "10.0.0.0/24"},
            "status": {"allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110", "ephemeral-storage": "100Gi"},
                       "conditions": [condition], "addresses": [{"type": "InternalIP", "address": f"10.{i >> 8}.{i & 255}.1"}],
                       "images": [{"names": [f"registry.example/image-{k}:1"], "sizeBytes": 10 ** 8} for k in range(10)]}}


def pod(name, uid, place, workload, where):
    container = {"name": "main", "image": f"registry.example/{workload}:1",
                 "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                 "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]}
    tolerations = [{"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
                   for what in ("not-ready", "unreachable")]
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": "2026-05-01T10:00:05Z"}
                  for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")]
    fields = [{"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": "2026-05-01T10:00:05Z", "fieldsType": "FieldsV1",
               "fieldsV1": {f"f:{k}": {".": {}, "f:status": {}} for k in range(12)}}]
    return {"kind": "Pod",
            "metadata": meta(name, uid, namespace=place, labels={"app": workload, "pod-template-hash": "5d4f8c7b9"},
                             generateName=f"{workload}-5d4f8c7b9-", ownerReferences=owner("ReplicaSet", f"{workload}-5d4f8c7b9"),
                             managedFields=fields),
            "spec": {"nodeName": where, "containers": [container], "tolerations": tolerations, "schedulerName": "default-scheduler",
                     "serviceAccountName": "default", "priority": 0, "volumes": [{"name": "token", "projected": {"sources": []}}]},
            "status": {"phase": "Running", "conditions": conditions, "podIP": "10.1.2.3", "startTime": "2026-05-01T10:00:01Z",
                       "containerStatuses": [{"name": "main", "ready": True, "restartCount": 0, "image": f"registry.example/{workload}:1"}]}}


def workload_objects(place, name, uid, replicas):
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}}
    status = {"replicas": replicas, "readyReplicas": replicas}
    yield "/apis/apps/v1/deployments", {"kind": "Deployment", "metadata": meta(name, uid, namespace=place), "spec": spec, "status": status}
    yield "/apis/apps/v1/replicasets", {"kind": "ReplicaSet", "metadata": meta(f"{name}-5d4f8c7b9", uid, namespace=place,
                                                                               ownerReferences=owner("Deployment", name)),
                                        "spec": spec, "status": status}
    yield "/api/v1/services", {"kind": "Service", "metadata": meta(name, uid, namespace=place), "spec": {"selector": {"app": name}}}


def cluster(nodes, pods):
    """All objects, by path, as lines of an initial stream."""
    lines = collections.defaultdict(list)

    def add(path, thing):
        lines[path].append(json.dumps({"type": "ADDED", "object": thing}, separators=(",", ":")))

    for i in range(nodes):
        add("/api/v1/nodes", node(i))
    owned = [("bench", f"own-{w}", REPLICAS, OWN_NODES, 0) for w in range(WORKLOADS)]
    sets = (pods - WORKLOADS * REPLICAS) // PODS_OF_A_SET
    others = [(f"team-{s % 40}", f"app-{s}", PODS_OF_A_SET, nodes - OWN_NODES, OWN_NODES) for s in range(sets)]
    for name in ["bench", *(f"team-{i}" for i in range(40))]:
        add("/api/v1/namespaces", {"kind": "Namespace", "metadata": meta(name, len(lines))})
    uid = 0
    for place, name, replicas, spread, first in owned + others:
        for path, thing in workload_objects(place, name, uid, replicas):
            add(path, thing)
        for _ in range(replicas):
            uid += 1
            add("/api/v1/pods", pod(f"{name}-5d4f8c7b9-{uid:05}", uid, place, name, f"node-{first + uid % spread:05}"))
    return {path: "\n".join(all_of).encode() + b"\n" for path, all_of in lines.items()}


class Api(http.server.ThreadingHTTPServer):
    """Streams lists, then watches in which nothing happens."""
    daemon_threads, request_queue_size = True, 128

    def __init__(self, streams):
        self.streams, self.watches = streams, collections.Counter()
        super().__init__(("127.0.0.1", 0), Answers)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if "watch=1" not in query:
            self.send_response(404)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")
            return
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if "sendInitialEvents" in query:
            self.server.watches[path] += 1
            end = {"metadata": {"resourceVersion": "99999", "annotations": {"k8s.io/initial-events-end": "true"}}}
            body = self.server.streams.get(path, b"")
            for at in range(0, len(body), 1 << 16):
                self.chunk(body[at:at + (1 << 16)])
            self.chunk(json.dumps({"type": "BOOKMARK", "object": end}).encode() + b"\n")
        while True:
            time.sleep(5)
            self.chunk(json.dumps({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "99999"}}}).encode() + b"\n")

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))


def resident_mb(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return [int(line.split()[1]) / 1000 for name in ("VmRSS", "VmHWM") for line in status.splitlines() if line.startswith(name)]


def measure(program, streams, kinds):
    """What a process with these kinds keeps, at most kept, and how often it watches each resource."""
    api = Api(streams)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "application.yaml").write_text(
            APPLICATION + "workloads:\n  users: {external: client}\n" +
            "".join(f"  own-{w}: {{object: deployment/own-{w}, execution: {{fast: 5ms}}}}\n" for w in range(WORKLOADS)) +
            "endpoints:\n  get:\n    client: users\n    rate: 20\n    qos: 120ms\n    calls:\n      - own-0:\n          calls:\n" +
            "".join(f"            - own-{w}: {{data: 0.1MB}}\n" for w in range(1, WORKLOADS)), encoding="utf-8")
        (folder / "kubeconfig").write_text(json.dumps({
            "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{api.server_port}"}}],
            "users": [{"name": "u", "user": {}}]}), encoding="utf-8")
        applications = "applications: [application.yaml]\n" if MIGRATION in kinds else ""
        (folder / "rudderfish.yaml").write_text(
            f"rudderfish: config/v1\ncluster: {{kubeconfig: kubeconfig}}\n{applications}journal: {{path: j.db}}\n"
            f"server: {{socket: s}}\ndecisions: {{{', '.join(kinds)}}}\n", encoding="utf-8")
        log = folder / "log"
        with log.open("wb") as out, subprocess.Popen([program, "run", "--config", "rudderfish.yaml"], cwd=folder, stdout=out,
                                                     stderr=out) as process:
            began = time.monotonic()
            while not (folder / "s").exists() or subprocess.run([program, "status", "--socket", "s"], cwd=folder, check=False,
                                                                capture_output=True).returncode:
                assert process.poll() is None and time.monotonic() - began < 120, log.read_text(encoding="utf-8")
                time.sleep(0.2)
            ready_s = time.monotonic() - began
            time.sleep(SETTLES_S)
            now, most = reversed(sorted(resident_mb(process.pid))), 0
            most, now = tuple(now)
            process.terminate()
    api.shutdown()
    api.server_close()
    return now, most, ready_s, api.watches


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, default=TOP / "build/release/rudderfish")
    parser.add_argument("--beside", type=pathlib.Path)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50000)
    arguments = parser.parse_args()
    streams = cluster(arguments.nodes, arguments.pods)
    program = arguments.program.resolve()
    beside = (arguments.beside or program).resolve()
    rows = [("places", beside, [PLACEMENT]), ("moves", beside, [MIGRATION]), ("places and moves", program, [PLACEMENT, MIGRATION])]
    print("| process | MB resident | at most | ready s | most watches of a resource |\n|---|---|---|---|---|")
    kept = []
    for what, which, kinds in rows:
        now, most, ready_s, watches = measure(which, streams, kinds)
        kept.append(now)
        path, times = watches.most_common(1)[0]
        print(f"| {what} | {now:.0f} | {most:.0f} | {ready_s:.1f} | {times} ({path}) |", flush=True)
    print(f"\none process: {kept[2] / (kept[0] + kept[1]):.2f} of the two")


if __name__ == "__main__":
    main()
