#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How `run` places pods, answers as an extender, and ends, on an API server that answers when a test lets it.

RUDDERFISH names the program; default: build/release/rudderfish. On a real API server: placement_live_test.py.
"""
import collections
import contextlib
import http.server
import json
import os
import pathlib
import queue
import re
import resource
import select
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

TOP = pathlib.Path(__file__).resolve().parents[1]
EXAMPLE = TOP / "examples/continuum"
PROGRAM = pathlib.Path(os.environ.get("RUDDERFISH", TOP / "build/release/rudderfish")).resolve()
AT_A_TIME = 24  # Requests of the program's.


def node(name):
    return {"metadata": {"name": name, "uid": name, "resourceVersion": "1"},
            "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "500"}}}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def pod(name, cpu="10m"):
    return {"metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": "1"},
            "spec": {"schedulerName": "rudderfish", "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
            "status": {"phase": "Pending"}}


def pods(count):
    return [pod(f"web-{i}") for i in range(count)]


class Api(http.server.ThreadingHTTPServer):
    """Has a node and pods, and keeps each Binding but the first, and each Event, until it may be answered.

    It stands still when told to: over the connections that are open then, or where watches are concerned.
    """
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, pods, nodes):
        self.objects = {"/api/v1/nodes": nodes, "/api/v1/pods": pods,
                        "/api/v1/namespaces": [{"metadata": {"name": "shop", "uid": "shop", "resourceVersion": "1"}}]}
        self.bindings, self.events, self.series, self.conditions, self.advised = [], [], [], [], []
        self.on_condition = lambda: 200
        self.on_bind = lambda body: 201  # With what a Binding is answered.
        self.look_up = lambda name: (503, [])  # What is said of a pod of that name that is asked for.
        self.may_bind, self.may_tell = threading.Event(), threading.Event()
        self.lease, self.renewals = None, []
        self.lists = collections.Counter()  # Initial streams, by path.
        self.news = collections.defaultdict(queue.SimpleQueue)  # What the watch of a path tells next.
        self.is_over = self.watches_stand = False
        self.connections = self.still = 0  # Of so many connections, the first ones stand still.
        super().__init__(("127.0.0.1", 0), Answers)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def handle_error(self, request, client_address):
        pass  # A program that has ended hears no answer.

    def __exit__(self, *error):
        for event in (self.may_bind, self.may_tell):
            event.set()
        self.is_over = True
        self.shutdown()
        self.server_close()


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def setup(self):
        super().setup()
        self.server.connections += 1
        self.number = self.server.connections

    def stands(self, is_watch=False):
        return not self.server.is_over and (self.number <= self.server.still or (is_watch and self.server.watches_stand))

    def answer(self, status, body):
        while self.stands():
            time.sleep(0.02)
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
        if "/leases/" in path:
            self.answer(200 if self.server.lease else 404, self.server.lease or {})
            return
        if "metadata.name%3D" in query and "watch=1" not in query:
            status, found = self.server.look_up(query.partition("metadata.name%3D")[2])
            self.answer(status, {"kind": "PodList", "items": found} if status == 200 else {})
            return
        if "watch=1" not in query:
            self.answer(200, {})
            return
        end = time.monotonic() + int(re.search(r"timeoutSeconds=(\d+)", query)[1])
        while self.stands(True):
            time.sleep(0.02)
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if "sendInitialEvents" in query:
            self.server.lists[path] += 1
            for thing in self.server.objects.get(path, []):
                self.tell("ADDED", thing)
            self.tell("BOOKMARK", {"metadata": {"resourceVersion": "2", "annotations": {"k8s.io/initial-events-end": "true"}}})
        while not self.server.is_over and (time.monotonic() < end or self.stands(True)):
            if self.is_left():
                self.close_connection = True
                return
            if self.stands(True):
                time.sleep(0.02)
                continue
            with contextlib.suppress(queue.Empty):
                told = self.server.news[path].get(timeout=0.02)
                if self.stands(True) or self.is_left():
                    self.server.news[path].put(told)  # For the next watch.
                else:
                    self.tell(*told)
        self.wfile.write(b"0\r\n\r\n")

    def is_left(self):
        if not select.select([self.connection], [], [], 0)[0]:
            return False
        with contextlib.suppress(OSError):
            return not self.connection.recv(1, socket.MSG_PEEK)
        return True

    def body(self):
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def do_PUT(self):
        self.keep(self.body())

    def keep(self, lease):
        lease["metadata"]["resourceVersion"] = str(len(self.server.renewals))
        self.server.lease = lease
        self.server.renewals.append(time.monotonic())
        self.answer(200, lease)

    def do_POST(self):
        body = self.body()
        if self.path.endswith("/leases"):
            self.keep(body)
            return
        if self.path.endswith("/binding"):
            self.server.bindings.append(body["metadata"]["name"])
            if len(self.server.bindings) > 1:
                self.server.may_bind.wait()
            self.answer(self.server.on_bind(body), {})
            return
        self.server.may_tell.wait()
        self.server.events.append(body["reason"])
        if body["reason"] == "PreferredNode":
            self.server.advised.append(body["regarding"]["name"])
        self.answer(201, {})

    def do_PATCH(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/status"):
            self.server.conditions.append((self.path.split("/")[-2], body["status"]["conditions"][0]["message"]))
            self.answer(self.server.on_condition(), {})
            return
        self.server.may_tell.wait()
        self.server.series.append(body["series"]["count"])
        self.answer(200, {})


class Place(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    @contextlib.contextmanager
    def running(self, section, pods, nodes=(node("edge-1"),), file_limit_kib=None, lease=None, staleness="30s"):
        with Api(pods, nodes) as api:
            api.lease = lease
            (self.folder / "kube.conf").write_text(
                f"apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
                f"clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{api.server_port}'}}}}]\n"
                "users: [{name: u, user: {}}]\n", encoding="utf-8")
            (self.folder / "rudderfish.yaml").write_text(
                f"rudderfish: config/v1\ncluster: {{kubeconfig: kube.conf, staleness: {staleness}}}\n{section}\n", encoding="utf-8")
            with open(self.folder / "log", "ab") as log, subprocess.Popen(
                    ["bash", "-c", f"trap '' XFSZ; ulimit -S -f {file_limit_kib or 'unlimited'}; exec '{PROGRAM}' run"],
                    cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process:
                try:
                    yield api, process
                finally:
                    process.kill()
                    process.wait()

    def log(self):
        return (self.folder / "log").read_text(encoding="utf-8")

    def wait_for(self, condition):
        end = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), end, self.log())
            time.sleep(0.02)

    def ask(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], cwd=self.folder, stdin=subprocess.DEVNULL, timeout=60, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout

    @staticmethod
    def why_not_ready(server):
        try:
            with urllib.request.urlopen(f"http://{server}/readyz", timeout=10):
                return ""
        except urllib.error.HTTPError as error:
            return error.read().decode()

    def problem(self):
        status = self.ask("status", "-o", "json")
        return json.loads(status)["decisions"]["placement"]["problem"] if '"placement"' in status else None

    def test_one_process_places_pods_and_plans_moves(self):
        shutil.copy(EXAMPLE / "application.yaml", self.folder)
        section = ("applications: [application.yaml]\n"
                   "decisions: {placement: {mode: enforce}, migration: {policy: greedy, interval: 50ms}}")
        with self.running(section, pods(2)) as (api, process):
            self.wait_for(lambda: len(api.bindings) == 2)
            api.may_bind.set()
            api.may_tell.set()
            self.wait_for(lambda: json.loads(self.ask("status", "-o", "json"))["decisions"]["placement"]["bound"] == 2)
            kinds = json.loads(self.ask("status", "-o", "json"))["decisions"]
            self.assertEqual(len(api.lists), 15)
            self.assertEqual(set(api.lists.values()), {1}, f"each resource is watched once: {api.lists}")
            self.assertEqual({kind: one["mode"] for kind, one in kinds.items()}, {"placement": "enforce", "migration": "shadow"})
            self.assertEqual(kinds["migration"]["applications"][0]["name"], "continuum")
            decisions = json.loads(self.ask("decisions", "-o", "json"))["decisions"]
            self.assertLessEqual({("placement", "pod/web-0"), ("placement", "pod/web-1")}, {(one["kind"], one["subject"]) for one in decisions})
            self.assertEqual({one["kind"] for one in json.loads(self.ask("decisions", "--kind", "migration", "-o", "json"))["decisions"]},
                             {one["kind"] for one in decisions} - {"placement"})
            self.assertIn("shop/web-", self.ask("explain", "deployment/web", "-n", "shop"))
            text = self.ask("status")
            self.assertRegex(text, r"(?m)^placement  enforce; ")
            self.assertRegex(text, r"(?m)^migration  shadow; policy greedy$")
            self.assertEqual(self.ask("pause").splitlines(), ["placement: off (paused by the command line)",
                                                              "migration: off (paused by the command line)"])
            self.assertIn("migration stays in shadow; missing for advise: continuum: ", self.ask("promote", "migration"))
            self.assertIn("migration: shadow -> advise", self.ask("promote", "migration", "--force"))
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=20), 0)

    def test_an_instance_that_is_ended_sends_no_more_bindings_and_writes_its_events(self):
        with self.running("decisions: {placement: {mode: enforce}}", pods(40)) as (api, process):
            self.wait_for(lambda: len(api.bindings) == 1 + AT_A_TIME)
            process.send_signal(signal.SIGTERM)
            began = time.monotonic()
            time.sleep(1.8)
            api.may_bind.set()  # Now there is room for those that waited.
            time.sleep(began + 4.7 - time.monotonic())
            api.may_tell.set()
            self.assertEqual(process.wait(timeout=10), 0, self.log())
            self.assertEqual(len(api.bindings), 1 + AT_A_TIME)
            self.assertEqual(api.events, ["Scheduled"] * (1 + AT_A_TIME))
        self.assertIn("rudderfish shut down", self.log())

    def test_a_second_signal_ends_it_at_once(self):
        with self.running("decisions: {placement: {mode: enforce}}", pods(2)) as (api, process):
            self.wait_for(lambda: len(api.bindings) == 2)
            process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            self.assertIsNone(process.poll(), "its Binding is under way")
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=2), 0)

    def test_pods_that_the_mode_leaves_waiting_are_told_of(self):
        with self.running("decisions: {placement: {mode: shadow}}", pods(2)):
            self.wait_for(lambda: self.problem() is not None)
            self.wait_for(lambda: "no scheduler places them" in self.log())
            self.assertIn("2 pods with schedulerName rudderfish are pending, and no scheduler places them: placement is in shadow; ",
                          self.problem())
            self.assertIn("(rudderfish promote placement)", self.ask("status"))
            time.sleep(0.6)  # Two more reports.
            self.assertEqual(self.log().count("no scheduler places them"), 1)
            self.ask("pause")
            self.assertEqual(self.problem(), "", "a pause is no problem")
            self.ask("resume")
            self.ask("promote", "placement", "--to", "enforce", "--force")
            self.assertEqual(self.problem(), "")

    def test_the_room_of_a_pod_that_was_bound_unheard_is_given_to_no_other(self):
        """An API server that has too much to do says 504 and binds all the same; its watch lags."""
        with self.running("decisions: {placement: {mode: enforce}}", [pod("first", "40")]) as (api, _):
            api.may_bind.set()
            answers = iter([504])
            api.on_bind = lambda body: next(answers, 409) if body["metadata"]["name"] == "first" else 201
            asked = []
            api.look_up = lambda name: (asked.append(name), (503, []))[1]
            self.wait_for(lambda: api.bindings == ["first", "first"])
            api.news["/api/v1/pods"].put(("ADDED", pod("second", "40")))
            time.sleep(7)
            self.assertEqual(api.bindings, ["first", "first"], "its room may be taken")
            self.assertGreater(len(asked), 1, "it is asked until somebody says where the pod is")
            bound = pod("first", "40")
            bound["spec"]["nodeName"] = "edge-1"
            api.look_up = lambda name: (200, [bound])
            self.wait_for(lambda: json.loads(self.ask("status", "-o", "json"))["decisions"]["placement"]["bound"] == 1)
            time.sleep(1)
            self.assertEqual(api.bindings, ["first", "first"])
            api.news["/api/v1/pods"].put(("DELETED", bound))
            self.wait_for(lambda: api.bindings == ["first", "first", "second"])

    def test_a_pod_that_is_deleted_while_its_binding_is_under_way_is_not_tried_again(self):
        """It has a finalizer, so that it stays, and waits for no node."""
        with self.running("decisions: {placement: {mode: enforce}}", [pod("ends")]) as (api, _):
            may_answer = threading.Event()
            api.on_bind = lambda body: may_answer.wait(20) and 409
            ends = pod("ends")
            ends["metadata"].update(deletionTimestamp="2026-11-24T00:00:00Z", finalizers=["shop/last-words"])
            api.look_up = lambda name: (200, [ends])
            self.wait_for(lambda: api.bindings)
            api.news["/api/v1/pods"].put(("MODIFIED", ends))
            time.sleep(0.3)
            may_answer.set()
            self.wait_for(lambda: json.loads(self.ask("status", "-o", "json"))["decisions"]["placement"]["binding"] == 0)
            time.sleep(2)  # More than its first back-off.
            self.assertEqual(api.bindings, ["ends"])
            self.assertEqual(json.loads(self.ask("status", "-o", "json"))["decisions"]["placement"]["backing_off"], 0)

    def test_a_pod_that_waits_is_advised_when_that_begins_and_one_without_a_node_once_there_is_one(self):
        early, large = pod("early"), pod("large", "100")
        for one in (early, large):
            one["spec"]["schedulerName"] = "default-scheduler"
        with self.running("decisions: {placement: {mode: shadow}}", [early, large]) as (api, _):
            api.may_tell.set()
            self.wait_for(lambda: " runs: " in self.log())
            self.ask("promote", "placement", "--force")
            self.wait_for(lambda: api.advised == ["early"])
            bigger = node("edge-2")
            bigger["status"]["allocatable"]["cpu"] = "128"
            api.news["/api/v1/nodes"].put(("ADDED", bigger))
            self.wait_for(lambda: api.advised == ["early", "large"])
            self.ask("demote", "placement")
            self.ask("promote", "placement", "--force")
            time.sleep(1.5)
            self.assertEqual(api.advised, ["early", "large"], "once for each choice")

    def test_pods_that_fit_nowhere_are_told_of_once_while_others_come_and_go(self):
        filler = pod("filler", "10")
        filler["spec"].update(nodeName="edge-1", schedulerName="default-scheduler")
        with self.running("decisions: {placement: {mode: enforce}}", [filler] + [pod(f"large-{i}", "60") for i in range(50)]) as (api, _):
            api.may_tell.set()
            self.wait_for(lambda: len(api.events) == 50 and len(api.conditions) == 50)
            small = pod("small", "1")
            small["spec"].update(nodeName="edge-1", schedulerName="default-scheduler")
            for _ in range(12):
                api.news["/api/v1/pods"].put(("ADDED", small))
                time.sleep(0.25)
                api.news["/api/v1/pods"].put(("DELETED", small))
                time.sleep(0.25)
            self.assertEqual((len(api.events), api.series, len(api.conditions)), (50, [], 50))
            with contextlib.closing(sqlite3.connect(self.folder / "rudderfish.db")) as journal:
                self.assertEqual(journal.execute("SELECT count(*) FROM placements").fetchone(), (50,))
            api.may_bind.set()
            api.news["/api/v1/pods"].put(("DELETED", filler))  # Now there is room for one of them.
            self.wait_for(lambda: len(api.bindings) == 1)

    def test_pods_that_were_there_before_any_node_are_placed_on_the_first(self):
        with self.running("decisions: {placement: {mode: enforce}}", [pod("early")], nodes=()) as (api, _):
            self.wait_for(lambda: api.conditions)
            self.assertEqual(api.conditions, [("early", "no nodes available to schedule pods")])
            api.news["/api/v1/nodes"].put(("ADDED", node("edge-1")))
            self.wait_for(lambda: api.bindings == ["early"])

    def test_why_a_pod_waits_is_written_into_its_condition_however_often_that_fails(self):
        """cluster-autoscaler goes by it."""
        with self.running("decisions: {placement: {mode: enforce}}", [pod("large", "100")]) as (api, _):
            api.may_tell.set()
            answers = iter([500, 503, 403])
            api.on_condition = lambda: next(answers, 200)
            why = ("large", "0/1 nodes are available: 1 Insufficient cpu.")
            self.wait_for(lambda: api.conditions == [why] * 4)
            time.sleep(2)
            self.assertEqual(api.conditions, [why] * 4)
            self.assertEqual(self.log().count("cannot be written into their condition"), 1)

    def test_a_pod_without_a_node_is_answered_again_by_what_is_seen_a_moment_later(self):
        """kube-scheduler asks again when it sees a change, which we may see a little later."""
        fills, waits = pod("fills"), pod("waits")
        fills["spec"].update(nodeName="edge-1", schedulerName="default-scheduler")
        fills["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "40"
        port = free_port()
        body = json.dumps({"Pod": waits, "Nodes": None, "NodeNames": ["edge-1"]}).encode()

        def kept():
            began = time.monotonic()
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/filter", data=body, timeout=10) as answer:
                return json.load(answer)["NodeNames"] or [], time.monotonic() - began
        with self.running(f'extender: {{listen: "127.0.0.1:{port}", timeout: 5s, hard_limits: {{cpu: 0.5}}}}', [fills]) as (api, _):
            self.wait_for(lambda: "rudderfish" in self.log() and " runs: " in self.log())
            self.assertEqual(kept()[0], [])
            # Nothing has changed since: it waits whether anything does, and once is enough.
            nodes, took = kept()
            self.assertEqual(nodes, [])
            self.assertGreaterEqual(took, 0.09)
            took = []
            for _ in range(5):
                nodes, one = kept()
                self.assertEqual(nodes, [])
                took.append(one)
            self.assertLess(min(took), 0.09)
            larger = node("edge-1")
            larger["status"]["allocatable"]["cpu"] = "66"
            api.news["/api/v1/nodes"].put(("MODIFIED", larger))
            time.sleep(0.5)
            self.assertEqual(kept()[0], [], "of 66 cores 40 are too many, too")
            threading.Timer(0.03, api.news["/api/v1/pods"].put, [("DELETED", fills)]).start()
            self.assertEqual(kept()[0], ["edge-1"])

    def test_clients_without_tls_are_one_line_and_are_counted_in_status(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
                        "2", "-subj", "/CN=x", "-keyout", "tls.key", "-out", "tls.crt"], cwd=self.folder, check=True,
                       stderr=subprocess.DEVNULL)
        port = free_port()
        tls = "{certificate: tls.crt, key: tls.key, client_ca: tls.crt}"
        with self.running(f'extender: {{listen: "127.0.0.1:{port}", tls: {tls}}}', []):
            self.wait_for(lambda: " runs: " in self.log())
            self.assertNotIn("refused  ", self.ask("status"))
            for _ in range(20):
                with socket.create_connection(("127.0.0.1", port)) as client:
                    client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                    with contextlib.suppress(ConnectionError):
                        client.recv(100)
            self.wait_for(lambda: "refused    20 clients, TLS handshake failed; the newest: 127.0.0.1:" in self.ask("status"))
        self.assertEqual(self.log().count("TLS handshake"), 1, self.log())

    def test_a_journal_that_cannot_be_written_is_said_once_and_so_is_its_end(self):
        server = f"127.0.0.1:{free_port()}"
        with self.running(f"decisions: {{placement: {{mode: shadow}}}}\nserver: {{listen: '{server}'}}", [], file_limit_kib=200) as (api, process):
            self.wait_for(lambda: " runs: " in self.log())
            count = 0

            def places_more():
                nonlocal count
                for _ in range(10):
                    count += 1
                    other = pod(f"other-{count}")
                    other["spec"]["schedulerName"] = "default-scheduler"
                    api.news["/api/v1/pods"].put(("ADDED", json.loads(json.dumps(other))))
                    other["spec"]["nodeName"] = "edge-1"
                    api.news["/api/v1/pods"].put(("MODIFIED", other))
                time.sleep(0.1)
                return "cannot be written or read" in self.log()
            self.wait_for(places_more)
            self.wait_for(lambda: "journal" in self.why_not_ready(server))
            end = time.monotonic() + 6
            while time.monotonic() < end:
                places_more()
                self.assertIn("journal", self.why_not_ready(server))
            self.assertEqual(self.log().count("cannot be written or read"), 1, self.log())
            self.assertNotIn("again", self.log())
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            self.wait_for(lambda: "the journal can be written again" in self.log())
            self.wait_for(lambda: self.why_not_ready(server) == "")
            self.assertEqual(self.log().count("cannot be written or read"), 1, self.log())

    def placed(self, path="rudderfish.db"):
        with contextlib.closing(sqlite3.connect(f"file:{self.folder / path}?mode=ro", uri=True)) as journal:
            return [row[0] for row in journal.execute("SELECT pod FROM placements ORDER BY number")]

    def test_a_journal_that_is_taken_away_is_noticed_and_goes_on_in_another_file(self):
        server = f"127.0.0.1:{free_port()}"
        journal, count = self.folder / "rudderfish.db", 0

        def remove(pattern):
            for path in self.folder.glob(pattern):
                path.unlink()

        def move_away():
            for path in list(self.folder.glob("rudderfish.db*")):
                path.rename(self.folder / path.name.replace("rudderfish", "away"))

        def overwrite():
            (self.folder / "rudderfish.db-wal").write_bytes(b"x" * 100_000)
        with self.running(f"decisions: {{placement: {{mode: enforce}}}}\nserver: {{listen: '{server}'}}", []) as (api, process):
            api.may_bind.set()
            self.wait_for(lambda: " runs: " in self.log())
            for harm, says in ((lambda: remove("rudderfish.db*"), "has been removed or renamed"), (move_away, "has been removed or renamed"),
                               (lambda: remove("rudderfish.db"), "has been removed or renamed"),
                               (lambda: remove("rudderfish.db-wal"), "has lost rudderfish.db-wal"),
                               (overwrite, "has a log that was overwritten")):
                count += 1
                api.news["/api/v1/pods"].put(("ADDED", pod(f"web-{count}")))
                self.wait_for(lambda: len(api.bindings) == count)
                self.wait_for(lambda: self.ask("status") and f"web-{count}" in self.placed())
                before = self.log().count(says)
                harm()
                self.wait_for(lambda says=says, before=before: self.log().count(says) > before or says in self.why_not_ready(server))
                self.assertIn(says, json.loads(self.ask("status", "-o", "json"))["journal_problem"])
                self.assertIn(f"journal    rudderfish.db: {says}", self.ask("status"))
                self.wait_for(journal.exists)
            process.send_signal(signal.SIGTERM)
            api.may_tell.set()
            self.assertEqual(process.wait(timeout=10), 0, self.log())
        self.assertEqual(self.placed(), [f"web-{i + 1}" for i in range(count)], self.log())
        self.assertEqual(self.placed("away.db"), ["web-1", "web-2"])

    def test_a_journal_that_is_replaced_keeps_what_the_old_one_held_beside_it(self):
        with self.running("decisions: {placement: {mode: enforce}}", pods(1)) as (api, _):
            self.wait_for(lambda: api.bindings)
        shutil.copy(self.folder / "rudderfish.db", self.folder / "backup")
        with self.running("decisions: {placement: {mode: enforce}}", [pod("later")]) as (api, _):
            api.may_bind.set()
            self.wait_for(lambda: api.bindings)
            self.wait_for(lambda: "later" in self.placed())
            (self.folder / "backup").rename(self.folder / "rudderfish.db")
            self.wait_for(lambda: "has been replaced by another file" in self.log())
            api.news["/api/v1/pods"].put(("ADDED", pod("newest")))
            self.wait_for(lambda: "newest" in self.placed())
            self.assertNotIn("later", self.placed())
            kept, = self.folder.glob("rudderfish.db.rescued-*")
            self.assertIn("later", self.placed(kept.name))

    def test_a_damaged_journal_is_set_aside(self):
        (self.folder / "rudderfish.db").write_bytes(b"x" * 5000)
        with self.running("decisions: {placement: {mode: enforce}}", pods(1)) as (api, _):
            self.wait_for(lambda: api.bindings)
        aside, = self.folder.glob("rudderfish.db.damaged-*")
        self.assertEqual(aside.read_bytes(), b"x" * 5000)
        self.assertIn(f"is damaged or no journal (file is not a database); it was renamed to {aside.name}, and a new journal begins: a pause or a mode kept in it is lost", self.log())

    def test_pods_are_placed_while_the_journal_cannot_be_written_and_recorded_later(self):
        with self.running("decisions: {placement: {mode: enforce}}", [], file_limit_kib=1) as (api, process):
            api.may_bind.set()
            self.wait_for(lambda: " runs: " in self.log())
            for number in range(4):
                api.news["/api/v1/pods"].put(("ADDED", pod(f"web-{number}")))
                self.wait_for(lambda: len(api.bindings) == number + 1)
            status = json.loads(self.ask("status", "-o", "json"))
            self.assertIn("pods are placed; 4 decisions wait to be written", status["journal_problem"])
            self.assertEqual(status["decisions"]["placement"]["unserved"], 0)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            self.wait_for(lambda: "the journal can be written again" in self.log())
            self.wait_for(lambda: self.placed() == [f"web-{i}" for i in range(4)])

    def test_a_canary_is_placed_by_kube_default_while_it_cannot_be_judged(self):
        busy = pod("busy", "32")
        busy["spec"]["nodeName"], busy["status"]["phase"] = "full", "Running"
        section = "decisions: {placement: {mode: canary, canary: 0.99, policy: most-allocated, objective: utilisation}}"
        to = []

        def choose(body):
            to.append(body["target"]["name"])
            return 201
        with self.running(section, [busy], (node("full"), node("idle")), file_limit_kib=1) as (api, process):
            api.may_bind.set()
            api.on_bind = choose
            self.wait_for(lambda: " runs: " in self.log())
            for number in range(4):
                api.news["/api/v1/pods"].put(("ADDED", pod(f"unseen-{number}", "1")))
            self.wait_for(lambda: len(to) == 4)
            self.assertEqual(set(to), {"idle"})
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            self.wait_for(lambda: "the journal can be written again" in self.log())
            for number in range(20):
                api.news["/api/v1/pods"].put(("ADDED", pod(f"seen-{number}", "1")))
            self.wait_for(lambda: len(to) == 24)
            self.assertIn("full", to, "the policy places again")

    def test_who_looks_on_compares_and_writes_nothing_to_the_cluster(self):
        theirs = {"metadata": {"name": "one", "namespace": "ops", "uid": "lease", "resourceVersion": "1"},
                  "spec": {"holderIdentity": "somebody else", "leaseDurationSeconds": 60, "leaseTransitions": 1,
                           "acquireTime": "2026-11-24T00:00:00.000000Z", "renewTime": "2026-11-24T00:00:00.000000Z"}}
        others = pod("others")
        others["spec"]["schedulerName"] = "default-scheduler"
        section = "decisions: {placement: {mode: advise}}\nleader_election: {lease: ops/one, duration: 60s}"
        with self.running(section, [others, pod("ours"), pod("large", "100")], lease=theirs) as (api, _):
            api.may_tell.set()
            self.wait_for(lambda: " runs: " in self.log())
            time.sleep(1.5)
            others["spec"]["nodeName"] = "edge-1"
            api.news["/api/v1/pods"].put(("MODIFIED", others))

            def compared():
                with contextlib.closing(sqlite3.connect(self.folder / "rudderfish.db")) as journal:
                    return journal.execute("SELECT pod, kind FROM comparisons").fetchall()
            self.wait_for(compared)
            self.assertEqual(compared(), [("others", "shadow")])
            self.assertEqual((api.bindings, api.events, api.conditions, api.renewals), ([], [], [], []))

    def test_bindings_that_hang_do_not_cost_the_lead(self):
        with self.running("decisions: {placement: {mode: enforce}}\nleader_election: {lease: ops/one, duration: 3s}", pods(100)) as (api, _):
            self.wait_for(lambda: len(api.bindings) == 1 + AT_A_TIME)
            began = len(api.renewals)
            self.wait_for(lambda: len(api.renewals) > began + 12)  # Each 0.4 s, where it may not take more than 2 s.
            self.assertEqual(len(api.bindings), 1 + AT_A_TIME, "they hang still")
        self.assertEqual(self.log().count("leads"), 1)
        self.assertNotIn("lost", self.log())

    def test_silent_watches_are_not_believed_while_all_else_is_answered(self):
        server = f"127.0.0.1:{free_port()}"
        with self.running(f"decisions: {{placement: {{mode: enforce}}}}\nserver: {{listen: '{server}'}}", [], staleness="2s") as (api, _):
            self.wait_for(lambda: " runs: " in self.log())
            self.wait_for(lambda: self.why_not_ready(server) == "")
            api.watches_stand = True
            self.wait_for(lambda: "what is known is " in self.why_not_ready(server))
            self.wait_for(lambda: "no answer to a watch in time" in (self.problem() or ""))
            api.watches_stand = False
            self.wait_for(lambda: self.why_not_ready(server) == "")
            api.news["/api/v1/pods"].put(("ADDED", pod("later")))
            self.wait_for(lambda: api.bindings == ["later"])
        self.assertIn("no answer to a watch in time", self.log())

    def test_a_server_that_stands_still_next_to_others_delays_no_pod(self):
        server = f"127.0.0.1:{free_port()}"
        section = f"decisions: {{placement: {{mode: enforce}}}}\nserver: {{listen: '{server}'}}"
        with self.running(section, pods(1), staleness="12s") as (api, _):
            self.wait_for(lambda: api.bindings == ["web-0"])
            self.wait_for(lambda: self.why_not_ready(server) == "")
            before = api.connections
            api.still = before  # New connections lead to another one.
            api.news["/api/v1/pods"].put(("ADDED", pod("later")))
            api.may_bind.set()
            while len(api.bindings) < 2:
                self.assertEqual(self.why_not_ready(server), "")
                time.sleep(0.02)
            self.assertEqual(api.bindings, ["web-0", "later"])
            self.wait_for(lambda: "is silent" in self.log() or "no answer to a watch in time" in self.log())
            self.assertLess(api.connections, before + 40)

    def test_a_quiet_cluster_is_watched_over_the_same_connections(self):
        with self.running("decisions: {placement: {mode: enforce}}", [], staleness="3s") as (api, _):
            self.wait_for(lambda: " runs: " in self.log())
            time.sleep(2.5)  # Lists become watches.
            before = api.connections
            for _ in range(20):
                self.assertEqual(self.problem(), "")
                time.sleep(0.2)
            self.assertEqual(api.connections, before)
        self.assertNotIn("warning", self.log())


if __name__ == "__main__":
    unittest.main()
