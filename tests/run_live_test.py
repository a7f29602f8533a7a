#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The controller in shadow on a real cluster: examples/continuum on a testbed of seven nodes.

RUDDERFISH names the program; default: build/release/rudderfish. Needs what tests/testbed_test.py needs; where something is
missing it says what and ends with status 77. RUDDERFISH_TESTBED names a testbed that runs already and is left alone.
"""
import contextlib
import http.server
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import trace_server
from live_support import GIVEN, PROGRAM, TOP, Cluster, main
from trace_support import Recorder

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
            config.replace("interval: 5s", "interval: 200ms").replace("cluster: {}", "cluster: {staleness: 3s}")
            .replace("../../policies", str(TOP / "policies")), encoding="utf-8")
        cls.kubeconfig = f"/var/lib/rudderfish-testbed/{NAME}/kubeconfig"

    def ask(self, *arguments):
        done = subprocess.run([PROGRAM, *arguments], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def status(self):
        return json.loads(self.ask("status", "-o", "json"))

    def rows(self):
        return json.loads(self.ask("decisions", "--limit", "100000", "-o", "json"))["decisions"]

    def wait_for(self, condition, what):
        end = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), end, f"{what}\n{(self.folder / 'log').read_text(encoding='utf-8')}")
            time.sleep(0.1)

    def refuse(self, *arguments, kubeconfig=None, status=2):
        """The one line that is said."""
        done = subprocess.run([PROGRAM, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=60, check=False,
                              env={**os.environ, "KUBECONFIG": str(kubeconfig or self.kubeconfig)})
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr, done.stdout

    def log(self):
        return (self.folder / "log").read_text(encoding="utf-8").splitlines()

    @contextlib.contextmanager
    def configured(self, before, after):
        path = self.folder / "rudderfish.yaml"
        config = path.read_text(encoding="utf-8")
        self.assertIn(before, config)
        path.write_text(config.replace(before, after), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(config, encoding="utf-8")

    def account(self, name, rules, token=None):
        """A kubeconfig of a ServiceAccount that may do just this. Its token is in a file of its own."""
        kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}},
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": [
                {"apiGroups": [group], "resources": resources, "verbs": verbs} for group, resources, verbs in rules]},
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
             "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
             "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]}]}))
        cluster = json.loads(kubectl("config", "view", "--raw", "-o", "json"))["clusters"][0]
        (self.folder / f"{name}.token").write_text(token or kubectl("create", "token", name, "-n", "default"), encoding="utf-8")
        path = self.folder / f"{name}.conf"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": name, "clusters": [cluster],
            "users": [{"name": name, "user": {"tokenFile": f"{name}.token"}}],
            "contexts": [{"name": name, "context": {"cluster": cluster["name"], "user": name}}]}), encoding="utf-8")
        return path

    @contextlib.contextmanager
    def running(self, kubeconfig=None, decides=True):
        for path in self.folder.glob("rudderfish.db*"):
            path.unlink()
        with open(self.folder / "log", "wb") as log, subprocess.Popen(
                [PROGRAM, "run"], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "KUBECONFIG": str(kubeconfig or self.kubeconfig)}) as process:
            try:
                self.wait_for(lambda: any("runs:" in line for line in self.log()), "it runs")
                self.wait_for(lambda: not decides or self.rows(), "it decides")
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
            self.wait_for(lambda: self.status()["decisions"]["migration"]["applications"][0]["plans"] > 0, "a plan ends")
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

    def test_a_change_by_others_is_seen_and_replanned(self):
        with self.running():
            self.wait_for(lambda: self.status()["decisions"]["migration"]["applications"][0]["plans"] > 0, "a plan ends")
            plans = self.status()["decisions"]["migration"]["applications"][0]["plans"]
            victim = next(name for name in self.placement() if name.startswith("detection"))
            kubectl("delete", "pod", "-n", "continuum", victim, "--wait=false")
            self.wait_for(lambda: self.status()["decisions"]["migration"]["applications"][0]["changes_seen"] > 0, "the change is seen")
            self.wait_for(lambda: self.status()["decisions"]["migration"]["applications"][0]["plans"] > plans, "a new plan")
            self.wait_for(lambda: self.status()["decisions"]["migration"]["applications"][0]["pods"] == PODS, "the pod is replaced")

    def test_advise_tells_its_plans_as_events_and_touches_nothing(self):
        def told():
            return json.loads(kubectl("get", "events.events.k8s.io", "-n", "continuum", "--field-selector=reason=WouldMove", "-o",
                                      "json"))["items"]
        with self.running():
            self.wait_for(lambda: self.status()["decisions"]["migration"]["applications"][0]["plans"] > 0, "a plan ends")
            self.assertEqual(told(), [], "in shadow nothing is told")
            before = self.placement()
            self.ask("promote", "migration", "--force")
            victim = next(name for name in before if name.startswith("detection"))
            kubectl("delete", "pod", "-n", "continuum", victim, "--wait=false")  # So that it plans again.
            self.wait_for(told, "an Event")
            self.assertEqual(told()[0]["regarding"]["kind"], "Deployment")
            self.assertIn("in advise nothing was touched", told()[0]["note"])
            self.wait_for(lambda: self.rows()[-1]["mode"] == "advise", "its rows say so")
            after = self.placement()
            self.assertEqual({name: after[name] for name in after if name in before and name != victim},
                             {name: before[name] for name in before if name in after and name != victim}, "not even a label")

    def test_a_configmap_holds_it_back(self):
        kubectl("delete", "configmap", "-n", "continuum", "rudderfish-control", "--ignore-not-found")
        with self.running():
            kubectl("create", "configmap", "-n", "continuum", "rudderfish-control", "--from-literal=pause=true")
            self.wait_for(lambda: self.status()["paused"], "paused")
            kubectl("patch", "configmap", "-n", "continuum", "rudderfish-control", "-p", '{"data":{"pause":"maybe"}}')
            self.wait_for(lambda: "expected true or false" in self.status()["control_problem"], "told")
            self.assertTrue(self.status()["paused"], "what cannot be understood is as pause")
            kubectl("delete", "configmap", "-n", "continuum", "rudderfish-control")
            self.wait_for(lambda: not self.status()["paused"], "resumed")

    def test_nothing_is_decided_while_the_api_server_is_dead(self):
        with self.running():
            self.wait_for(lambda: self.status()["decisions"]["migration"]["applications"][0]["plans"] > 0, "a plan ends")
            testbed("stop", "kube-apiserver")
            try:
                self.wait_for(lambda: "more than the limit" in self.status()["decisions"]["migration"]["applications"][0]["problem"], "stale")
                held = len(self.rows())
                time.sleep(1)
                self.assertEqual(len(self.rows()), held)
            finally:
                testbed("start", "kube-apiserver")
            self.wait_for(lambda: not self.status()["decisions"]["migration"]["applications"][0]["problem"], "it goes on")

    def test_nothing_is_decided_while_a_node_of_the_application_is_not_ready(self):
        def problem():
            return self.status()["decisions"]["migration"]["applications"][0]["problem"]
        with self.running():
            self.wait_for(lambda: not problem(), "it decides")
            node = next(node for node, _ in self.placement().values())
            kubectl("patch", "node", node, "--subresource=status", "-p", '{"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}}')
            self.wait_for(lambda: f"{node} is not ready" in problem(), "held back")
            self.wait_for(lambda: not problem(), "its kubelet says that it is ready, and decisions go on")

    def test_dry_run_names_the_rights_that_are_missing(self):
        text = self.ask("run", "--dry-run", "--kubeconfig", self.kubeconfig)
        self.assertRegex(text, r"reached       https://")
        self.assertRegex(text, r"rights        all \d+ that it uses")
        narrow = self.account("narrow", [("", ["nodes", "namespaces"], ["list", "watch"]), ("", ["pods"], ["list"]),
                                         ("apps", ["deployments", "replicasets"], ["list", "watch"])])
        line, text = self.refuse("run", "--dry-run", kubeconfig=narrow)
        self.assertIn('permissions are missing; add to a ClusterRole: {apiGroups: [""], resources: ["pods"], verbs: ["watch"]}', line)
        self.assertNotIn("nodes", line)
        self.assertIn('{apiGroups: ["apps"], resources: ["statefulsets"], verbs: ["list", "watch"]} (without it that is not seen)',
                      text)
        self.assertIn('a Role in namespace continuum: {apiGroups: [""], resources: ["configmaps"], resourceNames: '
                      '["rudderfish-control"], verbs: ["list", "watch"]} (the configuration asks for it)', text)
        line, _ = self.refuse("run", kubeconfig=narrow)
        self.assertIn('GET /api/v1/pods: 403', line)
        self.assertIn('{apiGroups: [""], resources: ["pods"], verbs: ["list", "watch"]}', line)

    def test_credentials_that_are_wrong_are_named(self):
        wrong = self.account("wrong", [], token="nobody")
        for words in (("run",), ("run", "--dry-run"), ("snapshot",)):
            line, _ = self.refuse(*words, kubeconfig=wrong)
            self.assertRegex(line, ': 401 Unauthorized; the credentials are wrong or have expired '
                                   f'\\(context "wrong" of {wrong}\\)')
            self.assertNotIn("nobody", line)

    def test_credentials_that_expire_while_it_runs_hold_it_back_until_there_are_new_ones(self):
        watched = [("", ["nodes", "pods", "namespaces", "persistentvolumes", "persistentvolumeclaims", "configmaps"]),
                   ("apps", ["*"]), ("batch", ["jobs"])]
        rules = [(group, resources, ["list", "watch"]) for group, resources in watched]
        passing = self.account("passing", rules)
        with self.running(passing):
            kubectl("delete", "serviceaccount", "-n", "default", "passing")  # And so its tokens.
            testbed("stop", "kube-apiserver")  # It would keep watches that it has agreed to.
            testbed("start", "kube-apiserver")
            self.wait_for(lambda: any("401 Unauthorized" in line for line in self.log()), "it is told")
            self.wait_for(lambda: "more than the limit" in self.status()["decisions"]["migration"]["applications"][0]["problem"], "stale")
            held = len(self.rows())
            time.sleep(1)
            self.assertEqual(len(self.rows()), held)
            told = [line for line in self.log() if "401 Unauthorized" in line]
            self.assertLessEqual(len(told), 2, told)  # The ConfigMap is watched by itself.
            self.assertIn('the credentials are wrong or have expired (context "passing"', told[0])
            self.account("passing", rules)
            self.wait_for(lambda: not self.status()["decisions"]["migration"]["applications"][0]["problem"], "it goes on")
            self.wait_for(lambda: any("watched in order again" in line for line in self.log()), "that is told")

    def test_what_is_not_served_is_said_once(self):
        with self.running():
            self.assertIn("NodeMetrics (metrics.k8s.io is not served)", self.status()["decisions"]["migration"]["not_seen"])
            told = [line for line in self.log() if "metrics.k8s.io" in line]
            self.assertEqual(len(told), 1, told)
            self.assertIn("NodeMetrics (metrics.k8s.io is not served)", self.ask("status"))

    def test_a_pod_that_requests_more_than_any_node_has_changes_nothing(self):
        """The API server itself stores at most 2^63 - 1; what is beyond is read in unit tests."""
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "vast", "namespace": "default"},
               "spec": {"containers": [{"name": "a", "image": "localhost/pause:1",
                                        "resources": {"requests": {"memory": "1000000Ei"}}}]}}
        with self.running():
            kubectl("apply", "-f", "-", input=json.dumps(pod))
            try:
                time.sleep(2)
                self.assertFalse([one for one in self.status()["decisions"]["migration"]["not_seen"] if "vast" in one])
                self.assertEqual(self.status()["decisions"]["migration"]["applications"][0]["problem"], "")
                self.assertEqual(self.status()["decisions"]["migration"]["applications"][0]["pods"], PODS)
            finally:
                kubectl("delete", "pod", "-n", "default", "vast", "--wait=false")

    def test_a_profile_that_is_killed_leaves_nothing(self):
        words = [PROGRAM, "profile", "--application", "application.yaml", "--for", "60s", "-o", "killed.yaml", "--starts",
                 "killed.jsonl"]
        with subprocess.Popen(words, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "KUBECONFIG": self.kubeconfig}) as process:
            self.assertIn("Watching", process.stderr.readline())
            time.sleep(1)
            process.kill()
        self.assertEqual([path.name for path in self.folder.iterdir() if "killed" in path.name], [])

    def test_of_two_with_one_lease_the_second_stands_by(self):
        kubectl("delete", "lease", "-n", "continuum", "rudderfish", "--ignore-not-found")
        second = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        with self.configured("journal: ", "leader_election: {lease: continuum/rudderfish, duration: 4s}\njournal: "):
            for name in ("application.yaml", "rudderfish.yaml"):
                shutil.copy(self.folder / name, second)
            with self.running() as first, open(second / "log", "wb") as log, subprocess.Popen(
                    [PROGRAM, "run"], cwd=second, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    env={**os.environ, "KUBECONFIG": self.kubeconfig}) as other:
                try:
                    def status():
                        done = subprocess.run([PROGRAM, "status", "-o", "json"], cwd=second, capture_output=True, check=False)
                        return json.loads(done.stdout) if done.returncode == 0 else {}
                    self.wait_for(lambda: status().get("leader"), "the second sees who leads")
                    self.assertEqual(status()["leader"], self.status()["identity"])
                    self.assertEqual((self.status()["leads"], status()["leads"]), (True, False))
                    self.assertEqual(status()["decisions"]["migration"]["applications"][0]["decisions"], 0)
                    self.assertIn("this instance is on standby", subprocess.run([PROGRAM, "status"], cwd=second, capture_output=True,
                                                                      text=True, check=True).stdout)
                    first.kill()
                    began = time.monotonic()
                    self.wait_for(lambda: status()["leads"], "the second leads")
                    self.assertLess(time.monotonic() - began, 6.5)
                    self.wait_for(lambda: status()["decisions"]["migration"]["applications"][0]["decisions"] > 0, "it decides")
                finally:
                    other.kill()

    @unittest.skipUnless(shutil.which("prometheus"), "prometheus is not installed (./setup installs it)")
    def test_prometheus_that_is_down_or_slow_holds_back_what_asks_for_it(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{probe.getsockname()[1]}"
        signals = (f"signals: {{prometheus: ['http://{address}'], period: 200ms, staleness: 3s, "
                   "queries: {detect_ms: {per: cluster, query: vector(50)}}, "
                   "latency: {detect_ms: {application: continuum, endpoint: detect}}}\njournal: ")
        with self.configured("journal: ", signals), self.running(decides=False):
            self.wait_for(lambda: "detect_ms was not measured yet" in self.status()["decisions"]["migration"]["applications"][0]["problem"], "it waits")
            self.assertIsNone(self.status()["decisions"]["migration"]["signals"][0]["age_s"])
            self.wait_for(lambda: address in self.status()["decisions"]["migration"]["signals"][0]["trouble"], "it is named")
            self.assertEqual(self.rows(), [])
            with self.prometheus(address) as process:
                self.wait_for(self.rows, "it decides once there is a measurement")
                self.assertLess(self.status()["decisions"]["migration"]["signals"][0]["age_s"], 3)
                self.assertRegex(self.ask("status"), r"(?m)^detect_ms +1 +\d\.\d s$")
                process.send_signal(signal.SIGSTOP)
                self.wait_for(lambda: self.status()["decisions"]["migration"]["signals"][0]["age_s"] > 4, "it grows old")
                self.assertIn("more than the limit of 3", self.status()["decisions"]["migration"]["applications"][0]["problem"])
                process.send_signal(signal.SIGCONT)
                self.wait_for(lambda: not self.status()["decisions"]["migration"]["applications"][0]["problem"], "it goes on")
            self.wait_for(lambda: sum("what was measured last stays" in line for line in self.log()) >= 2, "told each time")
            told = [line for line in self.log() if "signal" in line and ("stays" in line or "in order" in line)]
            self.assertEqual(["stays" in line for line in told], [i % 2 == 0 for i in range(len(told))], "once each")

    def trace(self, detection_ms):
        """40 requests of the last minute, and no others, as their spans come from the cluster's pods."""
        pods = {"client": [("", "phone")]}
        for name, (node, _) in self.placement().items():
            pods.setdefault(name.rsplit("-", 2)[0], []).append((name, node))
        times = {name: {node: ms for of_it in pods.values() for _, node in of_it} for name, ms in (
            ("client", 0.1), ("aggregator", 2), ("detection", detection_ms), ("db", 1), ("machine-learning", 9))}
        recorder = Recorder(pods, 500_000)
        for i in range(40):
            recorder.request("detect", ("client", times["client"], [[("aggregator", times["aggregator"], [[
                ("detection", times["detection"], [[("db", times["db"], [])], [("machine-learning", times["machine-learning"], [])]])]])]]),
                             int(1e9 * (time.time() - 60 + i)))
        with trace_server.LOCK:
            trace_server.TRACES.clear()
            for line in recorder.otlp("continuum").splitlines():
                trace_server.take(line)

    def test_traces_tell_who_calls_whom_and_are_followed(self):
        with trace_server.LOCK:
            trace_server.TRACES.clear()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), trace_server.Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        path = self.folder / "application.yaml"
        text = path.read_text(encoding="utf-8")
        self.addCleanup(path.write_text, text, encoding="utf-8")
        text = "".join(line for line in text[:text.index("endpoints:")].splitlines(True) if "execution:" not in line)
        path.write_text(text, encoding="utf-8")

        def application():
            return self.status()["decisions"]["migration"]["applications"][0]

        address = f"http://127.0.0.1:{server.server_address[1]}"
        with self.configured("journal: ", f"traces: {{jaeger: '{address}', window: 10m, period: 1s}}\njournal: "), \
                self.running(decides=False):
            self.wait_for(lambda: "its calls are not known" in application()["problem"], "it waits")
            self.assertIn("no trace of that time", application()["traces"]["trouble"])
            self.assertEqual(self.rows(), [])
            self.trace(detection_ms=8)
            self.wait_for(self.rows, "it decides once traces have shown the calls")
            self.assertEqual(application()["problem"], "")
            shape = "client(aggregator(detection(db | machine-learning)))"
            self.assertEqual(application()["traces"]["last_change"], f"detect: new, {shape}")
            self.assertGreater(application()["seen"]["latency_ms"], 15)
            time.sleep(2.5)
            self.assertEqual(application()["traces"]["changes"], 1, "the same traces again change nothing")
            self.trace(detection_ms=24)
            self.wait_for(lambda: application()["traces"]["changes"] == 2, "what has changed is taken over")
            self.assertRegex(application()["traces"]["last_change"], r"detect: detection \d\.?\d* -> 2\d\.?\d* ms")
            self.assertRegex(self.ask("status"), r"(?m)^calls of continuum: from 40 traces, read \ds ago; 2 changes, the last: detect: detection ")
            self.assertTrue(any("calls changed, as traces show: detect: detection" in line for line in self.log()))
            plans = application()["plans"]
            server.shutdown()
            server.server_close()
            self.wait_for(lambda: address in application()["traces"]["trouble"], "that Jaeger is gone is said")
            self.assertEqual(application()["problem"], "", "it goes on by what is known")
            self.assertGreaterEqual(application()["plans"], plans)

    def test_a_slow_policy_of_migration_holds_up_no_placement(self):
        """It thinks for seconds about each decision, one after another; a pod is placed in less than half of that."""
        workload = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "placed", "namespace": "default"}, "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "placed"}}, "template": {"metadata": {"labels": {"app": "placed"}}, "spec": {
                "schedulerName": "rudderfish", "terminationGracePeriodSeconds": 0, "containers": [
                    {"name": "main", "image": "localhost/pause:1", "imagePullPolicy": "Never",
                     "resources": {"requests": {"cpu": "10m", "memory": "8Mi"}}}]}}}}
        placing = "decisions:\n  placement: {mode: enforce, scheduler_name: rudderfish, policy: most-allocated}\n"
        self.addCleanup(kubectl, "delete", "deployment/placed", "--ignore-not-found")
        with self.configured("decisions:\n", placing), \
                self.configured("lookahead:time=100ms,run=", "best-of:samples=10000,run="), \
                self.running(decides=False):
            for replicas in range(1, 13):
                workload["spec"]["replicas"] = replicas
                kubectl("apply", "-f", "-", input=json.dumps(workload))
                time.sleep(0.4)
            of_kind = lambda kind: [row for row in self.rows() if row["kind"] == kind]  # noqa: E731
            self.wait_for(lambda: len(of_kind("placement")) == 12 and len(of_kind("migration")) >= 2, "both kinds decide")
            longest_wait = max(row["waited_ms"] for row in of_kind("placement"))
            decided = [row["written_at_ms"] for row in of_kind("migration")]
            shortest_thought = min(after - before for before, after in zip(decided, decided[1:]))
            self.assertGreater(shortest_thought, 500, "it thinks about each decision, and does not follow a plan that it has")
            self.assertLess(2 * longest_wait, shortest_thought)

    @contextlib.contextmanager
    def prometheus(self, address):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        (folder / "prometheus.yml").write_text("{}\n", encoding="utf-8")
        with open(folder / "log", "wb") as log, subprocess.Popen(
                ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                 f"--web.listen-address={address}"], stdout=log, stderr=log, stdin=subprocess.DEVNULL) as process:
            try:
                yield process
            finally:
                process.kill()


if __name__ == "__main__":
    main(PROGRAM, failfast=True)
