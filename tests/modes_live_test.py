#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`run` with `placement` in its modes beside a real kube-scheduler, on a testbed of hollow nodes: shadow touches nothing and
keeps what it would have done; a promotion without evidence is refused by name; advice is an Event; a canary has its control
group, and ends by itself where it does worse; who has begun to serve goes on; why a pod waits reads as kube-scheduler says it;
rights are the least of each mode. At last the commands of README.md and docs/placement.md, from shadow to enforce by evidence alone.

RUDDERFISH names the program; default: build/release/rudderfish. Needs what tests/testbed_test.py needs; where something is
missing it says what and ends with status 77. RUDDERFISH_TESTBED names a testbed that runs already and is left alone.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from live_support import GIVEN, PROGRAM, TESTBED, TOP, Cluster, commands_of, main

CLUSTER = Cluster(GIVEN or "test-modes")
NODES = 800
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


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


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
        self.is_last = False
        self.addCleanup(self.end)

    def end(self):
        self.stop()
        if self.is_last and not GIVEN:
            return  # Its many pods go with the cluster.
        CLUSTER.kubectl("delete", "deployments", "--all", "--cascade=background", "--wait=false")
        CLUSTER.kubectl("delete", "pods", "--all", "--force", "--grace-period=0", "--wait=false")
        self.wait_for(lambda: not CLUSTER.get("pods")["items"], "all are gone")

    def start(self, mode="shadow", more="", kubeconfig=KUBECONFIG, objective="utilisation", sections=""):
        self.config.write_text(
            f"rudderfish: config/v1\ncluster: {{kubeconfig: {kubeconfig}}}\ndecisions: {{placement: {{mode: {mode}, policy: most-allocated, "
            f"objective: {objective}{more}}}}}\n{sections}", encoding="utf-8")
        with (self.folder / "log").open("a", encoding="utf-8") as log:
            self.running = subprocess.Popen([PROGRAM, "run", "-c", self.config], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)
        self.wait_for(lambda: self.tried("status").returncode == 0 and "placement" in self.status()["decisions"], "it runs", 60)

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
        listed = json.loads(self.said("decisions", "--limit", "10000", "-o", "json"))
        return [row for row in listed["decisions"] if row["mode"] == kind]

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
        self.wait_for(lambda: {row["fate"] for row in self.comparisons("shadow")} == {"started"}, "their outcomes")
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
        self.assertIn("placement stays in shadow; missing for advise: 60 of the 500 shadowed decisions", done.stderr)
        standing = self.status()["decisions"]["placement"]["standing"]
        self.assertEqual(standing["evidence"]["shadowed"]["decisions"], 60)
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
        self.assertEqual(self.status()["decisions"]["placement"]["waiting_for_us"], 2)
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
        # A restart keeps the mode and the groups.
        self.stop()
        self.start(more=", canary: 0.4")
        standing = self.status()["decisions"]["placement"]["standing"]
        self.assertEqual(standing["mode"], "canary")
        self.assertEqual(standing["evidence"]["canary"]["canary"]["pods"], len(groups["canary"]))
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

    def test_3_a_canary_that_does_worse_ends_by_itself_and_tells(self):
        # For balance, filling nodes is worse than kube-scheduler's scores, which the control group goes by.
        self.start(more=", canary: 0.5, settle: 1s", objective="balance")
        self.said("promote", "placement", "--to", "canary", "--force")
        CLUSTER.apply(deployment("mine", 120, "rudderfish", cpu="2"))
        self.wait_for(lambda: len(placed("mine")) == 120, "all are placed")
        told = self.wait_for(lambda: [event for event in events() if event["reason"] == "CanaryEnded"], "an Event")
        self.assertEqual(len(told), 1)
        self.assertEqual((told[0]["type"], told[0]["regarding"]["kind"]), ("Warning", "Pod"))
        self.assertIn(told[0]["regarding"]["name"], {row["pod"] for row in self.comparisons("canary")})
        self.assertRegex(told[0]["note"], "^placement is back in shadow: the canary did worse than its control group: a pod changes")
        standing = self.status()["decisions"]["placement"]["standing"]
        self.assertEqual((standing["mode"], standing["serves"]), ("shadow", True))
        self.assertIn("did worse than its control group", standing["why"])
        CLUSTER.apply(deployment("after", 20, "rudderfish"))
        self.wait_for(lambda: len(placed("after")) == 20, "who has begun to serve goes on")
        self.stop()  # What was compared is written.
        self.assertEqual([row["pod"] for row in self.comparisons("canary") if row["pod"].startswith("after-")], [],
                         "but no more by the policy")

    def test_3_what_was_promoted_outlives_its_pod(self):
        CLUSTER.apply({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {},
                       "metadata": {"name": "rudderfish-modes", "namespace": "default"}})
        self.addCleanup(CLUSTER.kubectl, "delete", "lease", "rudderfish-modes")
        seat = "leader_election: {lease: default/rudderfish-modes, duration: 3s}\n"
        self.start(more=", canary: 0.4", sections=seat)
        self.wait_for(lambda: self.status()["leads"], "it leads")
        self.said("promote", "placement", "--to", "canary", "--force")
        self.running.kill()
        self.running.wait()
        self.running = None
        for file in self.folder.glob("rudderfish.db*"):
            file.unlink()
        CLUSTER.apply(deployment("waits", 5, "rudderfish"))
        self.start(more=", canary: 0.4", sections=seat)
        self.wait_for(lambda: len(placed("waits")) == 5, "it goes on as the Lease says")
        self.assertEqual(self.status()["decisions"]["placement"]["standing"]["mode"], "canary")

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
            self.config.write_text(f"rudderfish: config/v1\ncluster: {{kubeconfig: {account}}}\ndecisions: {{placement: {{mode: {mode}}}}}\n",
                                   encoding="utf-8")
            done = self.tried("run", "--dry-run")
            self.assertNotEqual(done.returncode, 0, mode)
            self.assertIn(rule, done.stderr)
            CLUSTER.kubectl("apply", "-f", "-", input=role("advise" if mode == "advise" else "enforce"))
            self.wait_for(lambda: self.tried("run", "--dry-run").returncode == 0, f"the rights of {mode}", 10)
            if mode == "advise":
                self.advises_as(account)
            else:
                if mode == "canary":
                    self.tries_as(account)
                CLUSTER.kubectl("delete", "clusterrolebinding", "rudderfish-scheduler", "--ignore-not-found")

    def advises_as(self, account):
        can = subprocess.run(["kubectl", "--kubeconfig", account, "auth", "can-i", "create", "pods/binding"],
                             capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL)
        self.assertEqual(can.stdout.strip(), "no")
        self.start("advise", kubeconfig=account)
        CLUSTER.apply(deployment("advised", 1, schedulingGates=[{"name": "example.com/wait"}]))
        name = self.wait_for(lambda: pods("advised"), "it is there")[0]["metadata"]["name"]
        self.wait_for(lambda: [event for event in events() if event["reason"] == "PreferredNode"
                               and event["regarding"]["name"] == name], "its rights are enough to advise")
        self.stop()

    def tries_as(self, account):
        self.start("canary", ", canary: 0.5", kubeconfig=account)
        CLUSTER.apply(deployment("tried", 12, "rudderfish"), deployment("big", 1, "rudderfish", cpu="64"))
        self.wait_for(lambda: len(placed("tried")) == 12, "its rights are enough for a canary")
        self.wait_for(lambda: len(self.comparisons("canary")) + len(self.comparisons("control")) == 12, "both groups are kept")
        self.assertTrue(self.comparisons("canary"))
        names = {pod["metadata"]["name"] for pod in pods("tried")}
        self.wait_for(lambda: names <= {event["regarding"]["name"] for event in events() if event["reason"] == "Scheduled"}, "Events")
        waits = pods("big")[0]["metadata"]["name"]
        self.wait_for(lambda: "Insufficient cpu" in CLUSTER.kubectl("get", "pod", waits, "-o", "jsonpath={.status.conditions}"),
                      "a condition")
        self.stop()

    def test_5_the_commands_of_the_readme_lead_from_shadow_to_enforce_by_evidence_alone(self):
        self.is_last = True
        self.jobs = []
        self.addCleanup(self.end_jobs)
        (self.folder / "bin").mkdir()
        (self.folder / "bin/rudderfish").symlink_to(PROGRAM)
        kubectl = self.folder / "bin/kubectl"
        kubectl.write_text(f"#!/bin/sh\nexec {TESTBED} kubectl --name {CLUSTER.name} -- \"$@\"\n", encoding="utf-8")
        kubectl.chmod(0o755)
        (self.folder / "testbed").symlink_to(TOP / "testbed")
        shutil.copytree(TOP / "examples/placement", self.folder / "examples/placement",
                        ignore=shutil.ignore_patterns("*.db*", "*.sock", "scheduler.yaml"))
        self.config = self.folder / "examples/placement/rudderfish.yaml"
        shipped = self.config.read_text(encoding="utf-8")
        self.config.write_text(shipped.replace("settle: 10s", "settle: 3s").replace(":8888", f":{free_port()}"), encoding="utf-8")
        self.environment = {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "NO_COLOR": "1",
                            "KUBECONFIG": str(KUBECONFIG)}
        self.place = self.folder
        commands = commands_of(TOP / "README.md", "## Place pods")
        commands += commands_of(TOP / "docs/placement.md", "## From advise to enforce")  # Continues there.
        self.assertNotIn("--force", " ".join(commands))
        for command in commands:
            self.step(command)
        # What README says of it.
        self.assertEqual({row["rules"] for row in self.comparisons("shadow")}, {"equal"})
        enforced = self.comparisons("enforced")
        self.assertGreaterEqual(len(enforced), 10)
        self.assertEqual([row for row in enforced if row["node"] != row["policy_node"]], [])

    def end_jobs(self):
        for job in reversed(self.jobs):
            if job.poll() is None:
                job.send_signal(signal.SIGTERM)
                job.wait(timeout=20)
        self.jobs = []

    def step(self, command):
        """One command of README.md, on this test's cluster."""
        expected = int(found[1]) if (found := re.search(r"# exits (\d)", command)) else 0
        words = shlex.split(command, comments=True)
        command = re.sub(r"\s+#.*", "", command)
        if words[0] == "cd":
            self.place = (self.place / words[1]).resolve()
        elif words[0] == "export":
            self.assertEqual(words[1], "KUBECONFIG=/var/lib/rudderfish-testbed/default/kubeconfig")
        elif words[0] == "testbed/testbed":
            self.assertIn(words[1:], (["up", "--nodes", "0", "--hollow", str(NODES)], ["down"]))
        elif words[0] == "sleep":
            self.wait_for(lambda: not self.status()["decisions"]["placement"]["standing"]["next"]["missing"], f"{command}: nothing is missing")
        elif words[0] == "kill":
            told = self.status()
            self.assertEqual((told["decisions"]["placement"]["standing"]["mode"], told["decisions"]["placement"]["standing"]["why"]),
                             ("enforce", "promoted from canary by the command line"))
            self.assertGreaterEqual(told["decisions"]["placement"]["standing"]["evidence"]["shadowed"]["decisions"], 500)
            self.assertGreaterEqual(told["extender"]["answered"], 25)
            self.end_jobs()
        elif words[-1] == "&":
            self.begin(command.replace("testbed scheduler", f"testbed scheduler --name {CLUSTER.name}"))
        else:
            if named := re.search(r"pod/([a-z]+)-\S+", command):  # That of the page had another name.
                newest = max(placed(named[1]), key=lambda pod: pod["metadata"]["creationTimestamp"])
                command = command.replace(named[0], f"pod/{newest['metadata']['name']}")
            wanted = "Predicted" if "explain" in words else ""  # Kept a moment after the Binding.

            def done():
                self.last = self.run_in_place(command)
                return self.last.returncode == expected and wanted in self.last.stdout
            if words[:2] == ["rudderfish", "promote"]:
                self.assertTrue(done(), f"{command}\n{self.last.stdout}{self.last.stderr}")
            else:
                self.wait_for(done, command)
            print(f"# {command}\n{self.last.stdout}{self.last.stderr}")

    def begin(self, command):
        with (self.folder / "log").open("a", encoding="utf-8") as log:
            self.jobs.append(subprocess.Popen(["bash", "-c", f"exec {command.removesuffix('&')}"], cwd=self.place,
                                              env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        self.wait_for(lambda: self.tried("status").returncode == 0 and "placement" in self.status()["decisions"], "it runs")

    def run_in_place(self, command):
        return subprocess.run(["bash", "-c", command], cwd=self.place, env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=600)


if __name__ == "__main__":
    os.umask(0o022)
    main(PROGRAM)
