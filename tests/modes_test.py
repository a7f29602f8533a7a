#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far `run` goes when it places pods, and what holds it back, on an API server that keeps what it is told.

RUDDERFISH names the program; default: build/release/rudderfish. On a real API server: modes_live_test.py.
"""
import collections
import contextlib
import http.server
import json
import os
import pathlib
import queue
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request

TOP = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = pathlib.Path(os.environ.get("RUDDERFISH", TOP / "build/release/rudderfish")).resolve()
NODES, NAMESPACES = "/api/v1/nodes", "/api/v1/namespaces"
PODS, STEERS = "/api/v1/pods", "/api/v1/namespaces/ops/configmaps"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/ops/leases/seat"
SEAT = "\nleader_election: {lease: ops/seat, duration: 3s}"
STANDING = "rudderfish.io/standing"
CANARY = "decisions: {placement: {mode: shadow, canary: 0.5, policy: most-allocated, objective: utilisation, settle: 3s}}"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def node(name):
    return {"metadata": {"name": name, "uid": name, "resourceVersion": "1"},
            "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "500"}}}


def pod(name, scheduler="rudderfish"):
    return {"metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": "1"},
            "spec": {"schedulerName": scheduler, "containers": [{"name": "c", "resources": {"requests": {"cpu": "10m"}}}]},
            "status": {"phase": "Pending"}}


def bound(waits, to):
    return {**waits, "spec": {**waits["spec"], "nodeName": to}, "status": {"phase": "Running"}}


class Api(http.server.ThreadingHTTPServer):
    """Has what it is told of, tells every watch of each change, and carries out Bindings at once."""
    daemon_threads = True
    request_queue_size = 128

    def __init__(self):
        self.objects = {NODES: [node("edge-1")], PODS: [],
                        NAMESPACES: [{"metadata": {"name": "shop", "uid": "shop", "resourceVersion": "1"}}]}
        self.lock, self.version = threading.Lock(), 2
        self.watches = collections.defaultdict(list)  # By path, what each has to tell; None ends it.
        self.bindings, self.told = [], []  # Names; Events.
        self.lease = {"metadata": {"name": "seat", "namespace": "ops", "resourceVersion": "1"}, "spec": {}}
        super().__init__(("127.0.0.1", 0), Answers)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def handle_error(self, request, client_address):
        pass  # A program that has ended hears no answer.

    def __exit__(self, *error):
        with self.lock:
            for watch in [one for watches in self.watches.values() for one in watches]:
                watch.put(None)
        self.shutdown()
        self.server_close()

    def find(self, name):
        return next(one for one in self.objects[PODS] if one["metadata"]["name"] == name)

    def change(self, path, thing, kind="MODIFIED"):
        with self.lock:
            self.version += 1
            thing["metadata"]["resourceVersion"] = str(self.version)
            name = thing["metadata"]["name"]
            self.objects[path] = [one for one in self.objects.get(path, []) if one["metadata"]["name"] != name]
            if kind != "DELETED":
                self.objects[path].append(thing)
            for watch in self.watches[path]:
                watch.put((kind, json.loads(json.dumps(thing))))

    def steer(self, data):
        self.change(STEERS, {"metadata": {"name": "steer", "namespace": "ops", "uid": "steer"}, "data": data})

    def fail(self, name, reason):
        self.change(PODS, {**self.find(name), "status": {"phase": "Failed", "reason": reason}})

    def nodes_of(self, name):
        return [one["spec"]["nodeName"] for one in self.objects[PODS] if one["metadata"]["name"] == name and "nodeName" in one["spec"]]


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def tell(self, kind, thing):
        line = json.dumps({"type": kind, "object": thing}).encode() + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path == LEASE:
            self.answer(200, self.server.lease)
            return
        if "watch=1" not in query:
            self.answer(200, {})
            return
        news, end = queue.SimpleQueue(), time.monotonic() + int(re.search(r"timeoutSeconds=(\d+)", query)[1])
        with self.server.lock:
            things = [json.loads(json.dumps(one)) for one in self.server.objects.get(path, [])]
            self.server.watches[path].append(news)
            version = str(self.server.version)
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if "sendInitialEvents" in query:
            for thing in things:
                self.tell("ADDED", thing)
            self.tell("BOOKMARK", {"metadata": {"resourceVersion": version, "annotations": {"k8s.io/initial-events-end": "true"}}})
        with contextlib.suppress(queue.Empty):
            while told := news.get(timeout=max(end - time.monotonic(), 0)):
                self.tell(*told)
        self.wfile.write(b"0\r\n\r\n")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/binding"):
            name = body["metadata"]["name"]
            self.server.bindings.append(name)
            self.answer(201, {})
            self.server.change(PODS, bound(self.server.find(name), body["target"]["name"]))
        elif self.path.endswith("/selfsubjectaccessreviews"):
            self.answer(201, {"status": {"allowed": True}})
        else:
            self.server.told.append(body)
            self.answer(201, {})

    def do_PUT(self):
        written, server = json.loads(self.rfile.read(int(self.headers["Content-Length"]))), self.server
        with server.lock:
            is_newest = written["metadata"]["resourceVersion"] == server.lease["metadata"]["resourceVersion"]
            if is_newest:
                server.version += 1
                written["metadata"]["resourceVersion"] = str(server.version)
                server.lease = written
        self.answer(200, written) if is_newest else self.answer(409, {"kind": "Status", "code": 409, "reason": "Conflict"})

    def do_PATCH(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200, {})


class Modes(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    @contextlib.contextmanager
    def running(self, api, section, folder="."):
        there = self.folder / folder
        there.mkdir(exist_ok=True)
        (there / "kube.conf").write_text(
            f"apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
            f"clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{api.server_port}'}}}}]\n"
            "users: [{name: u, user: {}}]\n", encoding="utf-8")
        (there / "rudderfish.yaml").write_text(
            f"rudderfish: config/v1\ncluster: {{kubeconfig: kube.conf}}\n{section}\n", encoding="utf-8")
        before = self.log(folder).count(" runs: ") if (there / "log").exists() else 0
        with open(there / "log", "ab") as log, subprocess.Popen(
                [PROGRAM, "run"], cwd=there, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process:
            try:
                self.wait_for(lambda: self.log(folder).count(" runs: ") > before)
                yield process
            finally:
                process.kill()
                process.wait()

    def log(self, folder="."):
        return (self.folder / folder / "log").read_text(encoding="utf-8")

    def wait_for(self, condition):
        end = time.monotonic() + 30
        while not (found := condition()):
            self.assertLess(time.monotonic(), end, "".join(one.read_text(encoding="utf-8") for one in self.folder.glob("**/log")))
            time.sleep(0.02)
        return found

    def ask(self, *arguments, folder="."):
        return subprocess.run([PROGRAM, *arguments], cwd=self.folder / folder, stdin=subprocess.DEVNULL, timeout=60, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout

    def status(self, folder="."):
        return json.loads(self.ask("status", "-o", "json", folder=folder))

    def compared(self):
        return json.loads(self.ask("decisions", "--kind", "placement", "-o", "json"))["decisions"]

    def waits(self, api, name):
        """A new pod that is not bound while the loop has turned some times."""
        api.change(PODS, pod(name), "ADDED")
        time.sleep(0.8)
        return not api.nodes_of(name)

    def is_placed(self, api, name):
        api.change(PODS, pod(name), "ADDED")
        self.wait_for(lambda: api.nodes_of(name))

    def test_whatever_else_a_configmap_says_it_holds_back(self):
        with Api() as api, self.running(api, "decisions: {placement: {mode: enforce}}\ncontrol: {configmap: ops/steer}"):
            self.is_placed(api, "first")
            api.steer({"pause": "Yes", "reason": "incident 42"})
            self.wait_for(lambda: self.status()["paused"])
            self.assertIn("unknown key `reason`", self.status()["control_problem"])
            self.assertTrue(self.waits(api, "second"))
            api.steer({"reason": "none"})
            self.wait_for(lambda: api.nodes_of("second"))
            api.steer({"mode": "shadwo"})
            self.wait_for(lambda: self.status()["paused"])
            self.assertTrue(self.waits(api, "third"))
            api.steer({"Kill": "True", "pause": "maybe"})
            self.wait_for(lambda: self.status()["killed"])
            self.assertIn("found \"maybe\": as `pause`", self.ask("status"))
            api.steer({})
            self.assertTrue(self.waits(api, "fourth"))

    def test_a_configmap_that_cannot_be_understood_is_as_pause(self):
        steer = {"metadata": {"name": "steer", "namespace": "ops", "uid": "steer"}, "data": {"pause": False}}
        with Api() as api, self.running(api, "decisions: {placement: {mode: enforce}}\ncontrol: {configmap: ops/steer}"):
            self.is_placed(api, "first")
            api.change(STEERS, steer)
            self.wait_for(lambda: self.status()["paused"])
            time.sleep(1.5)  # It has been listed again by now.
            self.assertTrue(self.waits(api, "second"))
            self.assertIn("`data.pause` of a ConfigMap is no text: as `pause`", self.status()["control_problem"])
            api.steer({"pause": "false"})
            self.wait_for(lambda: api.nodes_of("second"))


    def leads(self, folder):
        return self.status(folder)["leads"]

    def mode(self, folder):
        return self.status(folder)["decisions"]["placement"]["standing"]["mode"]

    def unserved(self, port):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        return int(float(re.search(r"^rudderfish_placement_unserved_pods (\S+)$", text, re.MULTILINE)[1]))

    def test_what_was_promoted_outlives_its_leader(self):
        ports = [free_port(), free_port()]
        sections = [f"{CANARY}{SEAT}\nserver: {{listen: '127.0.0.1:{port}'}}" for port in ports]
        with Api() as api, self.running(api, sections[0], "first") as first:
            self.wait_for(lambda: self.leads("first"))
            api.change(PODS, pod("early"), "ADDED")
            self.wait_for(lambda: self.unserved(ports[0]) == 1)
            with self.running(api, sections[1], "second"):
                time.sleep(0.6)
                self.assertEqual(self.unserved(ports[1]), 0, "that is the leader's")
                holder = self.status("first")["identity"]
                said = self.ask("promote", "placement", "--to", "canary", "--force", folder="second")
                self.assertIn(f"this instance is on standby; send the request to the leader {holder}", said)
                self.assertIn("on standby", self.ask("demote", "placement", folder="second"))
                self.assertIn("shadow -> canary", self.ask("promote", "placement", "--to", "canary", "--force", folder="first"))
                first.kill()  # Once it has said so, it holds.
                self.wait_for(lambda: self.leads("second"))
                standing = self.status("second")["decisions"]["placement"]["standing"]
                self.assertEqual((standing["mode"], standing["serves"]), ("canary", True))
                self.assertIn("promoted from shadow by the command line", standing["why"])
                self.wait_for(lambda: api.nodes_of("early"))
                self.wait_for(lambda: self.unserved(ports[1]) == 0)
                self.ask("demote", "placement", "--to", "shadow", folder="second")
            # As after a drain: nothing of its own is left.
            with self.running(api, sections[0], "third"):
                self.wait_for(lambda: self.leads("third"))
                self.assertEqual(self.mode("third"), "shadow")
                self.is_placed(api, "late")
            # Whose file names another mode begins as that says.
            with self.running(api, sections[0].replace("mode: shadow", "mode: advise"), "fourth"):
                self.wait_for(lambda: self.leads("fourth"))
                self.assertEqual(self.mode("fourth"), "advise")

    def test_a_promotion_goes_by_the_schedulers_that_are_compared(self):
        def put(name, scheduler, cpu="10m"):
            """Seen to wait, then where a scheduler has put it: that is one comparison more."""
            waits = pod(name, scheduler)
            waits["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
            before = len(self.compared())
            api.change(PODS, waits, "ADDED")
            time.sleep(0.3)
            api.change(PODS, bound(waits, "edge-1"))
            self.wait_for(lambda: len(self.compared()) == before + 1)
            return self.compared()[-1]["number"]
        section = CANARY.replace("settle: 3s", "settle: 1s")
        with Api() as api:
            with self.running(api, section):
                first = put("plain", "default-scheduler")
                theirs = put("packed", "batch", cpu="65")  # Of 64.
                self.assertIn("shadowed   1 decisions of other schedulers: rules equal in 1, different in 0", self.ask("status"))
                self.assertIn("also seen  batch: 1 decisions, rules different in 1; not counted", self.ask("status"))
                self.assertIn("missing for advise: 1 of the 500", said := self.ask("promote", "placement"))
                self.assertNotIn("differ", said)
            self.assertIn("also seen  batch: 1 decisions", self.ask("status"), "of the journal alone")
            with self.running(api, section.replace("{mode", "{compare: [batch, default-scheduler], mode", 1)):
                self.assertNotIn("also seen  batch", self.ask("status"))
                self.assertIn(f"1 differ (comparison {theirs}), the newest: shop/packed on edge-1: Insufficient cpu", self.ask("status"))
                self.assertIn(f"1 differ (comparison {theirs}), ", self.ask("promote", "placement"))
                self.assertIn(f"1 differ (comparison {theirs}), ", self.ask("promote", "placement", "--from", str(first)))
                said = self.ask("promote", "placement", "--from", str(theirs + 1))
                self.assertIn(f"missing for advise, by comparisons from {theirs + 1} on: 0 of the 500", said)
                self.assertNotIn("differ", said)
                self.assertIn("shadow -> advise", self.ask("promote", "placement", "--from", str(theirs + 1), "--force"))

    def test_paused_stays_paused_over_a_restart(self):
        with Api() as api:
            with self.running(api, "decisions: {placement: {mode: enforce}}"):
                self.is_placed(api, "first")
                self.assertIn("placement: off (paused by the command line)", self.ask("pause"))
            with self.running(api, "decisions: {placement: {mode: enforce}}"):
                self.assertTrue(self.waits(api, "second"))
                self.assertRegex(self.ask("status"), r"paused     \S+ ago, by the command line; `resume` ends it")
                self.assertIn("paused, as it was since ", self.log())
                self.ask("resume")
                self.wait_for(lambda: api.nodes_of("second"))
                self.assertIsNone(self.status()["paused_since_ms"])

    def test_a_pause_is_of_all_that_share_a_lease_and_ends_where_it_is_resumed(self):
        section = "decisions: {placement: {mode: enforce}}" + SEAT
        with Api() as api:
            with self.running(api, section, "first"):
                self.wait_for(lambda: self.leads("first"))
                identity = self.status("first")["identity"]
                with self.running(api, section, "second") as second:
                    self.ask("pause", folder="first")
                    self.wait_for(lambda: self.status("second")["decisions"]["placement"]["why"] == "paused by the instance that leads")
                    self.assertIn("paused by the instance that leads", self.ask("resume", folder="second"))
                    second.kill()
                with self.running(api, section, "second"):
                    self.wait_for(lambda: self.status("second")["paused"])
                    self.ask("pause", folder="second")  # Of its own, too.
                    self.ask("resume", folder="second")
                    self.assertTrue(self.status("second")["paused"])
            with self.running(api, section, "third"):
                self.wait_for(lambda: self.leads("third"))
                self.assertEqual(self.status("third")["paused_by"], f"the command line of {identity}")
                self.assertTrue(self.waits(api, "waits"))
                with self.running(api, section, "first"):
                    self.ask("resume", folder="third")
                    self.wait_for(lambda: api.nodes_of("waits"))
                    self.wait_for(lambda: not self.status("first")["paused"])
            with self.running(api, section, "first"):
                self.wait_for(lambda: self.leads("first"))
                self.is_placed(api, "late")

    def test_who_looks_on_goes_as_far_as_who_leads(self):
        with Api() as api, self.running(api, CANARY + SEAT, "first"):
            self.wait_for(lambda: self.leads("first"))
            with self.running(api, CANARY + SEAT, "second"):
                for mode in ("enforce", "shadow"):
                    self.ask(*(["promote", "placement", "--force"] if mode == "enforce" else ["demote", "placement"]), "--to", mode,
                             folder="first")
                    self.wait_for(lambda mode=mode: self.mode("second") == mode)

    def test_a_standby_that_is_reloaded_goes_as_far_as_the_leader(self):
        with Api() as api, self.running(api, CANARY + SEAT, "first"):
            self.wait_for(lambda: self.leads("first"))
            self.ask("promote", "placement", "--to", "canary", "--force", folder="first")
            with self.running(api, CANARY.replace("mode: shadow", "mode: advise") + SEAT, "second") as second:
                time.sleep(0.6)
                self.assertEqual(self.mode("second"), "advise", "its file says another mode than the leader's")
                file = self.folder / "second/rudderfish.yaml"
                file.write_text(file.read_text(encoding="utf-8").replace("mode: advise", "mode: shadow"), encoding="utf-8")
                second.send_signal(signal.SIGHUP)
                self.wait_for(lambda: self.mode("second") == "canary")

    def word(self, api):
        """What stands in the Lease for the next leader."""
        return json.loads(api.lease["metadata"].get("annotations", {}).get(STANDING, "{}"))

    def test_the_lease_keeps_the_mode_of_each_kind(self):
        theirs = {"configured": "shadow", "mode": "advise", "policy": "greedy", "objective": "latency", "since_ms": 7, "serves": False,
                  "why": "promoted there"}
        with Api() as api:
            api.lease["metadata"]["annotations"] = {STANDING: json.dumps({"modes": {"migration": theirs}})}
            with self.running(api, CANARY + SEAT):
                self.wait_for(lambda: "placement" in self.word(api).get("modes", {}))
                self.ask("promote", "placement", "--to", "canary", "--force")
                self.assertEqual(self.word(api)["modes"]["placement"]["mode"], "canary")
                self.assertEqual(self.word(api)["modes"]["migration"], theirs, "of a kind that this instance does not decide")

    def test_a_text_of_the_lease_that_is_not_understood_is_as_a_pause(self):
        section = "decisions: {placement: {mode: enforce}}" + SEAT
        for text in ('{"configured":"shadow","mode":"shadow"}', '{"modes":{"placement":{"mode":"shadwo"}}}', "shadow"):
            with self.subTest(text), Api() as api:
                api.lease["metadata"]["annotations"] = {STANDING: text}
                with self.running(api, section):
                    self.wait_for(lambda: self.leads("."))
                    self.assertTrue(self.waits(api, "first"))
                    self.assertEqual(self.status()["paused_by"], "a text of the Lease that is not understood")
                    self.ask("resume")
                    self.wait_for(lambda: api.nodes_of("first"))
                    self.assertEqual(self.word(api)["modes"]["placement"]["mode"], "enforce")

    def test_a_mode_of_the_file_is_reloaded(self):
        section = "decisions: {placement: {mode: shadow}}"
        with Api() as api, self.running(api, section) as process:
            self.assertTrue(self.waits(api, "first"))
            file = self.folder / "rudderfish.yaml"
            file.write_text(file.read_text(encoding="utf-8").replace("shadow", "enforce"), encoding="utf-8")
            process.send_signal(signal.SIGHUP)
            self.wait_for(lambda: api.nodes_of("first"))
            placement = self.status()["decisions"]["placement"]
            self.assertEqual((placement["configured_mode"], placement["mode"]), ("enforce", "enforce"))
            file.write_text(file.read_text(encoding="utf-8").replace("enforce", "enforce, canary: 0.5"), encoding="utf-8")
            process.send_signal(signal.SIGHUP)
            self.wait_for(lambda: "decisions.placement (all but `mode`) cannot change at run time" in self.log())

    def test_a_restart_does_not_blind_a_canary(self):
        names = [f"web-{i}" for i in range(100)]
        section = CANARY.replace("settle: 3s", "settle: 15s")

        def canary():
            return self.status()["decisions"]["placement"]["standing"]["evidence"]["canary"]
        with Api() as api:
            with self.running(api, section):
                self.ask("promote", "placement", "--to", "canary", "--force")
                for name in names:
                    api.change(PODS, pod(name), "ADDED")
                self.wait_for(lambda: len(api.bindings) == len(names))
                self.wait_for(lambda: canary()["canary"]["pods"] + canary()["control"]["pods"] == len(names))
                self.assertEqual(canary()["canary"]["measured_change"]["count"], 0, "they are measured later")
                ours = [row["pod"] for row in json.loads(self.ask("decisions", "--limit", "200", "-o", "json"))["decisions"]
                        if row["mode"] == "canary"]
            self.assertGreater(len(ours), 30)
            with self.running(api, section):
                self.wait_for(lambda: canary()["canary"]["measured_change"]["count"] == len(ours))
                for name in ours[:2]:
                    api.fail(name, "OutOfcpu")
                self.wait_for(lambda: canary()["canary"]["failed_or_evicted"] == 2)
            for name in ours[2:]:
                api.fail(name, "OutOfcpu")  # While rudderfish is not running.
            with self.running(api, section):
                self.wait_for(lambda: self.status()["decisions"]["placement"]["mode"] == "shadow")
                self.assertIn(f"{len(ours)} of its {len(ours)} pods failed", self.status()["decisions"]["placement"]["standing"]["why"])
                self.wait_for(lambda: any(event["reason"] == "CanaryEnded" and event["regarding"]["name"] in ours for event in api.told))


if __name__ == "__main__":
    unittest.main()
