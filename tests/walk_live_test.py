#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The path of a new user on a real cluster: the commands of README.md and docs/shadow.md, beside what kubectl shows.

In the sections named in PAGES, blocks fenced as `console` hold commands after "# ". They run in order in a copy of examples/,
on a testbed of this test's own; times to watch and to train are cut. RUDDERFISH names the program; default:
build/release/rudderfish. Needs what tests/testbed_test.py needs; where something is missing it says what and ends with
status 77.
"""
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from live_support import GIVEN, PROGRAM, TESTBED, TOP, Cluster, commands_of, main

NAME = GIVEN or "test-walk"
CLUSTER = Cluster(NAME)
kubectl = CLUSTER.kubectl
PAGES = [(TOP / "README.md", "## Shadow a cluster"), (TOP / "docs/shadow.md", "## On a cluster")]
WORKLOADS = ("aggregator", "detection", "db", "machine-learning")


def listed(kind, *words):
    return CLUSTER.get(kind, *words)["items"]


def millis(quantity):
    return int(quantity[:-1]) if quantity.endswith("m") else int(float(quantity) * 1000)


class Walk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.top = pathlib.Path(holder.name)
        shutil.copytree(TOP / "examples", cls.top / "examples",
                        ignore=shutil.ignore_patterns("*.db*", "*.sock", "runs", "live.yaml", "seen.jsonl"))
        (cls.top / "policies").symlink_to(TOP / "policies")
        CLUSTER.start(cls, "--layers", "cloud:2,edge:4,client:1", "--delays", str(TOP / "examples/continuum/continuum.links"))
        (cls.top / "bin").mkdir()
        (cls.top / "bin/rudderfish").symlink_to(PROGRAM)
        (cls.top / "bin/kubectl").write_text(f"#!/bin/sh\nexec {TESTBED} kubectl --name {NAME} -- \"$@\"\n", encoding="utf-8")
        (cls.top / "bin/kubectl").chmod(0o755)
        cls.environment = {**os.environ, "PATH": f"{cls.top / 'bin'}:{os.environ['PATH']}", "NO_COLOR": "1",
                           "KUBECONFIG": f"/var/lib/rudderfish-testbed/{NAME}/kubeconfig"}
        kubectl("apply", "-f", str(TOP / "examples/continuum/manifests.yaml"))
        for workload in WORKLOADS:
            kubectl("rollout", "status", "-n", "continuum", f"deployment/{workload}", "--timeout=60s")

    def setUp(self):
        self.folder = self.top
        self.controller = None
        self.addCleanup(self.stop)

    def stop(self):
        if self.controller is not None and self.controller.poll() is None:
            self.controller.kill()
            self.controller.wait()

    def ask(self, *arguments, statuses=(0,)):
        done = subprocess.run(["rudderfish", *arguments], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
        self.assertIn(done.returncode, statuses, f"{arguments}\n{done.stdout}{done.stderr}")
        return done.stdout

    def answer(self, *arguments):
        answer = json.loads(self.ask(*arguments, "-o", "json"))
        self.assertEqual(answer["schema_version"], 2 if arguments[0] in ("status", "decisions") else 1)
        return answer

    def application(self):
        return self.answer("status")["decisions"]["migration"]["applications"][0]

    def wait_for(self, condition, what):
        end = time.monotonic() + 30
        while not condition():
            self.assertIsNone(self.controller.poll(), f"{what}: the controller ended")
            self.assertLess(time.monotonic(), end, f"{what}\n{(self.top / 'log').read_text(encoding='utf-8')}")
            time.sleep(0.1)

    def start(self, *arguments):
        with open(self.top / "log", "wb") as log:
            self.controller = subprocess.Popen(["rudderfish", *arguments], cwd=self.folder, env=self.environment,
                                               stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.wait_for(lambda: (self.folder / "rudderfish.sock").exists(), "it listens")
        self.wait_for(lambda: self.application()["plans"] > 0, "a plan ends")

    def end(self):
        self.controller.send_signal(signal.SIGTERM)
        self.assertEqual(self.controller.wait(timeout=10), 0)

    def moved_pod(self):
        return next(row["chosen"][0]["pod"] for row in self.answer("decisions")["decisions"] if row["chosen"])

    @staticmethod
    def what_others_may_touch():
        return {pod["metadata"]["name"]: (pod["spec"].get("nodeName"), pod["metadata"]["labels"],
                                          pod["metadata"].get("annotations"))
                for pod in listed("pods", "-n", "continuum") if "deletionTimestamp" not in pod["metadata"]}

    def step(self, command):
        """One command of a page, cut short and on this test's cluster."""
        words = shlex.split(command, comments=True)
        if words[0] == "cd":
            self.folder = (self.folder / words[1]).resolve()
        elif words[0] == "export":
            self.assertEqual(words[1], "KUBECONFIG=/var/lib/rudderfish-testbed/default/kubeconfig")
        elif words[0] == "kill":
            self.end()
        elif words[0] == "testbed/testbed":
            self.assertIn(words[1], ("up", "down"))
        elif words[0] == "kubectl":
            done = subprocess.run(words, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False, timeout=120)
            self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}")
            if words[1] == "scale":
                kubectl("rollout", "status", "-n", "continuum", words[-2], "--timeout=60s")
        elif words[-1] == "&":
            self.start(*words[1:-1])
        else:
            self.assertEqual(words[0], "rudderfish", command)
            for option, value in (("--for", "3s"), ("--time", "8s"), ("--episodes", "40")):
                if option in words:
                    words[words.index(option) + 1] = value
            words = [f"pod/{self.moved_pod()}" if word.startswith("pod/") else word for word in words]
            # A policy that was trained for 8 s need not be better.
            said = self.ask(*words[1:], statuses=(0, 3) if words[1] == "evaluate" else (0,))
            if words[1] in ("snapshot", "evaluate", "decisions", "explain", "status"):
                self.assertNotEqual(said, "", command)

    def test_the_commands_of_the_pages_run_and_change_nothing_but_what_kubectl_does(self):
        for page, heading in PAGES:
            commands = commands_of(page, heading)
            self.assertTrue(any(command.startswith("rudderfish run") for command in commands), page)
            self.folder = self.top
            for command in commands:
                with self.subTest(page=page.name, command=command):
                    before = self.what_others_may_touch()
                    self.step(command)
                    if command.startswith("rudderfish"):
                        self.assertEqual(self.what_others_may_touch(), before)
            self.stop()
            for path in (self.top / "examples/continuum").glob("rudderfish.db*"):
                path.unlink()

    def test_snapshot_says_what_kubectl_says(self):
        self.folder = self.top / "examples/continuum"
        seen = self.answer("snapshot", "--application", "application.yaml")
        requested = {}
        for pod in listed("pods", "-A"):
            for container in pod["spec"]["containers"]:
                cpu = container.get("resources", {}).get("requests", {}).get("cpu", "0")
                requested[pod["spec"]["nodeName"]] = requested.get(pod["spec"]["nodeName"], 0) + millis(cpu)
        nodes = {node["name"]: node for node in seen["nodes"]}
        for node in listed("nodes"):
            name = node["metadata"]["name"]
            allocatable = millis(node["status"]["allocatable"]["cpu"])
            self.assertEqual(nodes[name]["allocatable"]["cpu_millis"], allocatable)
            self.assertEqual(nodes[name]["free"]["cpu_millis"], allocatable - requested.get(name, 0))
            self.assertEqual(seen["application"]["layers"][name], node["metadata"]["labels"]["rudderfish.io/layer"])
        ready = {item["metadata"]["name"]: item["status"]["readyReplicas"] for item in listed("deployments", "-n", "continuum")}
        self.assertEqual({one["name"]: one["ready"] for one in seen["workloads"] if one["namespace"] == "continuum"}, ready)
        self.assertGreater(seen["application"]["latency_ms"], 0)

    def test_profile_keeps_nodes_layers_latencies_and_calls(self):
        self.folder = self.top / "examples/continuum"
        self.ask("profile", "--application", "application.yaml", "--starts", "seen.jsonl", "-o", "kept.yaml")
        latency = self.answer("snapshot", "--application", "application.yaml")["application"]["latency_ms"]
        start = json.loads((self.folder / "seen.jsonl").read_text(encoding="utf-8").splitlines()[0])
        places = {pod["name"]: pod["node"] for pod in start["pods"]}
        for pod in listed("pods", "-n", "continuum"):
            if "deletionTimestamp" not in pod["metadata"]:
                self.assertEqual(places[pod["metadata"]["name"]], pod["spec"]["nodeName"])
        self.assertEqual(start["latency_between_layer"]["cloud"], {"cloud": 0.1, "edge": 10.0, "client": 25.0})
        compared = self.ask("evaluate", "kept.yaml", "--policy", "stay,greedy", "--starts", "seen.jsonl", statuses=(0, 3))
        self.assertIn(f"1 start; mean latency at the start {latency:.1f} ms", compared)
        self.assertIn("client > aggregator > detection > (db | machine-learning)", self.ask("inspect", "kept.yaml"))

    def test_what_the_scope_does_not_pick_stays(self):
        folder = self.folder = self.top / "examples/continuum"
        config = (TOP / "examples/continuum/rudderfish.yaml").read_text(encoding="utf-8")
        scoped = config.replace("scope: {namespaces: [continuum]}",
                                "scope: {namespaces: [continuum], pods: {matchLabels: {app: detection}}}")
        self.assertNotEqual(config, scoped)
        (folder / "rudderfish.yaml").write_text(scoped, encoding="utf-8")
        self.addCleanup((folder / "rudderfish.yaml").write_text, config, encoding="utf-8")
        self.assertIn("pods that the selector picks", self.ask("run", "--dry-run"))
        self.start("run")
        rows = self.answer("decisions")["decisions"]
        moved = [move["pod"] for row in rows for move in row["chosen"]]
        self.assertTrue(moved)
        self.assertEqual([pod for pod in moved if not pod.startswith("detection-")], [])
        held = {one["workload"] for one in rows[0]["refused"] if one["reason"] == "may not be moved"}
        self.assertTrue({"aggregator", "machine-learning", "db"} <= held, held)
        self.end()
        for path in folder.glob("rudderfish.db*"):
            path.unlink()


if __name__ == "__main__":
    main(PROGRAM, failfast=True)
