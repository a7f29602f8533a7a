#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/ as its users run it, on a testbed of four nodes: image, kustomize base, probes and metrics, rights, leadership.

RUDDERFISH names the program; default: build/release/rudderfish. Needs what tests/testbed_test.py needs; where something is
missing it says what and ends with status 77. RUDDERFISH_TESTBED names a testbed that runs already and is left alone.
"""
import contextlib
import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from live_support import GIVEN, PROGRAM, TOP, Cluster, main

CLUSTER = Cluster(GIVEN or "test-deploy")
testbed, kubectl, listed = CLUSTER.testbed, CLUSTER.kubectl, CLUSTER.get
SPACE = "rudderfish"
USER = f"system:serviceaccount:{SPACE}:rudderfish"
READING = {"get", "list", "watch"}
KILLS = int(os.environ.get("RUDDERFISH_LEADER_KILLS", "2"))


def unix_seconds(date):
    return datetime.datetime.fromisoformat(date.replace("Z", "+00:00")).timestamp()


class Deploy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        # A node has the cores of the machine: four hold the application even where that is two.
        policy = cls.folder / "audit.yaml"
        policy.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived, ResponseStarted]\nrules:\n"
                          f"- {{level: Metadata, users: ['{USER}']}}\n- {{level: None}}\n", encoding="utf-8")
        CLUSTER.start(cls, "--layers", "cloud:1,edge:3", "--audit", str(policy))
        archive = cls.folder / "image.tar"
        subprocess.run([TOP / "deploy/image", "-o", archive, "--binary", PROGRAM], check=True, stdin=subprocess.DEVNULL)
        testbed("load", str(archive))
        kubectl("apply", "-f", str(TOP / "examples/continuum/manifests.yaml"))
        for workload in ("aggregator", "detection", "db", "machine-learning"):
            kubectl("rollout", "status", "-n", "continuum", f"deployment/{workload}", "--timeout=120s")
        cls.apply(TOP / "deploy/base")

    @staticmethod
    def apply(folder):
        kubectl("apply", "-k", str(folder))
        kubectl("rollout", "status", "-n", SPACE, "deployment/rudderfish", "--timeout=120s")

    def overlay(self, replicas=1, changes=()):
        """deploy/base with more replicas, and other lines in rudderfish.yaml."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        config = (TOP / "deploy/base/rudderfish.yaml").read_text(encoding="utf-8")
        for before, after in changes:
            self.assertIn(before, config)
            config = config.replace(before, after)
        (folder / "rudderfish.yaml").write_text(config, encoding="utf-8")
        (folder / "kustomization.yaml").write_text(
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: rudderfish\n"
            f"resources: [{os.path.relpath(TOP / 'deploy/base', folder.resolve())}]\n"
            "configMapGenerator: [{name: rudderfish-config, behavior: merge, files: [rudderfish.yaml]}]\n"
            f"replicas: [{{name: rudderfish, count: {replicas}}}]\n", encoding="utf-8")
        return folder

    def wait_for(self, condition, what, limit=60):
        end = time.monotonic() + limit
        while not (found := condition()):
            if time.monotonic() > end:
                self.fail(f"{what}\n" + kubectl("logs", "-n", SPACE, "-l", "app.kubernetes.io/name=rudderfish", "--prefix"))
            time.sleep(0.1)
        return found

    @staticmethod
    def pods():
        return [pod for pod in listed("pods", "-n", SPACE)["items"] if "deletionTimestamp" not in pod["metadata"]]

    @staticmethod
    def process_of(pod):
        """The number of the pod's program on this machine."""
        uid = pod["metadata"]["uid"]
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if (entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(b"/bin/rudderfish\0run")
                        and uid in (entry / "cgroup").read_text(encoding="utf-8").replace("_", "-")):
                    return int(entry.name)
        return None

    @staticmethod
    def inside(pod, *words):
        return kubectl("exec", "-n", SPACE, pod["metadata"]["name"], "--", "rudderfish", *words)

    def rows(self, pod):
        return json.loads(self.inside(pod, "decisions", "--limit", "1000000", "-o", "json"))["decisions"]

    def raw(self, pod, path):
        return kubectl("get", "--raw", f"/api/v1/namespaces/{SPACE}/pods/{pod['metadata']['name']}:9090/proxy{path}")

    def test_1_it_runs_restricted_and_is_read(self):
        level = listed("namespace", SPACE)["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
        self.assertEqual(level, "restricted")
        pod = self.pods()[0]
        self.assertEqual(self.raw(pod, "/readyz"), "ok")
        status = pathlib.Path(f"/proc/{self.process_of(pod)}/status").read_text(encoding="utf-8")
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        self.assertEqual(set(fields["Uid"].split()), {"65532"})
        self.assertEqual(int(fields["CapEff"], 16), 0)
        self.assertEqual(fields["Seccomp"].strip(), "2")
        shell = CLUSTER.tried("kubectl", "--", "exec", "-n", SPACE, pod["metadata"]["name"], "--", "sh", "-c", "true")
        self.assertNotEqual(shell.returncode, 0, "there is no shell")
        self.wait_for(lambda: self.rows(pod), "decisions")
        self.assertIn("recorded", self.inside(pod, "decisions"))
        story = self.inside(pod, "status")
        self.assertIn("leader     this instance, according to the Lease rudderfish/rudderfish", story)
        for line in kubectl("logs", "-n", SPACE, pod["metadata"]["name"]).splitlines():
            self.assertEqual(set(json.loads(line)), {"time", "level", "message"})
            if "metrics.k8s.io is not served" not in line:
                self.assertEqual(json.loads(line)["level"], "info", line)

    def test_2_metrics_come_through_the_api_server(self):
        pod = self.pods()[0]
        self.wait_for(lambda: "rudderfish_plans_total" in self.raw(pod, "/metrics"), "a plan")
        text = kubectl("get", "--raw", f"/api/v1/namespaces/{SPACE}/services/rudderfish:http/proxy/metrics")
        told = {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line[0] != "#"}
        self.assertEqual(told['rudderfish_mirror_objects{resource="nodes"}'], 4)
        self.assertEqual(told['rudderfish_watch_failures_total{resource="pods"}'], 0)
        self.assertEqual(told["rudderfish_leader"], 1)
        self.assertGreater(told["rudderfish_lease_renewals_total"], 0)
        self.assertLess(told['rudderfish_state_age_seconds{application="continuum"}'], 30)
        if shutil.which("promtool") is None:
            self.skipTest("promtool is not installed (./setup installs it)")
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_3_nothing_may_be_written_but_its_own_lease(self):
        listing = kubectl("auth", "can-i", "--list", "--as", USER, "-n", SPACE, "--no-headers")
        for line in listing.splitlines():
            verbs = set(line[line.rindex("[") + 1:line.rindex("]")].split())
            if verbs <= READING or line.startswith("selfsubject"):
                continue
            self.assertEqual(line.split()[0], "leases.coordination.k8s.io", line)
            self.assertIn("[rudderfish]", line)
            self.assertEqual(verbs, {"get", "update"})
        account = self.as_the_pod()
        pod = listed("pods", "-n", "continuum", "-l", "app=detection")["items"][0]["metadata"]["name"]
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "continuum"}}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "other", "namespace": SPACE}}
        there = ("-n", "continuum")
        before = listed("pods", "-n", "continuum")["items"]
        for words, text in [
                (("run", "new", "--image=localhost/pause:1", *there), None), (("delete", "pod", pod, *there), None),
                (("label", "pod", pod, "a=b", *there), None), (("exec", pod, *there, "--", "true"), None),
                (("create", "--raw", f"/api/v1/namespaces/continuum/pods/{pod}/eviction", "-f", "-"), json.dumps(eviction)),
                (("scale", "deployment/detection", "--replicas=9", *there), None),
                (("rollout", "restart", "deployment/detection", *there), None),
                (("delete", "deployment", "detection", *there), None), (("label", "node", "edge-1", "a=b"), None),
                (("cordon", "edge-1"), None), (("delete", "node", "edge-1"), None),
                (("label", "namespace", "continuum", "a=b"), None), (("delete", "namespace", "continuum"), None),
                (("get", "secrets", "-A"), None), (("get", "secrets", "-n", SPACE), None),
                (("get", "configmaps", "-A"), None), (("get", "configmap", "-n", "kube-system", "kube-root-ca.crt"), None),
                (("create", "configmap", "rudderfish-control", "--from-literal=pause=true", "-n", SPACE), None),
                (("create", "configmap", "c", *there), None), (("create", "-f", "-"), json.dumps(lease)),
                (("label", "lease", "edge-1", "a=b", "-n", "kube-node-lease"), None),
                (("delete", "lease", "rudderfish", "-n", SPACE), None),
                (("label", "lease", "rudderfish", "a=b", "-n", SPACE), None),
                (("create", "token", "rudderfish", "-n", SPACE), None), (("get", "nodes", "--as", "system:admin"), None),
                (("create", "clusterrolebinding", "more", "--clusterrole=cluster-admin", "--user=rudderfish"), None),
                (("logs", pod, *there), None), (("get", "--raw", "/api/v1/nodes/edge-1/proxy/pods"), None),
        ]:
            done = subprocess.run(["kubectl", "--kubeconfig", account, *words], input=text, capture_output=True, text=True,
                                  check=False, timeout=60)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertRegex(done.stderr + done.stdout, "(?i)forbidden", words)
        keys = [(one["metadata"]["name"], one["metadata"]["resourceVersion"]) for one in before]
        self.assertEqual([(one["metadata"]["name"], one["metadata"]["resourceVersion"])
                          for one in listed("pods", "-n", "continuum")["items"]], keys)

    def as_the_pod(self):
        """The path of a kubeconfig with the rights of the pod's own ServiceAccount."""
        cluster = json.loads(kubectl("config", "view", "--raw", "-o", "json"))["clusters"][0]
        path = self.folder / "account"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "pod", "clusters": [cluster],
            "users": [{"name": "pod", "user": {"token": kubectl("create", "token", "rudderfish", "-n", SPACE).strip()}}],
            "contexts": [{"name": "pod", "context": {"cluster": cluster["name"], "user": "pod"}}]}), encoding="utf-8")
        path.chmod(0o600)
        return path

    def test_4_sigterm_ends_it_and_gives_the_lease_away(self):
        pod = self.pods()[0]
        restarts = pod["status"]["containerStatuses"][0]["restartCount"]
        process = self.process_of(pod)
        began = time.monotonic()
        os.kill(process, signal.SIGTERM)
        self.wait_for(lambda: self.process_of(pod) != process, "it ends", 10)
        self.assertLess(time.monotonic() - began, 5)

        def ended():
            state = self.pods()[0]["status"]["containerStatuses"][0]
            return state["restartCount"] > restarts and state["ready"] and state
        state = self.wait_for(ended, "it is restarted")
        self.assertEqual(state["lastState"]["terminated"]["exitCode"], 0)
        # A Lease that was given away is taken at once; one that was not, after 15 s.
        begun = unix_seconds(state["state"]["running"]["startedAt"])
        self.assertLess(unix_seconds(listed("lease", "-n", SPACE, "rudderfish")["spec"]["acquireTime"]) - begun, 8)

    def test_5_a_missing_right_is_one_line_with_the_rule_to_add(self):
        role = listed("clusterrole", "rudderfish-shadow")
        narrow = json.loads(json.dumps(role))
        narrow["rules"][0]["resources"].remove("nodes")
        kubectl("replace", "-f", "-", input=json.dumps(narrow))
        try:
            kubectl("delete", "pod", "-n", SPACE, "--all", "--wait=true")

            def told():
                log = kubectl("logs", "-n", SPACE, "deployment/rudderfish", "--tail=20")
                return [line for line in log.splitlines() if 'resources: [\\"nodes\\"]' in line or 'resources: ["nodes"]' in line]
            line = self.wait_for(told, "the rule is named")[-1]
            self.assertIn("add to a ClusterRole", line)
        finally:
            del role["metadata"]["resourceVersion"]
            kubectl("replace", "-f", "-", input=json.dumps(role))
        kubectl("delete", "pod", "-n", SPACE, "--all", "--wait=true")
        kubectl("rollout", "status", "-n", SPACE, "deployment/rudderfish", "--timeout=60s")

    def test_6_a_leader_that_is_killed_is_followed_and_never_two_write(self):
        for lease, kills in (("15s", 1), ("5s", KILLS)):
            self.apply(self.overlay(2, [("duration: 15s", f"duration: {lease}"),
                                        ("interval: 5s\n    rest: 10min", "interval: 100ms\n    rest: 50ms")]))
            self.wait_for(lambda: len(self.pods()) == 2, "two pods")
            for _ in range(kills):
                self.kill_the_leader(float(lease[:-1]))
        self.check_that_one_wrote_after_the_other(1 + kills)
        self.freeze_the_leader(float(lease[:-1]))
        self.check_that_one_wrote_after_the_other(2 + kills)

    def check_that_one_wrote_after_the_other(self, terms):
        written = sorted((row["written_at_ms"], pod["metadata"]["name"]) for pod in self.pods() for row in self.rows(pod))
        turns = [name for i, (_, name) in enumerate(written) if i == 0 or written[i - 1][1] != name]
        self.assertGreater(len(written), 30)
        self.assertLessEqual(len(turns), terms, "rows of both in turn: two have led at once")
        self.assertEqual(len(set(turns)), 2)

    def leader(self):
        def leader():
            holder = listed("lease", "-n", SPACE, "rudderfish")["spec"].get("holderIdentity", "")
            return [pod for pod in self.pods() if holder.startswith(pod["metadata"]["name"] + "_") and self.process_of(pod)]
        return self.wait_for(leader, "one leads")[0]

    def freeze_the_leader(self, lease_seconds):
        """It stands still for longer than its lease, and then goes on as if nothing had been."""
        led = self.leader()
        process = self.process_of(led)
        self.wait_for(lambda: self.rows(led), "it decides")
        os.kill(process, signal.SIGSTOP)
        try:
            name = led["metadata"]["name"]
            self.wait_for(lambda: self.leader()["metadata"]["name"] != name, "another leads", lease_seconds + 30)
            other = self.leader()
            frozen = len(self.rows(other))
            self.wait_for(lambda: len(self.rows(other)) > frozen, "it decides")
        finally:
            os.kill(process, signal.SIGCONT)
        time.sleep(2)  # In which it could write some forty rows.
        self.assertEqual(self.process_of(led), process)

    def kill_the_leader(self, lease_seconds):
        led = self.leader()
        self.wait_for(lambda: all(pod["status"]["containerStatuses"][0]["ready"] for pod in self.pods()), "both are ready")
        self.wait_for(lambda: self.rows(led), "it decides")
        before = listed("lease", "-n", SPACE, "rudderfish")["spec"]["holderIdentity"]
        killed = time.time()
        os.kill(self.process_of(led), signal.SIGKILL)
        spec = self.wait_for(lambda: (now := listed("lease", "-n", SPACE, "rudderfish")["spec"])["holderIdentity"] != before
                             and now, "another leads", lease_seconds + 30)
        taken = unix_seconds(spec["acquireTime"]) - killed
        print(f"lease of {lease_seconds:g} s: taken over {taken:.1f} s after kill -9", file=sys.stderr)
        self.assertLess(taken, lease_seconds + 2)
        other = next(pod for pod in self.pods() if spec["holderIdentity"].startswith(pod["metadata"]["name"] + "_"))
        self.wait_for(lambda: any(row["written_at_ms"] > killed * 1000 for row in self.rows(other)), "it decides")

    def test_7_advise_tells_plans_as_events(self):
        self.assertEqual(listed("events.events.k8s.io", "-n", "continuum", "--field-selector=reason=WouldMove")["items"], [])
        self.apply(TOP / "deploy/overlays/advise")
        events = self.wait_for(lambda: listed("events.events.k8s.io", "-n", "continuum",
                                              "--field-selector=reason=WouldMove")["items"], "an Event")
        self.assertEqual(events[0]["regarding"]["kind"], "Deployment")
        self.assertIn("nothing was touched", events[0]["note"])
        self.assertIn("WouldMove", kubectl("describe", "deployment", "-n", "continuum", events[0]["regarding"]["name"]))

    def test_7b_it_moves_pods_by_the_rights_of_the_overlay(self):
        kubectl("apply", "-k", str(TOP / "deploy/moves"))
        self.apply(TOP / "deploy/overlays/moves")
        pod = self.pods()[0]
        self.wait_for(lambda: self.rows(pod), "it plans")
        self.inside(pod, "promote", "migration", "--to", "enforce", "--force")
        done = self.wait_for(lambda: [row for row in self.rows(pod) if row["fate"] == "done"], "a pod is moved", limit=120)
        self.assertEqual(done[0]["mode"], "enforce")
        self.assertTrue(self.wait_for(lambda: listed("events.events.k8s.io", "-n", "continuum", "--field-selector=reason=Moved")["items"],
                                      "an Event"))

    def test_8_a_journal_on_a_volume_outlives_the_pod(self):
        """A testbed has no provisioner: the volume is a folder of a node."""
        testbed("exec", "edge-1", "--", "mkdir", "-p", "/var/lib/journal")
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["edge-1"]}]}
        kubectl("apply", "-f", "-", input=json.dumps({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "journal"},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "local": {"path": "/var/lib/journal"},
                     "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}}))
        kubectl("delete", "deployment", "-n", SPACE, "rudderfish", "--wait=true")
        self.apply(TOP / "deploy/overlays/persistent")
        kept = self.wait_for(lambda: self.rows(self.pods()[0]), "it decides")
        kubectl("delete", "pod", "-n", SPACE, "--all", "--wait=true")
        kubectl("rollout", "status", "-n", SPACE, "deployment/rudderfish", "--timeout=60s")
        rows = self.rows(self.pods()[0])
        self.assertEqual([row["number"] for row in rows[:len(kept)]], [row["number"] for row in kept])

    def test_8b_agents_measure_their_nodes_and_each_other(self):
        """A testbed has no DNS that would know the agents, so that they share the addresses of their nodes, which last."""
        space, agents = "rudderfish-node", "daemonset/rudderfish-node"
        kubectl("apply", "-k", str(TOP / "deploy/node"))
        self.addCleanup(kubectl, "delete", "namespace", space, "--wait=true")
        kubectl("rollout", "status", "-n", space, agents, "--timeout=120s")
        nodes = {node["metadata"]["name"]: node["status"]["addresses"][0]["address"] for node in listed("nodes")["items"]}
        template = "/spec/template/spec"
        arguments = listed(agents, "-n", space)["spec"]["template"]["spec"]["containers"][0]["args"]
        place = next(i for i, argument in enumerate(arguments) if argument.startswith("--peers="))
        kubectl("patch", "-n", space, agents, "--type=json", "-p", json.dumps([
            {"op": "remove", "path": f"{template}/securityContext/sysctls"},  # Not allowed in the network of a node.
            {"op": "add", "path": f"{template}/hostNetwork", "value": True},
            {"op": "replace", "path": f"{template}/containers/0/args/{place}", "value": "--peers=" + ",".join(nodes.values())}]))
        kubectl("rollout", "status", "-n", space, agents, "--timeout=120s")

        def measured():
            pairs = set()
            for pod in listed("pods", "-n", space)["items"]:
                if "deletionTimestamp" in pod["metadata"]:
                    return None
                text = kubectl("get", "--raw", f"/api/v1/namespaces/{space}/pods/{pod['metadata']['name']}:9100/proxy/metrics")
                self.assertRegex(text, rf'rudderfish_node_cpu_cores{{node="{pod["spec"]["nodeName"]}"}} {os.cpu_count()}')
                for line in re.findall(r"^rudderfish_node_round_trip_mean_seconds{.*", text, re.MULTILINE):
                    labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
                    self.assertLess(float(line.split()[-1]), 0.1, line)
                    pairs.add((labels["protocol"], frozenset((labels["node"], labels["peer"]))))
            return pairs if len(pairs) == len(nodes) * (len(nodes) - 1) else None
        self.wait_for(measured, "each pair is measured over TCP and UDP", limit=90)

    def test_9_each_rule_of_its_roles_was_used(self):
        """By the API server's audit log of all tests before: what was never asked for, or never answered, is too much."""
        log = pathlib.Path("/var/lib/rudderfish-testbed") / CLUSTER.name / "audit.log"
        if not log.exists():
            self.skipTest("the testbed that was given has no audit log of this user")
        text = log.read_text(encoding="utf-8")
        used = set()
        for line in text[:text.rfind("\n") + 1].splitlines():
            entry = json.loads(line)
            asked = entry.get("objectRef", {})
            if entry["responseStatus"]["code"] < 400 or entry["verb"] == "create":  # An eviction may be refused at first.
                resource = "/".join(filter(None, [asked.get("resource"), asked.get("subresource")]))
                used.add((asked.get("apiGroup", ""), resource, entry["verb"]))
        granted = set()
        for kind in ("clusterrolebindings", "rolebindings"):
            for binding in listed(kind, "-A")["items"]:
                if any(one.get("namespace") == SPACE and one["name"] == "rudderfish" for one in binding.get("subjects", [])):
                    where = ["-n", binding["metadata"]["namespace"]] if binding["roleRef"]["kind"] == "Role" else []
                    for rule in listed(binding["roleRef"]["kind"].lower(), binding["roleRef"]["name"], *where)["rules"]:
                        granted |= {(group, resource, verb) for group in rule["apiGroups"] for resource in rule["resources"]
                                    for verb in rule["verbs"]}
        self.assertGreater(len(granted), 25)
        # A server that streams lists is asked for them by the verb `watch`; one that cannot, by `list`.
        used |= {(group, resource, "list") for group, resource, verb in used if verb == "watch"}
        self.assertEqual(granted - used, {
            ("", "persistentvolumeclaims", "get"),  # Of a pod that is moved and has claims; this application has none.
            ("events.k8s.io", "events", "patch"),  # Of an Event that is repeated within six minutes.
            ("metrics.k8s.io", "nodes", "list"), ("metrics.k8s.io", "pods", "list"),  # There is no metrics-server here.
        }, sorted(used))


if __name__ == "__main__":
    main(PROGRAM)
