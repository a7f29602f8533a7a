#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`run` with `placement` in its modes beside a real kube-scheduler, on a testbed of hollow nodes: shadow touches nothing and
keeps what it would have done; a promotion without evidence is refused by name; advice is an Event; a canary has its control
group; who has begun to serve goes on; why a pod waits reads as kube-scheduler says it; rights are the least of each mode.

RUDDERFISH names the program; default: build/release/rudderfish. Needs what tests/testbed_test.py needs; where something is
missing it says what and ends with status 77. RUDDERFISH_TESTBED names a testbed that runs already and is left alone.
"""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

from live_support import GIVEN, PROGRAM, TOP, Cluster, main

CLUSTER = Cluster(GIVEN or "test-modes")
NODES = 30
KUBECONFIG = pathlib.Path("/var/lib/rudderfish-testbed") / CLUSTER.name / "kubeconfig"


def deployment(name, replicas, scheduler="default-scheduler", cpu="500m", annotations=None, **spec):
    template = {"tolerations": [{"key": "rudderfish.io/hollow", "operator": "Exists"}], "schedulerName": scheduler, **spec,
                "containers": [{"name": "main", "image": "localhost/pause:1",
                                "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}]}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": {"app": name}, "annotations": annotations or {}},
                                  "spec": template}}}


def pods(name):
    return CLUSTER.get("pods", "-l", f"app={name}")["items"]


def placed(name):
    return [pod for pod in pods(name) if pod["spec"].get("nodeName")]


def events():
    return CLUSTER.get("events.events.k8s.io")["items"]


class Modes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        CLUSTER.start(cls, "--nodes", "0", "--hollow", str(NODES))

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.config = self.folder / "rudderfish.yaml"
        self.running = None
        self.addCleanup(self.end)

    def end(self):
        self.stop()
        CLUSTER.kubectl("delete", "deployments", "--all", "--cascade=background", "--wait=false")
        CLUSTER.kubectl("delete", "pods", "--all", "--force", "--grace-period=0", "--wait=false")
        self.wait_for(lambda: not CLUSTER.get("pods")["items"], "all are gone")

    def start(self, mode="shadow", more="", kubeconfig=KUBECONFIG):
        self.config.write_text(
            f"rudderfish: config/v1\ncluster: {{kubeconfig: {kubeconfig}}}\nplacement: {{mode: {mode}, policy: most-allocated, "
            f"objective: utilisation{more}}}\n", encoding="utf-8")
        with (self.folder / "log").open("a", encoding="utf-8") as log:
            self.running = subprocess.Popen([PROGRAM, "run", "-c", self.config], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)
        self.wait_for(lambda: self.tried("status").returncode == 0 and "standing" in self.status(), "it runs", 60)

    def stop(self):
        if self.running is not None:
            self.running.terminate()
            self.running.wait(timeout=20)
            self.running = None

    def tried(self, *words):
        return subprocess.run([PROGRAM, *words, "-c", self.config], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=60)

    def said(self, *words):
        done = self.tried(*words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def status(self):
        return json.loads(self.said("status", "-o", "json"))

    def comparisons(self, kind):
        listed = json.loads(self.said("decisions", "-n", "10000", "-o", "json"))
        return [row for row in listed.get("comparisons", []) if row["kind"] == kind]

    def wait_for(self, condition, what, limit=60):
        end = time.monotonic() + limit
        while not (found := condition()):
            if time.monotonic() > end:
                log = self.folder / "log"
                self.fail(f"{what}\n{log.read_text(encoding='utf-8')[-4000:] if log.exists() else ''}")
            time.sleep(0.2)
        return found

    def test_1_shadow_beside_kube_scheduler(self):
        self.start()
        CLUSTER.apply(deployment("web", 60), deployment("big", 1, cpu="64"),
                      deployment("out", 3, annotations={"rudderfish.io/do-not-place": "true"}))
        self.wait_for(lambda: len(placed("web")) == 60 and len(placed("out")) == 3, "kube-scheduler places")
        rows = self.wait_for(lambda: (found := self.comparisons("shadow")) and len(found) >= 60 and found, "all are compared")
        self.assertEqual({row["rules"] for row in rows}, {"equal"})
        web = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in placed("web")}
        self.assertEqual({row["pod"]: row["node"] for row in rows}, web, "none of those that are opted out")
        other = [row for row in rows if row["policy_node"] != row["node"]]
        self.assertGreater(len(other), 20, "kube-scheduler spreads, most-allocated fills")
        self.assertTrue(all(row["predicted_gain"] >= -1e-12 for row in rows))
        self.wait_for(lambda: {row["fate"] for row in self.comparisons("shadow")} == {"started"}, "what came of them")
        # Nothing was touched.
        self.assertEqual({event.get("reportingController") for event in events()} & {"rudderfish"}, set())
        # What is told of one.
        told = self.said("explain", f"pod/{other[0]['pod']}")
        for words in ("was put on", "by default-scheduler; most-allocated would have chosen", "Predicted, in ppm of utilisation",
                      "NodeResourcesFit", f"* {other[0]['node']}", f"+ {other[0]['policy_node']}"):
            self.assertIn(words, told)
        # A pod that waits: kube-scheduler's words.
        name = pods("big")[0]["metadata"]["name"]
        told = self.said("explain", f"pod/{name}").splitlines()
        self.assertIn("waits for default-scheduler", told[0])
        described = CLUSTER.kubectl("describe", "pod", name)
        self.assertEqual(told[1], f"0/{NODES} nodes are available: {NODES} Insufficient cpu.")
        self.assertIn(told[1], described)
        self.assertRegex("\n".join(told), rf"{NODES} nodes +Insufficient cpu +hollow-\S+, hollow-\S+, hollow-\S+ and {NODES - 3} more")
        # No promotion without evidence, and what is missing is said.
        done = self.tried("promote", "placement")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("placement stays in shadow; for advise there is missing: 60 of the 500 shadowed decisions", done.stderr)
        standing = self.status()["standing"]
        self.assertEqual(standing["shadowed"]["decisions"], 60)
        self.assertIn("60 of the 500", standing["next"]["missing"][0])
        self.assertIn("missing: 60 of the 500", self.said("status"))

    def test_2_advice_is_an_event_on_who_waits(self):
        self.start()
        self.assertIn("shadow -> advise", self.tried("promote", "placement", "--force").stderr)
        CLUSTER.apply(deployment("told", 1, schedulingGates=[{"name": "example.com/wait"}]))
        note = self.wait_for(lambda: [event["note"] for event in events() if event["reason"] == "PreferredNode"], "advice")[0]
        self.assertRegex(note, rf"most-allocated would put it on hollow-\d+, of {NODES} nodes that may take it")
        self.assertEqual(self.comparisons("advice")[0]["fate"], "advised")
        told = self.said("explain", f"pod/{pods('told')[0]['metadata']['name']}")
        self.assertIn("held by the scheduling gate example.com/wait", told)

    def test_3_a_canary_its_control_group_and_after(self):
        self.start(more=", canary: 0.4")
        CLUSTER.apply(deployment("waits", 2, "rudderfish"))
        time.sleep(2)
        self.assertEqual(placed("waits"), [], "in shadow nothing is placed")
        self.assertEqual(self.status()["placement"]["waiting_for_us"], 2)
        self.said("promote", "placement", "--to", "canary", "--force")
        CLUSTER.apply(deployment("mine", 60, "rudderfish"))
        self.wait_for(lambda: len(placed("mine")) == 60 and len(placed("waits")) == 2, "all are placed")
        groups = {}

        def grouped():
            groups["canary"], groups["control"] = self.comparisons("canary"), self.comparisons("control")
            return len(groups["canary"]) + len(groups["control"]) == 62
        self.wait_for(grouped, "both groups are kept")
        self.assertGreater(len(groups["canary"]), 10)
        self.assertGreater(len(groups["control"]), 20)
        nodes = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in placed("mine") + placed("waits")}
        for name, column in (("canary", "policy_node"), ("control", "baseline_node")):
            for row in groups[name]:
                self.assertEqual(nodes[row["pod"]], row[column], row)
        # A start anew keeps the mode, and the groups.
        self.stop()
        self.start(more=", canary: 0.4")
        standing = self.status()["standing"]
        self.assertEqual(standing["mode"], "canary")
        self.assertEqual(standing["canary"]["canary"]["pods"], len(groups["canary"]))
        # Back in shadow the pods that name us are placed all the same, none by the policy.
        self.said("demote", "placement", "--to", "shadow")
        CLUSTER.apply(deployment("after", 20, "rudderfish"))
        self.wait_for(lambda: len(placed("after")) == 20, "who has begun to serve goes on")
        self.assertEqual(len(self.comparisons("canary")), len(groups["canary"]))
        self.said("pause")
        CLUSTER.apply(deployment("held", 1, "rudderfish"))
        time.sleep(2)
        self.assertEqual(placed("held"), [], "paused is paused")
        self.said("resume")
        self.wait_for(lambda: len(placed("held")) == 1, "resumed")

    def test_4_rights_are_the_least_of_each_mode(self):
        role = lambda mode: (TOP / f"deploy/placement/{mode}.yaml").read_text(encoding="utf-8")
        CLUSTER.kubectl("apply", "-f", "-", input=(
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: rudderfish}\n---\n"
            "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: rudderfish, namespace: rudderfish}\n---\n" + role("shadow")))
        cluster = json.loads(CLUSTER.kubectl("config", "view", "--raw", "-o", "json"))["clusters"][0]
        token = CLUSTER.kubectl("create", "token", "rudderfish", "-n", "rudderfish").strip()
        account = self.folder / "account"
        account.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "pod", "clusters": [cluster],
            "users": [{"name": "pod", "user": {"token": token}}],
            "contexts": [{"name": "pod", "context": {"cluster": cluster["name"], "user": "pod"}}]}), encoding="utf-8")
        account.chmod(0o600)
        self.start(kubeconfig=account)
        CLUSTER.apply(deployment("web", 5))
        self.wait_for(lambda: len(self.comparisons("shadow")) == 5, "reading is enough for shadow")
        self.stop()
        for mode, rule in (("advise", "events"), ("canary", "pods/binding"), ("enforce", "pods/binding")):
            self.config.write_text(f"rudderfish: config/v1\ncluster: {{kubeconfig: {account}}}\nplacement: {{mode: {mode}}}\n",
                                   encoding="utf-8")
            done = self.tried("run", "--dry-run")
            self.assertNotEqual(done.returncode, 0, mode)
            self.assertIn(rule, done.stderr)
            CLUSTER.kubectl("apply", "-f", "-", input=role("advise" if mode == "advise" else "enforce"))
            self.wait_for(lambda: self.tried("run", "--dry-run").returncode == 0, f"the rights of {mode}", 10)
            if mode == "advise":
                can = subprocess.run(["kubectl", "--kubeconfig", account, "auth", "can-i", "create", "pods/binding"],
                                     capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL)
                self.assertEqual(can.stdout.strip(), "no")
            else:
                CLUSTER.kubectl("delete", "clusterrolebinding", "rudderfish-scheduler", "--ignore-not-found")


if __name__ == "__main__":
    os.umask(0o022)
    main(PROGRAM)
