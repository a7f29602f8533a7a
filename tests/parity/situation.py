# SPDX-License-Identifier: Apache-2.0
"""Random situations of a small cluster, each written twice by one who knows nothing of the program: as manifests for a real
API server, with all that Kubernetes allows to say the same thing in, and as a scenario with a start state."""
import json
import random

MEMORY_UNITS = (("", 1), ("Ki", 1024), ("Mi", 1024**2), ("k", 1000), ("M", 1000**2), ("Gi", 1024**3))
FOREIGN = "foreign"


class Situation:
    """Nodes, workloads and where their pods are. Numbers are milli-cores and bytes."""

    def __init__(self, number, seed):
        self.name = f"s{number:03d}"
        self.rng = random.Random(f"{seed} {number}")
        self.draw_layers()
        self.draw_nodes()
        self.draw_workloads()
        self.draw_pods()

    def draw_layers(self):
        rng = self.rng
        self.layers = {name: True for name in rng.sample(("cloud", "edge", "device", "metro"), rng.randint(2, 4))}
        closed = rng.choice([None, *self.layers])
        if closed and len(self.layers) > 1:
            self.layers[closed] = False
        self.latency = {a: {b: round(rng.uniform(0.05, 80), 3) for b in self.layers} for a in self.layers}
        self.kinds = {}
        for layer in self.layers:
            for index in range(rng.randint(1, 2)):
                self.kinds[f"{layer}-{'ab'[index]}"] = {
                    "layer": layer, "cpu_type": rng.choice(("fast", "slow")), "bandwidth": rng.choice((200, 500, 1000))}

    def draw_nodes(self):
        rng = self.rng
        self.nodes = {}
        for kind in self.kinds:
            for index in range(rng.randint(1, 4)):
                self.nodes[f"{kind}-{index + 1}"] = {
                    "kind": kind, "cpu": rng.randint(1500, 9000), "memory": rng.randint(2 * 1024**3, 24 * 1024**3),
                    # What keeps new pods away, or nothing.
                    "closed": rng.choice((None,) * 8 + ("cordon", "not-ready", "NoSchedule", "NoExecute"))}
        if all(node["closed"] for node in self.nodes.values()):
            next(iter(self.nodes.values()))["closed"] = None

    def draw_workloads(self):
        rng = self.rng
        self.workloads = {}
        for index in range(rng.randint(2, 6)):
            self.workloads[f"w{index}"] = {
                "kind": rng.choice(("Deployment", "ReplicaSet", "StatefulSet", "Deployment")),
                "cpu": rng.randint(1, 900), "memory": rng.randint(1024**2, 900 * 1024**2),
                "movable": rng.random() < 0.85,
                "execution": {k["cpu_type"]: round(rng.uniform(0.5, 40), 3) for k in self.kinds.values()}}
        self.workloads["w0"].update(movable=True, kind="Deployment")
        names = list(self.workloads)
        self.endpoints = {}
        for index in range(rng.randint(1, 2)):
            client, *callees = rng.sample(names, rng.randint(2, len(names)))
            self.endpoints[f"e{index}"] = {"client": client, "rate": rng.randint(1, 30), "qos": f"{rng.randint(50, 500)}ms",
                                           **self.draw_calls(callees)}

    def draw_calls(self, callees):
        if not callees:
            return {}
        first = callees[:self.rng.randint(1, len(callees))]
        rest = callees[len(first):]
        calls = []
        for callee in first:
            call = {"data": f"{self.rng.randint(1, 300)}kB"}
            if callee == first[-1]:
                call.update(self.draw_calls(rest))
            calls.append({callee: call})
        return {self.rng.choice(("calls", "parallel")): calls}

    def draw_pods(self):
        """Where there is room; the kinds of pod that take room without being a replica, and those that take none."""
        rng = self.rng
        self.pods = []
        self.free = {name: [node["cpu"], node["memory"]] for name, node in self.nodes.items()}
        for name, workload in self.workloads.items():
            for index in range(rng.randint(1, 5)):
                self.place(f"{name}-{index}", name, workload["cpu"], workload["memory"], "running")
            if not any(pod["workload"] == name for pod in self.pods):
                raise ValueError(f"{self.name}: no room for {name}")
            if rng.random() < 0.3:
                self.place(f"{name}-ending", name, workload["cpu"], workload["memory"], "terminating")
        for index in range(rng.randint(0, 6)):
            self.place(f"foreign-{index}", FOREIGN, rng.randint(1, 700), rng.randint(1, 700 * 1024**2),
                       rng.choice(("running", "running", "ended")))

    def place(self, pod, workload, cpu, memory, fate):
        fitting = [n for n, (free_cpu, free_memory) in self.free.items() if free_cpu >= cpu and free_memory >= memory]
        if not fitting:
            return
        node = self.rng.choice(fitting)
        if fate != "ended":
            self.free[node][0] -= cpu
            self.free[node][1] -= memory
        self.pods.append({"name": pod, "workload": workload, "node": node, "cpu": cpu, "memory": memory, "fate": fate})

    def replicas(self, workload=None):
        return [p for p in self.pods if p["fate"] == "running" and p["workload"] in self.workloads
                and workload in (None, p["workload"])]

    def can_move(self, name):
        """A StatefulSet starts no replacement beside the old pod."""
        return self.workloads[name]["movable"] and self.workloads[name]["kind"] != "StatefulSet"

    # As a scenario.

    def scenario(self):
        kinds = {name: {"layer": k["layer"], "cpu_type": k["cpu_type"], "bandwidth": f"{k['bandwidth']}Mbit"}
                 for name, k in self.kinds.items()}
        counts = {kind: sum(n["kind"] == kind for n in self.nodes.values()) for kind in self.kinds}
        return {
            "rudderfish": "scenario/v1", "name": self.name, "model": "physical", **self.continuum(), "node_types": kinds,
            # Wide enough for anything: the start state says what is there.
            "nodes": [{"type": kind, "count": count, "cpu": 100, "memory": "1Ti"} for kind, count in counts.items()],
            "workloads": {name: {
                "requests": {"cpu": f"{w['cpu']}m", "memory": str(w["memory"])}, "replicas": "1 to 9",
                "layers": list(self.layers), "movable": self.can_move(name),
                "execution": {t: f"{ms}ms" for t, ms in w["execution"].items()},
            } for name, w in self.workloads.items()},
            "patterns": {"calls": self.endpoints},
            "task": {"kind": "migration"}}

    def continuum(self):
        return {"layers": {name: {"accepts_moves": accepts} for name, accepts in self.layers.items()},
                "latency": {a: {b: f"{ms}ms" for b, ms in row.items()} for a, row in self.latency.items()}}

    def start(self):
        nodes = []
        for name, node in self.nodes.items():
            cpu, memory = (0, 0) if node["closed"] else self.free[name]
            # A quarter above the integer that rounding down must find.
            nodes.append({"name": name, "layer": self.kinds[node["kind"]]["layer"],
                          "cpu_free": (cpu + 0.25) / 1000, "mem_free": (memory + 0.25) / 1024**3})
        pods = [{"name": p["name"], "service": p["workload"], "node": p["node"]} for p in self.replicas()]
        return {"config": self.name, "pattern": "calls", "latency_between_layer": self.latency, "nodes": nodes,
                "pods": pods}

    # As what Kubernetes is told.

    def application(self):
        """application.yaml. Workloads are found by kind and name, nodes by their labels."""
        kinds = {}
        for index, (name, k) in enumerate(self.kinds.items()):
            wanted = {"matchLabels": {"situation": self.name, "type": name}}
            if index % 2:
                wanted = {"matchExpressions": [{"key": "situation", "operator": "In", "values": [self.name, "none"]},
                                               {"key": "type", "operator": "In", "values": [name]}]}
            kinds[name] = {"nodes": wanted, "layer": k["layer"], "cpu_type": k["cpu_type"],
                           "bandwidth": f"{k['bandwidth']}Mbit"}
        return {
            "rudderfish": "application/v1", "name": self.name, "model": "physical", "namespace": self.name,
            **self.continuum(), "node_types": kinds,
            "workloads": {name: {"object": f"{w['kind'].lower()}/{name}", "movable": w["movable"],
                                 "execution": {t: f"{ms}ms" for t, ms in w["execution"].items()}}
                          for name, w in self.workloads.items()},
            "endpoints": self.endpoints}

    def node_object(self, name):
        node = self.nodes[name]
        allocatable = {"cpu": self.say_cpu(node["cpu"]), "memory": self.say_memory(node["memory"]), "pods": "110"}
        spec = {"unschedulable": True} if node["closed"] == "cordon" else {}
        if node["closed"] in ("NoSchedule", "NoExecute"):
            spec["taints"] = [{"key": "kept", "value": "free", "effect": node["closed"]}]
        if self.rng.random() < 0.3:
            spec.setdefault("taints", []).append({"key": "please", "value": "not", "effect": "PreferNoSchedule"})
        ready = "False" if node["closed"] == "not-ready" else "True"
        return {"apiVersion": "v1", "kind": "Node",
                "metadata": {"name": self.node_name(name), "labels": {"situation": self.name, "type": node["kind"]}},
                "spec": spec,
                "status": {"capacity": allocatable, "allocatable": allocatable,
                           "conditions": [{"type": "Ready", "status": ready}]}}

    def node_name(self, name):
        return f"{self.name}-{name}"

    def owner_objects(self):
        """Workloads, each a Deployment with its ReplicaSet; no controller reconciles them here."""
        for name, workload in self.workloads.items():
            labels = {"app": name}
            spec = {"replicas": len(self.replicas(name)), "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels},
                                 "spec": {"containers": [{"name": "main", "image": "none"}]}}}
            if workload["kind"] == "StatefulSet":
                spec["serviceName"] = name
            yield {"apiVersion": "apps/v1", "kind": workload["kind"], "metadata": {"name": name, "namespace": self.name},
                   "spec": spec}

    def pod_object(self, pod, owners):
        """`owners`: (kind, name) -> uid of what was made of owner_objects."""
        metadata = {"name": pod["name"], "namespace": self.name}
        workload = self.workloads.get(pod["workload"])
        if workload:
            kind, name = workload["kind"], pod["workload"]
            if kind == "Deployment":
                kind, name = "ReplicaSet", f"{name}-5d9f"
            metadata["labels"] = {"app": pod["workload"]}
            metadata["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": kind, "name": name, "controller": True,
                                            "uid": owners[kind, name]}]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
                "spec": {"nodeName": self.node_name(pod["node"]), "automountServiceAccountToken": False,
                         **self.containers(pod)},
                }

    def containers(self, pod):
        """The same requests in other words: one container or several, an init container that asks for no more, a sidecar,
        limits without requests."""
        def container(name, cpu, memory, where="requests", **rest):
            return {"name": name, "image": "none", "resources": {where: {
                "cpu": self.say_cpu(cpu), "memory": self.say_memory(memory)}}, **rest}

        cpu, memory = pod["cpu"], pod["memory"]
        part, share = self.rng.randint(0, cpu), self.rng.randint(0, memory)
        shape = self.rng.choice(("one", "limits", "two", "init", "large-init", "sidecar"))
        if shape == "one":
            return {"containers": [container("main", cpu, memory)]}
        if shape == "limits":
            return {"containers": [container("main", cpu, memory, where="limits")]}
        if shape == "two":
            return {"containers": [container("main", part, share), container("other", cpu - part, memory - share)]}
        if shape == "init":
            return {"initContainers": [container("init", part, share)], "containers": [container("main", cpu, memory)]}
        if shape == "large-init":
            return {"initContainers": [container("init", cpu, memory)], "containers": [container("main", part, share)]}
        return {"initContainers": [container("side", part, share, restartPolicy="Always")],
                "containers": [container("main", cpu - part, memory - share)]}

    def pod_status(self, pod):
        phase = "Succeeded" if pod["fate"] == "ended" else "Running"
        ready = "False" if pod["fate"] == "ended" else "True"
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod["name"], "namespace": self.name},
                "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}}

    def say_cpu(self, millis):
        words = [f"{millis}m", f"{millis / 1000:.3f}", f"{millis * 1000}u", f"{millis}e-3"]
        if millis % 1000 == 0:
            words.append(str(millis // 1000))
        return self.rng.choice(words)

    def say_memory(self, size):
        return self.rng.choice([f"{size // unit}{suffix}" for suffix, unit in MEMORY_UNITS if size % unit == 0]
                               + [f"{size}000m"])

    def write(self, folder):
        """YAML reads JSON."""
        folder.mkdir(parents=True)
        for name, content in (("application.yaml", self.application()), ("scenario.yaml", self.scenario())):
            (folder / name).write_text(json.dumps(content, indent=1) + "\n")
        (folder / "start.jsonl").write_text(json.dumps(self.start()) + "\n")
