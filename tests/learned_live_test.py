#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A policy that was trained in a scenario places pods on a real API server: where the same policy puts them in the simulator, pod
by pod; `explain` and `status` say why; what is unlike training is left to kube-default; what does not fit is refused. Look-ahead
places a burst that greedy leaves half of waiting.

RUDDERFISH names the program; default: build/release/rudderfish. Needs what tests/testbed_test.py needs; where something is
missing it says what and ends with status 77.
"""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.request

from live_support import PROGRAM, TOP, Cluster, main

CLUSTER = Cluster("test-learned")
KUBECONFIG = pathlib.Path("/var/lib/rudderfish-testbed") / CLUSTER.name / "kubeconfig"
TYPE_LABEL = "node.kubernetes.io/instance-type"
TYPES = {"small": (4, "8", "16Gi"), "large": (4, "16", "64Gi")}
REQUESTS = {"web": ("500m", "512Mi"), "batch": ("1", "4Gi"), "cache": ("250m", "2Gi")}
PODS = 60
WORLD = f"""rudderfish: scenario/v1
name: learned-live
objective: {{energy: 1, balance: 0.2}}
layers: {{site: {{}}}}
latency: {{site: {{site: 1ms}}}}
node_types:
  small: {{layer: site, cpu_type: any, bandwidth: 1Gbit, power: {{idle_watts: 60, busy_watts: 120, asleep_watts: 5}}}}
  large: {{layer: site, cpu_type: any, bandwidth: 1Gbit, power: {{idle_watts: 100, busy_watts: 180, asleep_watts: 5}}}}
nodes:
  - {{type: small, count: 4, cpu: 8, memory: 16Gi}}
  - {{type: large, count: 4, cpu: 16, memory: 64Gi}}
workloads:
  web: {{requests: {{cpu: 500m, memory: 512Mi}}}}
  batch: {{requests: {{cpu: 1, memory: 4Gi}}}}
  cache: {{requests: {{cpu: 250m, memory: 2Gi}}}}
arrivals:
  until: 100s
  streams:
    - {{workloads: [web, batch, cache], interval: 1s, count: {PODS}}}
"""


def pod(name, workload=None, cpu="1", memory="1Gi", **spec):
    cpu, memory = REQUESTS.get(workload, (cpu, memory))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", "labels": {"app": "learned"}},
            "spec": {"schedulerName": "rudderfish", "automountServiceAccountToken": False,
                     "tolerations": [{"key": "rudderfish.io/hollow", "operator": "Exists"}],
                     "containers": [{"name": "main", "image": "localhost/pause:1",
                                     "resources": {"requests": {"cpu": cpu, "memory": memory}}}], **spec}}


class Learned(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        CLUSTER.start(cls, "--nodes", "0", "--hollow", str(sum(count for count, _, _ in TYPES.values())))
        cls.type_of = {}
        names = iter(f"hollow-{i}" for i in range(1, 100))
        for kind, (count, cpu, memory) in TYPES.items():
            for _ in range(count):
                name = next(names)
                cls.type_of[name] = kind
                CLUSTER.kubectl("label", "node", name, f"{TYPE_LABEL}={kind}")
                amounts = {"cpu": cpu, "memory": memory}
                CLUSTER.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p",
                                json.dumps({"status": {"allocatable": amounts, "capacity": amounts}}))
        (cls.folder / "world.yaml").write_text(WORLD, encoding="utf-8")
        cls.said("train", cls.folder / "world.yaml", "-d", cls.folder / "run", "--steps", "4096", "-q")

    def setUp(self):
        self.running = None
        self.addCleanup(self.stop)

    @classmethod
    def tried(cls, *words):
        return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=300)

    @classmethod
    def said(cls, *words):
        done = cls.tried(*words)
        if done.returncode != 0:
            raise AssertionError(f"{words}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def configured(self, placement, more=""):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        config = self.folder / "rudderfish.yaml"
        config.write_text(f"rudderfish: config/v1\ncluster: {{kubeconfig: {KUBECONFIG}}}\ndecisions: {{placement: {placement}}}\n"
                          f"server: {{listen: \"127.0.0.1:{self.port}\"}}\n{more}", encoding="utf-8")
        return config

    def start(self, placement, more=""):
        config = self.configured(placement, more)
        with (self.folder / "log").open("a", encoding="utf-8") as log:
            self.running = subprocess.Popen([PROGRAM, "run", "-c", config], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.wait_for(lambda: self.tried("status", "-c", config).returncode == 0, "it runs")
        return config

    def stop(self):
        if self.running is not None:
            self.running.terminate()
            self.running.wait(timeout=20)
            self.running = None
        CLUSTER.kubectl("delete", "pods", "--all", "--force", "--grace-period=0", "--wait=true")

    def wait_for(self, condition, what, limit=60):
        end = time.monotonic() + limit
        while not (found := condition()):
            if time.monotonic() > end:
                self.fail(f"{what}\n{(self.folder / 'log').read_text(encoding='utf-8')[-4000:]}")
            time.sleep(0.1)
        return found

    def node_of(self, name):
        return self.wait_for(lambda: CLUSTER.get("pod", name)["spec"].get("nodeName"), f"{name} is placed")

    def metric(self, *parts):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
            lines = [line for line in answer.read().decode().splitlines() if all(part in line for part in parts)]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line[0] != "#")

    def test_1_pods_go_where_the_same_policy_puts_them_in_the_simulator(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            asked = probe.getsockname()[1]
        config = self.start("{mode: enforce, policy: run}", f"extender: {{listen: \"127.0.0.1:{asked}\", policy: run}}\n")
        steps = json.loads(self.said("simulate", self.folder / "world.yaml", "--policy", self.folder / "run", "-o", "json"))["steps"]
        self.assertEqual(len(steps), PODS)
        simulated, live = {}, {}
        for number, step in enumerate(steps):
            name, workload = f"pod-{number}", step["workload"]
            CLUSTER.apply(pod(name, workload))
            node = self.node_of(name)
            # Which of equal nodes is as good as another: what they are and hold is the same.
            there = (self.type_of[node], sorted(live.get(node, [])))
            expected = (step["node"].rsplit("-", 1)[0], sorted(simulated.get(step["node"], [])))
            self.assertEqual(there, expected, f"{name}, a {workload}")
            live.setdefault(node, []).append(workload)
            simulated.setdefault(step["node"], []).append(workload)
        self.assertGreater(len(live), 1)
        self.assertLess(len(live), 8, "it saves energy: not all nodes are woken")
        last = ("explain", f"pod/pod-{PODS - 1}", "-c", config)
        self.wait_for(lambda: "Predicted" in self.said(*last), "what was predicted is kept after the Binding", limit=10)
        told = self.said(*last)
        for words in ("was put on", "/run@", "Predicted, in ppm of balance:0.2,energy:1", "POLICY SCORE"):
            self.assertIn(words, told)
        status = self.said("status", "-c", config)
        self.assertIn(f"a node's type is its label {TYPE_LABEL}: small, large", status)
        self.assertIn("here: 4 small, 4 large, 0 (unknown)", status)
        self.assertEqual(self.metric("rudderfish_placement_fallbacks_total"), 0)
        # As an extender: the same, in grades.
        question = json.dumps({"Pod": pod("new", "web"), "NodeNames": list(self.type_of)}).encode()
        with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{asked}/prioritize", data=question, method="POST"),
                                    timeout=10) as answer:
            grades = dict.fromkeys(self.type_of, 0) | {one["Host"]: one["Score"] for one in json.load(answer)}
        self.assertEqual((min(grades.values()), max(grades.values())), (0, 10))
        CLUSTER.apply(pod("new", "web"))
        self.assertEqual(grades[self.node_of("new")], 10)

    def test_2_what_is_unlike_training_is_left_to_kube_default_and_told(self):
        config = self.start("{mode: enforce, policy: run}")
        CLUSTER.apply(pod("like", "web"))
        self.node_of("like")
        self.assertEqual(self.metric("rudderfish_placement_fallbacks_total"), 0)
        CLUSTER.apply(pod("unlike", cpu="7", memory="1Gi"))
        self.node_of("unlike")
        self.wait_for(lambda: self.metric("rudderfish_placement_fallbacks_total", 'reason="unlike"') == 1, "it is counted")
        self.assertRegex(self.said("status", "-c", config), "of 2 choices of the policy kube-default made: 1 unlike")
        told = self.wait_for(lambda: (text := self.said("explain", "pod/unlike", "-c", config)) and "kube-default" in text and text,
                             "why")
        self.assertRegex(told, "unlike what .*/run@.* was trained on: `[a-z_]+` is .* in training")

    def test_3_what_does_not_fit_is_refused_where_it_stands(self):
        for placement, words in (
                (f"{{policy: {TOP}/policies/continuum.safetensors}}", "trained for the task migration, not placement"),
                ("{policy: run, objective: cost}", "was trained for balance:0.2,energy:1, not for cost"),
                ("{policy: greedy, objective: energy}", "a live cluster does not say"),
                ("{policy: nowhere}", "no policy, run folder or checkpoint is called `nowhere`")):
            config = self.configured(placement)
            done = self.tried("run", "-c", config, "--dry-run")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, r"rudderfish.yaml:3:\d+: `decisions\.placement\.(policy|objective)`: ")
            self.assertIn(words, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("believes", self.said("run", "-c", self.configured("{policy: run}"), "--dry-run"))

    def test_4_look_ahead_leaves_room_for_those_that_wait_behind(self):
        # Pairs of a small and a large node. For each come at one moment a pod that fills the small one or half of the large one,
        # which alone is the better balanced, and behind all those one that only an empty large node has room for.
        pairs = [[node for node, kind in self.type_of.items() if kind == wanted] for wanted in TYPES]
        for pair, nodes in enumerate(zip(*pairs)):
            for node in nodes:
                CLUSTER.kubectl("label", "node", node, f"pair=p{pair}")
        halves = [f"a-{pair}" for pair in range(len(pairs[0]))]
        wholes = [f"b-{pair}" for pair in range(len(pairs[0]))]

        def placed_by(policy):
            for names, cpu in ((halves, "8"), (wholes, "16")):
                CLUSTER.apply(*(pod(name, cpu=cpu, nodeSelector={"pair": "p" + name[2:]}) for name in names))
            config = self.start(f"{{mode: enforce, policy: {policy}, objective: balance}}")
            kinds = [self.type_of[self.node_of(name)] for name in halves]
            return config, kinds

        config, kinds = placed_by("lookahead")
        self.assertEqual(kinds, ["small"] * len(halves))
        self.assertEqual([self.type_of[self.node_of(name)] for name in wholes], ["large"] * len(wholes))
        self.assertIn("lookahead", self.said("explain", f"pod/{halves[0]}", "-c", config))
        self.stop()
        config, kinds = placed_by("greedy")
        self.assertEqual(kinds, ["large"] * len(halves))
        for name in wholes:
            self.wait_for(lambda name=name: "Insufficient cpu" in self.tried("explain", f"pod/{name}", "-c", config).stdout, "why it waits")


if __name__ == "__main__":
    os.umask(0o022)
    main(PROGRAM)
