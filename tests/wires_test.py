#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rudderfish serve drs` and `serve suggestions` as the schedulers that ask them do, byte for byte, on an API server that a test
fills (place_test.py).

RUDDERFISH names the program; default: build/release/rudderfish.
"""
import contextlib
import http.client
import json
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from place_test import PROGRAM, TOP, Api, free_port, pod

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def node(name, address, cpu="4", user_ms=None):
    annotations = {} if user_ms is None else {"rudderfish.io/user-latency-ms": str(user_ms)}
    return {"metadata": {"name": name, "uid": name, "resourceVersion": "1", "annotations": annotations},
            "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"},
                       "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]}}


def bound(name, where, cpu):
    placed = pod(name, cpu)
    placed["spec"]["nodeName"] = where
    placed["status"]["phase"] = "Running"
    return placed


NODES = [node("node1", "172.19.0.2"), node("node2", "172.19.0.3"), node("node3", "172.19.0.7")]


class Wires(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def serve(self, *arguments):
        process = subprocess.Popen([PROGRAM, "serve", *map(str, arguments)], cwd=self.folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        said = process.stderr.readline()
        self.assertIn("Serving", said)
        return process, int(re.search(r"on 127\.0\.0\.1:(\d+)", said).group(1))

    @contextlib.contextmanager
    def cluster(self, pods=(), nodes=NODES):
        with Api(list(pods), list(nodes)) as api:
            (self.folder / "kube.conf").write_text(
                f"apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
                f"clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{api.server_port}'}}}}]\n"
                "users: [{name: u, user: {}}]\n", encoding="utf-8")
            yield api

    @staticmethod
    def choose(port, body, headers=None, method="POST", path="/choose"):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request(method, path, body, FORM if headers is None else headers)
        response = connection.getresponse()
        answer = response.status, response.getheader("Content-Type"), response.read().decode()
        connection.close()
        return answer

    @staticmethod
    def command(port, *parts, end=True):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            for part in parts:
                client.sendall(part.encode() if isinstance(part, str) else part)
            if end:
                client.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: client.recv(65536), b""))

    def drs(self, *arguments):
        return self.serve("drs", "--kubeconfig", "kube.conf", "--policy", "least-allocated", "--listen", "127.0.0.1:0", *arguments)[1]

    def test_choose_answers_the_name_of_the_best_node(self):
        waiting = [pod("app-video-1", "1"), pod("app-net-1", "1")]
        with self.cluster([*waiting, bound("a", "node1", "2"), bound("b", "node3", "1")]) as api:
            port = self.drs()
            self.assertEqual(self.choose(port, "podname=app-video-1"), (200, "text/plain; charset=utf-8", "node2"))
            for _ in range(5):  # As a filter that asks once for each node.
                self.assertEqual(self.choose(port, "podname=app-video-1")[2], "node2")
            self.assertIn(self.choose(port, "podname=app-net-1")[2], ("node2", "node3"), "the first counts as placed")
            self.assertEqual(self.choose(port, "podname=shop%2Fapp-video-1")[2], "node2")
            self.assertEqual(self.choose(port, "podname=a")[2], "node1", "it is there already")
            api.news["/api/v1/pods"].put(("ADDED", pod("late", "3")))
            self.assertEqual(self.choose(port, "podname=late")[:2], (200, "text/plain; charset=utf-8"))
            self.assertEqual(self.choose(port, None, method="GET", path="/readyz")[0], 200)
            text = self.choose(port, None, method="GET", path="/metrics")[2]
            self.assertRegex(text, r'rudderfish_http_requests_total\{code="200",path="/choose"\} \d+')

    def test_what_has_no_answer_has_another_status_than_200(self):
        other = pod("twin")
        other["metadata"].update(namespace="other", uid="uid-other")
        unknown = pod("claims")
        unknown["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]
        with self.cluster([pod("large", "100"), pod("twin"), other]):
            port = self.drs()
            for status, answer in ((404, self.choose(port, "podname=large")), (404, self.choose(port, "podname=nobody")),
                                   (409, self.choose(port, "podname=twin")), (400, self.choose(port, "pod=x")),
                                   (400, self.choose(port, "podname=")), (400, self.choose(port, "podname=%zz")),
                                   (415, self.choose(port, "{}", {"Content-Type": "application/json"})),
                                   (413, self.choose(port, "podname=" + "x" * 5000)),
                                   (405, self.choose(port, None, method="GET")), (404, self.choose(port, "", path="/"))):
                self.assertEqual((answer[0], answer[1]), (status, "application/json"), answer)
                self.assertEqual(json.loads(answer[2])["status"], "error")

    def test_monitors_are_asked_as_drs_asks_them(self):
        states = [b"(25.0, 50.0, 1.0, 1.0, 0.0, 0.0)", b"(1.0, 50.0, 1.0, 1.0, 0.0, 0.0)"]
        with contextlib.ExitStack() as stack:
            monitors = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in states]
            addresses = [f"node{i + 1}=127.0.0.1:{monitor.getsockname()[1]}" for i, monitor in enumerate(monitors)]
            _, port = self.serve("drs", "--monitors", ",".join([*addresses, "node9=127.0.0.1:1"]), "--listen", "127.0.0.1:0")
            for turn in range(2):
                asking = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                asking.request("POST", "/choose", "podname=app-video-7", FORM)
                if turn == 0:
                    clients = [stack.enter_context(monitor.accept()[0]) for monitor in monitors]
                for client, state in zip(clients, states):
                    self.assertEqual(client.recv(8), b"getState")
                    client.sendall(state)
                response = asking.getresponse()
                self.assertEqual((response.status, response.read()), (200, b"node2"))
                asking.close()
        status, _, body = self.choose(port, "podname=app-video-7")
        self.assertEqual(status, 503)
        self.assertIn("no monitor answers", body)

    TRANSCRIPT = (
        ("getSuggestion\n", "{}"),
        ("getStep\n", "false"),
        ("getResourceValues\n", '{"cpuRequest": "0", "memoryRequest": "0", "latencySoftConstraint": -1, "latencyHardConstraint": -1}'),
        ('setResourceValues {"cpuRequest":"250m","memoryRequest":"64Mi","latencySoftConstraint":35,"latencyHardConstraint":100}\n',
         '{"status": "success", "message": "Resource values set successfully."}'),
        ("getResourceValues\n",
         '{"cpuRequest": "250m", "memoryRequest": "64Mi", "latencySoftConstraint": 35, "latencyHardConstraint": 100}'),
        ("getStep", "true"),
        ('setSuggestion {"172.19.0.7": 1, "172.19.0.3": 10, "172.19.0.2": 1}',
         '{"status": "success", "message": "Suggestion set successfully."}'),
        ("getSuggestion", '{"172.19.0.7": 1, "172.19.0.3": 10, "172.19.0.2": 1}'),
        ("setStep false", '{"status": "success", "message": "Step flag set successfully."}'),
        ("getStep", "false"),
        ("setSuggestion", '{"status": "error", "message": "Missing value for setSuggestion command."}'),
        ("setStep\n", '{"status": "error", "message": "Missing value for setStep command."}'),
        ("setResourceValues \n", '{"status": "error", "message": "Missing value for setResourceValues command."}'),
        ("setSuggestion {", '{"status": "error", "message": "Invalid JSON data."}'),
        ("nonsense 1", '{"status": "error", "message": "Unknown command: nonsense"}'))

    def test_suggestions_are_answered_byte_for_byte(self):
        _, port = self.serve("suggestions", "--listen", "127.0.0.1:0")
        for request, reply in self.TRANSCRIPT:
            self.assertEqual(self.command(port, request, end=False).decode(), reply, request)

    def test_large_maps_go_both_ways(self):
        _, port = self.serve("suggestions", "--listen", "127.0.0.1:0")
        suggestion = json.dumps({f"10.2.{i // 250}.{i % 250}": i % 10 for i in range(3000)})
        self.assertGreater(len(suggestion), 40_000)
        half = len(suggestion) // 2
        reply = self.command(port, "setSuggestion " + suggestion[:half], suggestion[half:], "\n", end=False)
        self.assertEqual(reply, b'{"status": "success", "message": "Suggestion set successfully."}')
        self.assertEqual(self.command(port, "getSuggestion\n").decode(), suggestion)

    def test_the_policy_answers_for_the_pod_that_is_asked_about(self):
        with self.cluster([bound("a", "node1", "2"), bound("b", "node3", "1")]):
            _, port = self.serve("suggestions", "--kubeconfig", "kube.conf", "--policy", "least-allocated", "--listen", "127.0.0.1:0")

            def suggested(cpu):
                values = {"cpuRequest": cpu, "memoryRequest": "64Mi", "latencySoftConstraint": 0, "latencyHardConstraint": 0}
                reply = self.command(port, f"setResourceValues {json.dumps(values)}\n")
                self.assertEqual(reply, b'{"status": "success", "message": "Resource values set successfully."}')
                return self.command(port, "getSuggestion\n").decode()

            self.assertEqual(suggested("1"), '{"172.19.0.2": 1, "172.19.0.3": 10, "172.19.0.7": 1}')
            self.assertEqual(suggested("8"), "{}", "no node fits")
            self.assertEqual(suggested("Not requested"), '{"172.19.0.2": 1, "172.19.0.3": 10, "172.19.0.7": 1}')
            self.assertEqual(self.command(port, "getStep"), b"false")

    def test_who_is_slow_or_sends_too_much_is_dropped_and_counted(self):
        operations = free_port()
        process, port = self.serve("suggestions", "--listen", "127.0.0.1:0", "--metrics", f"127.0.0.1:{operations}", "-v")
        with contextlib.suppress(OSError):
            self.assertEqual(self.command(port, b"x" * (300 << 10)), b"")
        silent = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(70)]
        self.assertEqual(self.command(port, "getStep\n"), b"false", "idle connections make room")
        connection = http.client.HTTPConnection("127.0.0.1", operations, timeout=60)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        self.assertIn('rudderfish_stream_connections_total{end="large",wire="suggestions"} 1\n', text)
        self.assertRegex(text, r'rudderfish_stream_connections_total\{end="full",wire="suggestions"\} [1-9]')
        for client in silent:
            client.close()
        process.send_signal(signal.SIGTERM)
        start = time.monotonic()
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertLess(time.monotonic() - start, 5)

    def test_bad_arguments_are_one_line_and_status_2(self):
        for arguments, says in ((["drs"], "--policy is missing"), (["drs", "--policy", "leest-allocated"], "least-allocated"),
                                (["drs", "--monitors", "a=127.0.0.1", "--policy", "x"], "--policy"),
                                (["drs", "--policy", "kube-default", "--scenario", "a.yaml"], "--scenario does not apply to serve drs"),
                                (["suggestions", "--listen", "8765"], "--listen"), (["suggestions", "--context", "a"], "--policy"),
                                (["reach", "--monitors", "a=b"], "--monitors does not apply"), (["suggest"], "suggestions")):
            done = subprocess.run([PROGRAM, "serve", *arguments, "-q"], cwd=TOP, capture_output=True, text=True, check=False,
                                  timeout=60, stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 2, (arguments, done.stderr))
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(says, done.stderr)


if __name__ == "__main__":
    unittest.main()
