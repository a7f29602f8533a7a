#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rudderfish serve reach` as REACH's migrator and an operator use it: over sockets, from several clients at once.

An independent implementation of REACH's rules (replay_check.py) checks its answers: a move must be one that REACH's server
allows, and must shorten requests by REACH's own simulator. RUDDERFISH names the program; RUDDERFISH_REACH_DATA a folder with requests
captured from the migrator (examples/), which are replayed too if it is set.
"""
import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import replay_check

TOP = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = pathlib.Path(os.environ.get("RUDDERFISH", TOP / "build/release/rudderfish")).resolve()
SCENARIO = TOP / "scenarios/continuum-7x21.yaml"
CHECKPOINT = TOP / "policies/continuum.safetensors"
REQUEST = TOP / "tests/data/reach-wire/get_action_request.json"
MEAN_LATENCY_MS = 275.0  # Of "50ms to 500ms".
JSON = {"Content-Type": "application/json"}


class World:
    """The services, node types and calls of scenarios/continuum-7x21.yaml, as REACH's files would say them."""

    node_types = {"tb-cloud-vm-8": {"cpu_type": 0, "bandwidth": "500m"}, "tb-edge-vm-4": {"cpu_type": 1, "bandwidth": "200m"},
                  "tb-edge-vm-2": {"cpu_type": 2, "bandwidth": "200m"}, "tb-client-vm-2": {"cpu_type": 1, "bandwidth": "200m"}}
    services = {name: {"cpu-requests": cpu, "memory-requests": memory, "type": "service"} for name, cpu, memory in (
        ("client", "700m", "700M"), ("aggregator", "700m", "700M"), ("detection", "1000m", "1000M"), ("db", "500m", "500M"),
        ("machine-learning", "1500m", "1500M"))}
    services["client"]["layer"] = "client"

    @staticmethod
    def pattern(_name):
        def call(times, below=()):
            return {"data-size": "0.1M", "execution-time": dict(zip("012", times)), "call-path": list(below)}
        leaves = {"machine-learning": call(("46ms", "69ms", "92ms")), "db": call(("2.1ms", "3.15ms", "4.2ms")),
                  "detection": call(("12.5ms", "18.75ms", "25ms"))}
        aggregator = call(("7ms", "10.5ms", "14ms"), [leaves])
        return {"detection": {"client": "client", "call-path": [{"aggregator": aggregator}], "rps": 5, "qos": "100ms"}}


def layer_of(node):
    return node.split("-")[1]


def replay_of(request):
    """The request as a state of REACH's simulator."""
    far = {"cloud": MEAN_LATENCY_MS, "edge": 0.1, "client": 0.1}
    latency = {"edge": far, "client": far, "cloud": {"cloud": 0.1, "edge": MEAN_LATENCY_MS, "client": MEAN_LATENCY_MS}}
    state = request["cluster_state"]
    return replay_check.Replay(World(), {
        "latency_between_layer": latency, "pattern": "aggregator_sequential",
        "nodes": [{"name": name, "layer": layer_of(name), "cpu_free": node["cpu_availability"] / 1000,
                   "mem_free": node["memory_availability"]} for name, node in state["nodes"].items()],
        "pods": [{"name": pod["pod_name"], "service": name, "node": pod["node_name"]}
                 for name, service in state["services"].items() for pod in service["pods"]]})


class Server:
    def __init__(self, folder, *arguments):
        self.socket = pathlib.Path(folder) / "server.sock"
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "reach", "--policy", CHECKPOINT, "--scenario", SCENARIO, "--pattern", "aggregator_sequential",
             "--listen", f"127.0.0.1:0,unix:{self.socket}", *map(str, arguments)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.said = self.process.stderr.readline()
        self.port = int(re.search(r"127\.0\.0\.1:(\d+)", self.said).group(1))

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, body, method="POST", path="/get_action", headers=None, connection=None):
        own = connection or self.connect()
        own.request(method, path, body if isinstance(body, (str, bytes, type(None))) else json.dumps(body), headers or JSON)
        response = own.getresponse()
        answer = response.status, response.getheader("Content-Type"), response.read()
        if connection is None:
            own.close()
        return answer

    def stop(self):
        """Seconds it took, its status, and what it said."""
        start = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        said = self.process.communicate(timeout=60)[1]
        return time.monotonic() - start, self.process.returncode, said


class Serve(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def start(self, *arguments):
        server = Server(self.folder, *arguments)
        self.addCleanup(server.process.stderr.close)
        self.addCleanup(server.process.wait)
        self.addCleanup(server.process.kill)
        return server

    def follow(self, server, request):
        """Does what the server says until it stops, by REACH's rules; returns the moves made."""
        moves = []
        while True:
            status, kind, body = server.ask(request)
            self.assertEqual((status, kind), (200, "application/json"), body)
            answer = json.loads(body)
            self.assertEqual([(key, type(value)) for key, value in answer.items()],
                             [("is_stop", bool), ("pod_name", str), ("target_node", str)])
            if answer["is_stop"]:
                self.assertEqual((answer["pod_name"], answer["target_node"]), ("", ""))
                return moves
            replay = replay_of(request)
            pod, target = answer["pod_name"], answer["target_node"]
            self.assertTrue(replay.may_move(pod, target, replay_check.ROOM_TOLERANCE), answer)
            self.assertIn(target, request["pod_deployable"][pod])
            before = replay.latency_ms()
            replay.move(pod, target)
            moves.append((pod, target, before - replay.latency_ms()))
            self.assertLessEqual(len(moves), 30)
            self.make_move(request, replay, pod, target)

    @staticmethod
    def make_move(request, replay, pod, target):
        state = request["cluster_state"]
        for name, node in state["nodes"].items():
            node["cpu_availability"] = round(replay.nodes[name]["cpu"] * 1000)
            node["memory_availability"] = replay.nodes[name]["memory"]
        for name, service in state["services"].items():
            for entry in service["pods"]:
                if entry["pod_name"] == pod:
                    entry["node_name"] = target
                cpu, memory = replay.requests(entry["pod_name"])
                request["pod_deployable"][entry["pod_name"]] = [
                    name for name, node in replay.nodes.items() if node["cpu"] >= cpu - 1e-9 and node["memory"] >= memory]

    def test_its_plan_shortens_requests_by_reachs_rules(self):
        server = self.start()
        requests = [REQUEST]
        if "RUDDERFISH_REACH_DATA" in os.environ:
            requests.append(pathlib.Path(os.environ["RUDDERFISH_REACH_DATA"]) / "examples/get_action_request.json")
        else:
            print("RUDDERFISH_REACH_DATA is not set: no captured request is replayed")
        for path in requests:
            start = json.loads(path.read_text(encoding="utf-8"))
            before = replay_of(start).latency_ms()
            moves = self.follow(server, start)
            self.assertGreaterEqual(len(moves), 1)
            self.assertGreater(sum(gain for _, _, gain in moves), 0.2 * len(moves))
            self.assertAlmostEqual(replay_of(start).latency_ms(), before - sum(gain for _, _, gain in moves), 6)
            print(f"{path.name}: {before:.1f} ms, {len(moves)} moves, {replay_of(start).latency_ms():.1f} ms")

    def test_clients_at_once_get_what_each_would_get_alone(self):
        server = self.start("--threads", 3)
        bodies = [REQUEST.read_text(encoding="utf-8")]
        for node in ("tb-edge-vm-4-2", "tb-edge-vm-2-2"):
            request = json.loads(bodies[0])
            for nodes in request["pod_deployable"].values():
                nodes[:] = [name for name in nodes if name != node]
            bodies.append(json.dumps(request))
        alone = [server.ask(body) for body in bodies]

        def client(number):
            connection = server.connect()
            good = 0
            for i in range(60):
                which = (number + i) % (len(bodies) + 1)
                if which == len(bodies):
                    good += server.ask("{", connection=connection)[0] == 400
                else:
                    good += server.ask(bodies[which], connection=connection) == alone[which]
            connection.close()
            return good

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertEqual(list(pool.map(client, range(8))), [60] * 8)

    def test_bad_requests_are_4xx_in_json(self):
        server = self.start("--unknown", "refuse")
        request = json.loads(REQUEST.read_text(encoding="utf-8"))
        strange = json.loads(json.dumps(request))
        strange["cluster_state"]["nodes"]["control-plane"] = {"cpu_availability": 1, "memory_availability": 1}
        for expected, answer in (
                (400, server.ask("")), (400, server.ask("[")), (400, server.ask("{}")), (400, server.ask(b"\xff\xfe")),
                (400, server.ask("[" * 100000)), (422, server.ask(strange)), (413, server.ask("x" * (17 << 20))),
                (415, server.ask(request, headers={"Content-Type": "text/plain"})),
                (405, server.ask(None, "GET")), (404, server.ask(None, "GET", path="/")), (413, server.ask(request, path="/"))):
            status, kind, body = answer
            self.assertEqual((status, kind), (expected, "application/json"), body)
            self.assertEqual(json.loads(body)["status"], "error")
        self.assertEqual(server.ask(request)[0], 200)

    def test_unknown_nodes_are_ignored_as_reach_does(self):
        server = self.start()
        request = json.loads(REQUEST.read_text(encoding="utf-8"))
        known = server.ask(request)
        request["cluster_state"]["nodes"]["control-plane"] = {"cpu_availability": 9000, "memory_availability": 64}
        for nodes in request["pod_deployable"].values():
            nodes.append("control-plane")
        self.assertEqual(server.ask(request), known)

    def test_answers_on_a_unix_socket(self):
        server = self.start()
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(server.socket))
        client.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        self.assertTrue(client.makefile("rb").read().startswith(b"HTTP/1.1 200 OK"))
        client.close()

    def test_metrics_count_what_was_asked_and_promtool_is_content(self):
        server = self.start()
        server.ask(REQUEST.read_text(encoding="utf-8"))
        server.ask("{")
        self.assertEqual(server.ask(None, "GET", "/readyz")[0], 200)
        status, kind, text = server.ask(None, "GET", "/metrics")
        self.assertEqual((status, kind), (200, "text/plain; version=0.0.4; charset=utf-8"))
        for line in (b'rudderfish_http_requests_total{code="200",path="/get_action"} 1\n',
                     b'rudderfish_http_requests_total{code="400",path="/get_action"} 1\n', b"rudderfish_build_info{"):
            self.assertIn(line, text)
        if shutil.which("promtool") is None:
            self.skipTest("promtool is not installed (./setup installs it)")
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))

    def test_ends_within_five_seconds_of_sigterm(self):
        server = self.start("-v")
        busy = socket.create_connection(("127.0.0.1", server.port))  # In the middle of a request.
        busy.sendall(b"POST /get_action HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        idle = server.connect()
        server.ask(REQUEST.read_text(encoding="utf-8"), connection=idle)
        seconds, status, said = server.stop()
        busy.close()
        idle.close()
        self.assertEqual(status, 0, said)
        self.assertLess(seconds, 5)
        self.assertRegex(said, r"POST /get_action 200 \d+\.\d+ ms: [a-z-]+-\w+-\w+ -> tb-")
        self.assertFalse(server.socket.exists())

    def test_bad_arguments_are_one_line_and_status_2(self):
        for arguments, says in ((["--policy", "gredy"], "greedy"), ([], "--policy is missing"),
                                (["--policy", "greedy", "--listen", "5000"], "--listen"),
                                (["--policy", "greedy", "--pattern", "chian"], "chain"),
                                (["--policy", "exact"], "lookahead"),
                                (["--policy", "greedy", "--scenario", "no.yaml"], "no.yaml")):
            done = subprocess.run([PROGRAM, "serve", "reach", *arguments, "-q"], cwd=TOP, capture_output=True,
                                  text=True, check=False, timeout=60, stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(says, done.stderr)


if __name__ == "__main__":
    unittest.main()
