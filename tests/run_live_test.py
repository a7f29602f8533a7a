#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The controller in shadow on a real cluster: examples/continuum on a testbed of seven nodes.

RUDDERFISH names the program; default: build/release/rudderfish. Needs what tests/testbed_test.py needs; where something is
missing it says what and ends with status 77. RUDDERFISH_TESTBED names a testbed that runs already and is left alone.
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from live_support import GIVEN, PROGRAM, TOP, Cluster, main

EXAMPLE = TOP / "examples/continuum"
NAME = GIVEN or "test-run"
CLUSTER = Cluster(NAME)
testbed, kubectl = CLUSTER.testbed, CLUSTER.kubectl
PODS = 11


class RunLive(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        if not GIVEN:
            testbed("down")
            cls.addClassCleanup(testbed, "down")
            testbed("up", "--layers", "cloud:2,edge:4,client:1", "--delays", str(EXAMPLE / "continuum.links"))
        kubectl("apply", "-f", str(EXAMPLE / "manifests.yaml"))
        for workload in ("aggregator", "detection", "db", "machine-learning"):
            kubectl("rollout", "status", "-n", "continuum", f"deployment/{workload}", "--timeout=120s")
        for name in ("application.yaml", "rudderfish.yaml"):
            shutil.copy(EXAMPLE / name, cls.folder)
        config = (cls.folder / "rudderfish.yaml").read_text(encoding="utf-8")
        (cls.folder / "rudderfish.yaml").write_text(
            config.replace("turn: {interval: 5s, rest: 10min, staleness: 30s}",
                           "turn: {interval: 200ms, rest: 10min, staleness: 3s}"), encoding="utf-8")
        cls.kubeconfig = f"/var/lib/rudderfish-testbed/{NAME}/kubeconfig"

    def ask(self, *arguments):
        done = subprocess.run([PROGRAM, *arguments], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def status(self):
        return json.loads(self.ask("status", "-o", "json"))

    def rows(self):
        return json.loads(self.ask("decisions", "-n", "100000", "-o", "json"))["decisions"]

    def wait_for(self, condition, what):
        end = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), end, f"{what}\n{(self.folder / 'log').read_text(encoding='utf-8')}")
            time.sleep(0.1)

    @contextlib.contextmanager
    def running(self):
        for path in self.folder.glob("rudderfish.db*"):
            path.unlink()
        with open(self.folder / "log", "wb") as log, subprocess.Popen(
                [PROGRAM, "run"], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "KUBECONFIG": self.kubeconfig}) as process:
            try:
                self.wait_for(lambda: (self.folder / "rudderfish.sock").exists() and (self.folder / "rudderfish.db").exists()
                              and self.rows(), "it decides")
                yield process
            finally:
                process.kill()
                process.wait()

    @staticmethod
    def placement():
        listed = json.loads(kubectl("get", "pods", "-n", "continuum", "-o", "json"))["items"]
        return {pod["metadata"]["name"]: (pod["spec"].get("nodeName"), pod["metadata"]["resourceVersion"]) for pod in listed}

    def test_it_sees_what_kubectl_shows_and_touches_nothing(self):
        for workload in ("aggregator", "detection", "db", "machine-learning"):  # Other tests may have deleted pods.
            kubectl("rollout", "status", "-n", "continuum", f"deployment/{workload}", "--timeout=60s")
        self.wait_for(lambda: len(self.placement()) == PODS, "pods that were deleted are gone")
        before = self.placement()
        with self.running() as process:
            self.wait_for(lambda: self.status()["applications"][0]["plans"] > 0, "a plan ends")
            rows = self.rows()
            process.send_signal(signal.SIGTERM)
            began = time.monotonic()
            self.assertEqual(process.wait(timeout=10), 0)
            self.assertLess(time.monotonic() - began, 5)
        self.assertEqual(self.placement(), before, "not even a label")
        self.assertEqual(self.rows(), rows)
        for row in rows:
            for move in row["chosen"][:1] if row["step"] == 0 else []:
                self.assertEqual(before[move["pod"]][0], move["from"])
        self.assertIn("nothing was touched", self.ask("explain", f"pod/{rows[0]['chosen'][0]['pod']}"))

    def test_a_change_by_others_is_seen_and_planned_anew(self):
        with self.running():
            self.wait_for(lambda: self.status()["applications"][0]["plans"] > 0, "a plan ends")
            plans = self.status()["applications"][0]["plans"]
            victim = next(name for name in self.placement() if name.startswith("detection"))
            kubectl("delete", "pod", "-n", "continuum", victim, "--wait=false")
            self.wait_for(lambda: self.status()["applications"][0]["changes_seen"] > 0, "the change is seen")
            self.wait_for(lambda: self.status()["applications"][0]["plans"] > plans, "a new plan")
            self.wait_for(lambda: self.status()["applications"][0]["pods"] == PODS, "the pod is replaced")

    def test_a_configmap_holds_it_back(self):
        kubectl("delete", "configmap", "-n", "continuum", "rudderfish-control", "--ignore-not-found")
        with self.running():
            kubectl("create", "configmap", "-n", "continuum", "rudderfish-control", "--from-literal=pause=true")
            self.wait_for(lambda: self.status()["paused"], "paused")
            kubectl("patch", "configmap", "-n", "continuum", "rudderfish-control", "-p", '{"data":{"pause":"maybe"}}')
            self.wait_for(lambda: "expected true or false" in self.status()["control_problem"], "not obeyed")
            self.assertTrue(self.status()["paused"], "what cannot be understood changes nothing")
            kubectl("delete", "configmap", "-n", "continuum", "rudderfish-control")
            self.wait_for(lambda: not self.status()["paused"], "resumed")

    def test_nothing_is_decided_while_the_api_server_is_dead(self):
        with self.running():
            self.wait_for(lambda: self.status()["applications"][0]["plans"] > 0, "a plan ends")
            testbed("stop", "kube-apiserver")
            try:
                self.wait_for(lambda: "more than the limit" in self.status()["applications"][0]["problem"], "stale")
                held = len(self.rows())
                time.sleep(1)
                self.assertEqual(len(self.rows()), held)
            finally:
                testbed("start", "kube-apiserver")
            self.wait_for(lambda: not self.status()["applications"][0]["problem"], "it goes on")


if __name__ == "__main__":
    main(PROGRAM, failfast=True)
