#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`move` and `moves` on a testbed of real nodes, by the commands of docs/moving.md: a replacement serves before the pod goes, no
request fails, what cannot be moved says why, and whatever a process that was killed at any moment leaves is finished or undone.

RUDDERFISH names the program; default: build/release/rudderfish. Needs what tests/testbed_test.py needs; where something is
missing it says what and ends with status 77. RUDDERFISH_TESTBED names a testbed that runs already and is left alone.
RUDDERFISH_KILLS: how many moves are killed; RUDDERFISH_MOVE_FAULTS: how many faults of others are tried; RUDDERFISH_MOVES: how
many moves are made under load; RUDDERFISH_SETTLE: their --settle. RUDDERFISH_FAILED_SHARE: how many of the requests may fail,
0.001 by default: where sanitizers compute on the same cores, packets and proxies wait for them. On a machine of its own it is 0.
"""
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from live_support import GIVEN, PROGRAM, TESTBED, TOP, Cluster, commands_of, main

CLUSTER = Cluster(GIVEN or "test-moves")
KUBECONFIG = pathlib.Path("/var/lib/rudderfish-testbed") / CLUSTER.name / "kubeconfig"
MOVES = int(os.environ.get("RUDDERFISH_MOVES", "2"))
SETTLE = os.environ.get("RUDDERFISH_SETTLE", "12s")
FAILED_SHARE = float(os.environ.get("RUDDERFISH_FAILED_SHARE", "0.001"))
KILLS = int(os.environ.get("RUDDERFISH_KILLS", "6"))
FAULTS = int(os.environ.get("RUDDERFISH_MOVE_FAULTS", "3"))
FIRST_FAULT = int(os.environ.get("RUDDERFISH_MOVE_FAULTS_FROM", "0"))
SEED = int(os.environ.get("RUDDERFISH_SEED", "1"))
STEPS = ("intend", "detach", "place", "serve", "drain", "evict")


# Pods of a node that has died are deleted at once, and not after 5 minutes.
TOLERATIONS = [{"key": f"node.kubernetes.io/{trouble}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
               for trouble in ("not-ready", "unreachable")]


def web(replicas, **spec):
    container = {"name": "main", "image": "localhost/pause:1", "imagePullPolicy": "Never",
                 "resources": {"requests": {"cpu": "50m", "memory": "16Mi"}}}
    labels = {"app": "web"}
    return [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
         "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, **spec,
                  "template": {"metadata": {"labels": labels},
                               "spec": {"containers": [container], "terminationGracePeriodSeconds": 1, "tolerations": TOLERATIONS}}}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"},
         "spec": {"selector": labels, "ports": [{"port": 80}]}},
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": "default"},
         "spec": {"minAvailable": replicas, "selector": {"matchLabels": labels}}}]


def millis(cpu):
    return int(cpu[:-1]) if cpu.endswith("m") else int(float(cpu) * 1000)


def pods():
    return [pod for pod in CLUSTER.get("pods", "-l", "app=web")["items"] if "deletionTimestamp" not in pod["metadata"]]


def is_ready(pod):
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod.get("status", {}).get("conditions", []))


class Moves(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        CLUSTER.start(cls, "--layers", "cloud:2,edge:4,client:1")
        CLUSTER.kubectl("apply", "-k", str(TOP / "deploy/moves"))

    def setUp(self):
        self.replicas = 3
        CLUSTER.apply(*web(self.replicas))
        self.addCleanup(CLUSTER.kubectl, "delete", "deployment/web", "service/web", "poddisruptionbudget/web", "--wait=true")
        self.settled()

    def wait_for(self, condition, what, limit=60):
        end = time.monotonic() + limit
        while not (found := condition()):
            if time.monotonic() > end:
                self.fail(f"{what}\n{CLUSTER.kubectl('get', 'pods', '-o', 'wide', '--show-labels')}")
            time.sleep(0.2)
        return found

    def settled(self):
        self.wait_for(lambda: len(pods()) == self.replicas and all(map(is_ready, pods())), "as many pods as are wanted are Ready")

    def command(self, *words):
        return [PROGRAM, *words, "--kubeconfig", KUBECONFIG]

    def tried(self, *words):
        return subprocess.run(self.command(*words), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                              timeout=180)

    def refused(self, *words, says):
        done = self.tried(*words)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertIn(says, done.stderr)

    def nothing_left(self):
        """Of any move: no pod beyond those wanted, no label, no annotation, no line of the ConfigMap."""
        self.settled()
        self.wait_for(lambda: len(CLUSTER.get("pods")["items"]) == self.replicas, "no other pod is left")
        for pod in CLUSTER.get("pods")["items"]:
            self.assertNotIn("rudderfish.io/move", pod["metadata"]["labels"])
            self.assertNotIn("rudderfish.io/move", pod["metadata"].get("annotations", {}))
            self.assertEqual(pod["metadata"]["labels"]["app"], "web")
            self.assertIn("pod-template-hash", pod["metadata"]["labels"])
            self.assertEqual(pod["metadata"]["ownerReferences"][0]["kind"], "ReplicaSet")
        self.assertEqual(CLUSTER.get("configmap", "rudderfish-moves", "-n", "rudderfish").get("data", {}), {})
        self.assertEqual(json.loads(self.tried("moves", "-o", "json").stdout)["moves"], [])

    def endpoints(self):
        slices = CLUSTER.get("endpointslices", "-l", "kubernetes.io/service-name=web")["items"]
        return sum(one["conditions"].get("ready", True) for item in slices for one in item.get("endpoints") or [])

    @staticmethod
    def elsewhere(pod):
        names = [node["metadata"]["name"] for node in CLUSTER.get("nodes")["items"]]
        return next(name for name in names if name != pod["spec"]["nodeName"])

    def test_replacement_serves_before_the_pod_is_evicted(self):
        pod = pods()[0]
        name, target = pod["metadata"]["name"], self.elsewhere(pod)
        self.assertIn("nothing was written", self.tried("move", f"pod/{name}", "--to", target, "--dry-run").stdout)
        with subprocess.Popen(self.command("move", f"pod/{name}", "--to", target, "-o", "json"), stdout=subprocess.PIPE,
                              text=True) as moving:
            least = self.replicas
            while moving.poll() is None:
                least = min(least, self.endpoints())
            answer = json.loads(moving.stdout.read())
        self.assertEqual(moving.returncode, 0, answer)
        self.assertEqual(least, self.replicas)  # Endpoints that are ready, all the time.
        self.assertEqual((answer["outcome"], answer["to"]), ("moved", target))
        replacement = CLUSTER.get("pod", answer["replacement"])
        self.assertEqual(replacement["spec"]["nodeName"], target)
        self.assertNotIn(name, [one["metadata"]["name"] for one in pods()])
        self.nothing_left()

    def test_what_cannot_be_moved_says_why(self):
        pod = pods()[0]
        name, target = "pod/" + pod["metadata"]["name"], self.elsewhere(pod)
        self.refused("move", "pod/none", "--to", target, says="pod default/none is not found")
        self.refused("move", name, "--to", "none", says="node none is not found")
        self.refused("move", name, "--to", pod["spec"]["nodeName"], says="already")
        CLUSTER.kubectl("cordon", target)
        self.refused("move", name, "--to", target, says=f"{target} is cordoned")
        CLUSTER.kubectl("uncordon", target)
        CLUSTER.kubectl("taint", "nodes", target, "only=others:NoSchedule")
        self.refused("move", name, "--to", target, says="untolerated taint")
        CLUSTER.kubectl("taint", "nodes", target, "only:NoSchedule-")
        CLUSTER.kubectl("annotate", name, "karpenter.sh/do-not-disrupt=true")
        self.refused("move", name, "--to", target, says="karpenter.sh/do-not-disrupt")
        CLUSTER.kubectl("annotate", name, "karpenter.sh/do-not-disrupt-")
        CLUSTER.kubectl("patch", "deployment/web", "-p", '{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}')
        self.refused("move", name, "--to", target, says="strategy Recreate")
        self.nothing_left()

    def test_a_line_whose_pod_has_ended_is_found_and_removed(self):
        replica_set = CLUSTER.get("replicasets", "-l", "app=web")["items"][0]["metadata"]["uid"]
        CLUSTER.kubectl("patch", "configmap", "rudderfish-moves", "-n", "rudderfish", "-p",
                        json.dumps({"data": {replica_set: "gone/edge-1"}}))
        listed = json.loads(self.tried("moves", "-o", "json").stdout)
        self.assertEqual([line["id"] for line in listed["left"]], ["gone"])
        pod = pods()[0]
        self.refused("move", "pod/" + pod["metadata"]["name"], "--to", self.elsewhere(pod), says="moves abort gone")
        self.assertEqual(self.tried("moves", "abort", "gone").returncode, 0)
        self.nothing_left()

    def test_interrupt_undoes_the_move(self):
        pod = pods()[0]
        moving = subprocess.Popen(self.command("move", "pod/" + pod["metadata"]["name"], "--to", self.elsewhere(pod), "--settle",
                                               "30s"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.wait_for(lambda: json.loads(self.tried("moves", "-o", "json").stdout)["moves"][0:1] and
                      json.loads(self.tried("moves", "-o", "json").stdout)["moves"][0]["step"] == "drain", "it drains")
        moving.send_signal(signal.SIGINT)
        output = moving.communicate(timeout=60)
        self.assertEqual(moving.returncode, 1, output)
        self.assertIn("interrupted", output[0])
        self.nothing_left()
        self.assertIn(pod["metadata"]["name"], [one["metadata"]["name"] for one in pods()])

    def kill_at(self, step, pod, known, command):
        """Moves `pod` by `command`, and kills that as soon as what can be seen of the pod, or of its replacement (no name of `known`),
        says that the step has begun. Returns whether it came so far."""
        columns = (".metadata.name", ".spec.nodeName", ".metadata.deletionTimestamp", r".metadata.annotations.rudderfish\.io/replaces",
                   r".metadata.annotations.rudderfish\.io/move")
        words = ["get", "pods", "--watch", "-o", "jsonpath=" + "{'|'}".join(f"{{{one}}}" for one in columns) + "{'\\n'}"]

        def has_begun(line):
            name, node, deleted, replaces, move = line.rstrip("\n").split("|", 4)
            if step in ("place", "serve"):
                return bool(replaces) and name not in known and bool(node) == (step == "serve")
            if name != pod:
                return False
            return bool(deleted) if step == "evict" else bool(move) and json.loads(move)["step"] == step

        with subprocess.Popen([str(TESTBED), "kubectl", "--name", CLUSTER.name, "--", *words], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, start_new_session=True) as watch:
            watch.stdout.readline()  # It has listed the pods: from here on it misses nothing.
            moving = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

            def end_watch():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    moving.wait(60)
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(watch.pid, signal.SIGKILL)

            ending = threading.Thread(target=end_watch)
            ending.start()
            found = False
            for line in watch.stdout:
                if not found and has_begun(line):
                    moving.kill()
                    found = True
            ending.join()
            return found

    def test_what_a_killed_process_leaves_is_finished_or_undone(self):
        """Killed at each step in turn; of every second round at a moment that is drawn."""
        chance = random.Random(SEED)
        ends, at_step = {"resume": 0, "abort": 0}, {step: 0 for step in STEPS}
        for turn in range(KILLS):
            listed = pods()
            pod, known = chance.choice(listed), {one["metadata"]["name"] for one in listed}
            name = pod["metadata"]["name"]
            command = self.command("move", "pod/" + name, "--to", self.elsewhere(pod), "--settle", "2s")
            if turn // len(STEPS) % 2 == 0:
                step = STEPS[turn % len(STEPS)]
                at_step[step] += self.kill_at(step, name, known, command)
            else:
                with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as moving:
                    time.sleep(chance.uniform(0.1, 6))
                    moving.kill()
            left = json.loads(self.tried("moves", "-o", "json").stdout)["moves"]
            for move in left:
                verb = chance.choice(["resume", "abort"])
                began = time.monotonic()
                done = self.tried("moves", verb, move["id"], *(["--settle", "2s"] if verb == "resume" else []))
                if "no pod is in the move" not in done.stderr:  # The eviction was all that was left, and has ended.
                    self.assertIn(done.returncode, (0, 1), f"turn {turn}: {done.stdout}{done.stderr}")
                self.assertLess(time.monotonic() - began, 30, f"turn {turn}: {verb} at {move['step']}")
                ends[verb] += 1
            self.nothing_left()
        print(f"killed at {at_step}; then {ends}", file=sys.stderr)
        self.assertGreater(sum(ends.values()), KILLS // 3, ends)
        for step in STEPS[:KILLS]:
            self.assertGreater(at_step[step], 0, at_step)

    @staticmethod
    def replacements(pod):
        """Names of pods that replace `pod`, or another one before it."""
        return [one["metadata"]["name"] for one in pods()
                if "rudderfish.io/replaces" in one["metadata"].get("annotations", {}) and one["metadata"]["name"] != pod]

    def faults(self):
        """What others do in the middle of a move of `pod` to `target`, by the step at which they do it."""
        def scaled(replicas):
            CLUSTER.kubectl("scale", "deployment/web", f"--replicas={replicas}")

        def restarted(*_):
            CLUSTER.testbed("stop", "kube-apiserver")
            time.sleep(3)
            CLUSTER.testbed("start", "kube-apiserver")

        def replacement_deleted(pod, _):
            for one in self.replacements(pod):
                CLUSTER.kubectl("delete", "pod", one, "--wait=false")

        def target_filled(_, target):
            """All but 40m of its CPU is asked for by another pod."""
            used = sum(millis(container["resources"].get("requests", {}).get("cpu", "0"))
                       for one in CLUSTER.get("pods", "-A", "--field-selector", f"spec.nodeName={target}")["items"]
                       for container in one["spec"]["containers"])
            free = millis(CLUSTER.get("node", target)["status"]["allocatable"]["cpu"]) - used
            CLUSTER.kubectl("run", "filler", "--image=localhost/pause:1", "--image-pull-policy=Never", "--overrides", json.dumps(
                {"spec": {"nodeName": target, "terminationGracePeriodSeconds": 0, "containers": [
                    {"name": "filler", "image": "localhost/pause:1", "imagePullPolicy": "Never",
                     "resources": {"requests": {"cpu": f"{free - 40}m"}}}]}}))
            self.repairs.callback(CLUSTER.kubectl, "delete", "pod", "filler", "--ignore-not-found")

        def cannot_pull(pod, _):
            for one in self.replacements(pod):
                CLUSTER.kubectl("patch", "pod", one, "-p", json.dumps(
                    {"spec": {"containers": [{"name": "main", "image": "localhost/not-there:1"}]}}))

        def node_dies(node):
            """Until Kubernetes has noticed, which takes 40 s; its pods are deleted at once then, and cannot end."""
            CLUSTER.testbed("stop", f"kubelet@{node}")
            self.repairs.callback(CLUSTER.testbed, "start", f"kubelet@{node}")
            self.wait_for(lambda: not is_ready(CLUSTER.get("node", node)), f"{node} is not Ready", limit=90)

        def partition(_, target):
            CLUSTER.testbed("network", "-", input=f"{target} <-> control-plane cut\n")
            time.sleep(30)
            CLUSTER.testbed("network", "-", input="")

        def driven_twice(*_):
            for move in json.loads(self.tried("moves", "-o", "json").stdout)["moves"]:
                self.tried("moves", "resume", move["id"], "--settle", "3s")

        def drained(node):
            """As far as PodDisruptionBudgets allow."""
            CLUSTER.tried("kubectl", "--", "drain", node, "--ignore-daemonsets", "--force", "--timeout=20s")

        def node_of(pod):
            return CLUSTER.get("pod", pod)["spec"]["nodeName"]

        return [("drain", "the replacement is deleted", replacement_deleted),
                ("serve", "the target is cordoned", lambda _, target: CLUSTER.kubectl("cordon", target)),
                ("drain", "the API server restarts", restarted),
                ("drain", "the pod is deleted", lambda pod, _: CLUSTER.kubectl("delete", "pod", pod, "--wait=false")),
                ("drain", "it is scaled up", lambda *_: scaled(self.replicas + 1)),
                ("drain", "it is scaled down", lambda *_: scaled(self.replicas - 1)),
                ("drain", "it is scaled to 0", lambda *_: scaled(0)),
                ("drain", "a rollout begins", lambda *_: CLUSTER.kubectl("rollout", "restart", "deployment/web")),
                ("drain", "two processes drive it", driven_twice),
                ("intend", "the target fills up", target_filled),
                ("place", "its replacement cannot be pulled", cannot_pull),
                ("intend", "the target is drained", lambda _, target: drained(target)),
                ("drain", "its node is drained", lambda pod, _: drained(node_of(pod))),
                ("place", "the target is cut off for 30 s", partition),
                ("detach", "the target dies", lambda _, target: node_dies(target)),
                ("drain", "its node dies", lambda pod, _: node_dies(node_of(pod)))][FIRST_FAULT:][:FAULTS]

    def under_way(self):
        return json.loads(self.tried("moves", "-o", "json").stdout or '{"moves": []}')["moves"]

    def test_what_others_do_in_the_middle_of_a_move_harms_nothing(self):
        order = ["intend", "detach", "place", "serve", "drain", "evict", "abort"]
        self.repairs = contextlib.ExitStack()  # What a fault leaves to be put back.
        self.addCleanup(self.repairs.close)
        for step, what, fault in self.faults():
            with self.subTest(what):
                pod = pods()[0]
                target = self.elsewhere(pod)
                moving = subprocess.Popen(self.command("move", "pod/" + pod["metadata"]["name"], "--to", target, "--settle", "3s"),
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                self.wait_for(lambda: moving.poll() is not None or
                              any(order.index(move["step"]) >= order.index(step) for move in self.under_way()), f"it is at {step}")
                fault(pod["metadata"]["name"], target)
                said = moving.communicate(timeout=170)[0]
                self.assertIn(moving.returncode, (0, 1), said)
                print(f"{what}: {said.strip().splitlines()[-1]}", file=sys.stderr)
                self.repairs.close()
                for node in (target, pod["spec"]["nodeName"]):
                    CLUSTER.kubectl("uncordon", node)
                self.wait_for(lambda: not any("NoExecute" in (taint["effect"] for taint in node["spec"].get("taints", []))
                                              for node in CLUSTER.get("nodes")["items"]), "all nodes are back")
                CLUSTER.kubectl("scale", "deployment/web", f"--replicas={self.replicas}")
                CLUSTER.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
                self.nothing_left()

    def served(self, term):
        """The same workload as a service of 2 replicas that ends `term` seconds after SIGTERM; its address."""
        self.replicas = 2
        objects = web(self.replicas)
        pod = objects[0]["spec"]["template"]["spec"]
        pod["terminationGracePeriodSeconds"] = 10
        pod["containers"][0].update(
            image="localhost/app:1", args=["--term", str(term), "--start", "300"],
            readinessProbe={"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 1})
        objects[1]["spec"]["ports"] = [{"port": 80, "targetPort": 8080}]
        CLUSTER.apply(*objects)
        CLUSTER.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
        self.settled()
        address = CLUSTER.get("service", "web")["spec"]["clusterIP"]
        # Proxies may still send connections to the pods of the rollout before, which are gone.
        words = ["client-1", "--", *self.load(address), "--for", "2s", "--timeout", "1s"]
        self.wait_for(lambda: json.loads(CLUSTER.tried("exec", *words).stdout or '{"failed": 1}')["failed"] == 0,
                      "requests are answered")
        return address

    @staticmethod
    def load(address):
        return [str(PROGRAM), "load", "--target", f"http://{address}/", "--rate", "200", "-o", "json"]

    def move_under_load(self, term, connections, moves):
        """Proxies have time enough to follow on a machine that shares its cores with other tests."""
        address = self.served(term)
        words = [*self.load(address), "--for", f"{max(10, moves)}m", "--timeout", "5s", "--connections", connections]
        load = subprocess.Popen([str(TESTBED), "exec", "--name", CLUSTER.name, "client-1", "--", *words], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            for _ in range(moves):
                pod = pods()[0]
                done = self.tried("move", "pod/" + pod["metadata"]["name"], "--to", self.elsewhere(pod), "--settle",
                                  SETTLE)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.settled()
        finally:
            subprocess.run(["pkill", "-INT", "-f", f"load --target http://{address}/"], check=False)
        output, trouble = load.communicate(timeout=60)
        report = json.loads(output)
        self.assertGreater(report["sent"], 200 * moves, trouble)
        print(f"{moves} moves, {report['sent']} requests on {connections} connections, {report['failed']} failed", file=sys.stderr)
        self.assertLessEqual(report["failed"], FAILED_SHARE * report["sent"], report)
        self.nothing_left()

    def test_no_request_fails_where_the_application_ends_at_once(self):
        self.move_under_load(0, "new", MOVES)

    def test_no_request_fails_on_kept_connections_where_the_application_drains(self):
        self.move_under_load(5, "kept", MOVES)

    def continuum(self):
        """The application of examples/continuum where kube-scheduler puts it; how many pods each workload has."""
        CLUSTER.kubectl("apply", "-f", str(TOP / "examples/continuum/manifests.yaml"))
        self.addCleanup(CLUSTER.kubectl, "delete", "namespace", "continuum", "--wait=true")
        for workload in CLUSTER.get("deployments", "-n", "continuum")["items"]:
            CLUSTER.kubectl("rollout", "status", "deployment/" + workload["metadata"]["name"], "-n", "continuum", "--timeout=60s")
        return self.serving()

    @staticmethod
    def serving():
        """Ready pods of each workload."""
        counts = {}
        for pod in CLUSTER.get("pods", "-n", "continuum")["items"]:
            if is_ready(pod) and "deletionTimestamp" not in pod["metadata"]:
                app = pod["metadata"]["labels"].get("app")
                counts[app] = counts.get(app, 0) + 1
        return counts

    def controller(self, mode, **migration):
        """A folder with the configuration of a `run` that moves pods; journal and socket are beside it."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="rudderfish-moves-"))
        self.addCleanup(shutil.rmtree, folder)
        decision = {"mode": mode, "policy": "greedy", "baseline": "stay", "interval": "500ms", "moves": {"settle": "2s"}, **migration}
        (folder / "rudderfish.yaml").write_text(json.dumps({
            "rudderfish": "config/v1", "cluster": {"kubeconfig": str(KUBECONFIG)}, "scope": {"namespaces": ["continuum"]},
            "applications": [str(TOP / "examples/continuum/application.yaml")], "decisions": {"migration": decision},
            "journal": {"path": "j.db"}, "server": {"socket": "s.sock"}}), encoding="utf-8")
        return folder

    def run_in(self, folder):
        with (folder / "log").open("a") as log:
            process = subprocess.Popen([PROGRAM, "run"], cwd=folder, stdout=subprocess.DEVNULL, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def asked(self, folder, *words):
        done = subprocess.run([PROGRAM, *words], cwd=folder, capture_output=True, text=True, check=False, timeout=60)
        return done.stdout if done.returncode == 0 else ""

    def rows(self, folder):
        return json.loads(self.asked(folder, "decisions", "-o", "json") or '{"decisions": []}')["decisions"]

    def moving(self, folder):
        """Moves under way, as `status` has them."""
        status = json.loads(self.asked(folder, "status", "-o", "json") or "{}")
        return status.get("decisions", {}).get("migration", {}).get("moves", [])

    def nothing_of_a_move_is_left(self, serving):
        self.wait_for(lambda: self.serving() == serving, f"as many pods serve as before: {serving}")
        self.wait_for(lambda: json.loads(self.tried("moves", "-o", "json").stdout) == {"schema_version": 1, "moves": [], "left": []},
                      "no move is left", limit=30)
        for pod in CLUSTER.get("pods", "-n", "continuum")["items"]:
            self.assertNotIn("rudderfish.io/move", pod["metadata"]["labels"])
            self.assertIn("pod-template-hash", pod["metadata"]["labels"])

    def test_run_moves_pods_through_crashes_as_planned(self):
        serving = self.continuum()
        folder = self.controller("enforce")
        process = self.run_in(folder)
        move = self.wait_for(lambda: self.moving(folder), (folder / "log").read_text())[0]
        process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: "rudderfish.yaml reloaded" in (folder / "log").read_text(), "it reloads")
        self.wait_for(lambda: self.rows(folder)[0]["fate"] != "in flight", "the move ends")
        ended = self.rows(folder)[0]
        self.assertEqual((ended["fate"], ended["subject"]), ("done", "pod/" + move["pod"].split("/")[1]), "a reload loses no outcome")
        for _ in range(2):
            self.wait_for(lambda: self.moving(folder), (folder / "log").read_text())
            process.kill()
            process.wait()
            self.assertNotEqual(json.loads(self.tried("moves", "-o", "json").stdout)["moves"], [])
            process = self.run_in(folder)
            self.wait_for(lambda: "which another process began" in (folder / "log").read_text(), "its successor continues the move")
        self.wait_for(lambda: [row for row in self.rows(folder) if row["fate"] == "stayed"], "the plan ends", limit=120)
        self.nothing_of_a_move_is_left(serving)
        fates = [row["fate"] for row in self.rows(folder)]
        self.assertGreaterEqual(fates.count("done"), 2, fates)
        self.assertEqual(set(fates) - {"done", "stayed", "unknown"}, set(), fates)
        events = CLUSTER.get("events", "-n", "continuum")["items"]
        self.assertIn("Moved", {event["reason"] for event in events})
        process.terminate()
        self.assertEqual(process.wait(timeout=15), 0)

    def test_a_drain_that_budgets_block_goes_on_as_its_pods_are_moved_first(self):
        """No pod may be missing, so that an eviction is refused until a replacement serves. The policy itself moves nothing."""
        serving = self.continuum()
        names = [one["metadata"]["name"] for one in CLUSTER.get("deployments", "-n", "continuum")["items"]]
        CLUSTER.apply(*({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name, "namespace": "continuum"},
                         "spec": {"minAvailable": serving[name], "selector": {"matchLabels": {"app": name}}}} for name in names))
        listed = [(pod["spec"]["nodeName"], pod["metadata"]["labels"]["app"]) for pod in CLUSTER.get("pods", "-n", "continuum")["items"]]
        fixed = {node for node, app in listed if app == "db"}  # Which is not movable.
        node = max({node for node, _ in listed} - fixed, key=[node for node, _ in listed].count)
        self.addCleanup(CLUSTER.kubectl, "uncordon", node)
        folder = self.controller("enforce", policy="stay", evacuate="cordoned")
        self.run_in(folder)
        self.wait_for(lambda: [row for row in self.rows(folder) if row["fate"] == "stayed"], "it stays")
        drained = CLUSTER.tried("kubectl", "--", "drain", node, "--ignore-daemonsets", "--timeout=120s", "--pod-selector=app!=web")
        self.assertEqual(drained.returncode, 0, drained.stdout + drained.stderr + (folder / "log").read_text())
        self.assertIn("Cannot evict pod", drained.stdout + drained.stderr, "it was blocked at first")
        self.nothing_of_a_move_is_left(serving)
        moved = [row for row in self.rows(folder) if row["fate"] == "done"]
        self.assertEqual({row["from_node"] for row in moved}, {node}, moved)

    def test_a_pause_undoes_the_move_that_is_under_way(self):
        serving = self.continuum()
        folder = self.controller("canary", canary=0.99, moves={"settle": "60s"})
        process = self.run_in(folder)
        move = self.wait_for(lambda: self.moving(folder), (folder / "log").read_text())[0]
        pod = move["pod"].split("/")[1]
        self.assertIn(f"move {move['id']} is under way", self.asked(folder, "explain", f"move/{move['id']}"))
        self.wait_for(lambda: self.moving(folder)[0:1] and self.moving(folder)[0]["step"] == "drain", "it drains")
        self.asked(folder, "pause")
        self.nothing_of_a_move_is_left(serving)
        self.assertEqual(CLUSTER.get("pod", pod, "-n", "continuum")["status"]["phase"], "Running")
        row = self.wait_for(lambda: [row for row in self.rows(folder) if row["fate"] == "failed"], "the journal says so")[0]
        self.assertEqual((row["mode"], row["failure"]), ("canary", "moves are held back"))
        self.assertIn("was given up: moves are held back", self.asked(folder, "explain", f"move/{move['id']}"))
        self.asked(folder, "resume")
        self.wait_for(lambda: self.moving(folder), "another move begins")
        process.terminate()
        self.assertEqual(process.wait(timeout=15), 0)
        self.nothing_of_a_move_is_left(serving)

    def test_commands_of_the_page(self):
        commands = [one for one in commands_of(TOP / "docs/moving.md", "## Try it")
                    if not one.startswith(("testbed/testbed", "export KUBECONFIG"))]
        self.addCleanup(CLUSTER.kubectl, "delete", "namespace", "continuum", "--wait=true")
        environment = dict(os.environ, KUBECONFIG=str(KUBECONFIG), PATH=f"{PROGRAM.parent}:{os.environ['PATH']}")
        done = subprocess.run(["bash", "-ec", "\n".join(commands)], cwd=TOP, env=environment, capture_output=True, text=True,
                              check=False, stdin=subprocess.DEVNULL, timeout=180)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("to edge-4 in", done.stdout)
        self.assertIn("no pod is being moved", done.stdout)


if __name__ == "__main__":
    main(PROGRAM)
