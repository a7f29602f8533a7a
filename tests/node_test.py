#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rudderfish node` as Prometheus, other agents and clients of earlier systems use it: over sockets.

RUDDERFISH names the program; default: build/release/rudderfish.
"""
import http.client
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time
import unittest

TOP = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = pathlib.Path(os.environ.get("RUDDERFISH", TOP / "build/release/rudderfish")).resolve()
STATE = re.compile(rb"\((\d+\.\d+(?:e[+-]\d+)?, ){5}\d+\.\d+(?:e[+-]\d+)?\)")


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    answer = response.status, response.getheader("Content-Type"), response.read()
    connection.close()
    return answer


class Agent:
    def __init__(self, name, *arguments, listen="127.0.0.1:0"):
        self.process = subprocess.Popen([PROGRAM, "node", "--listen", listen, "--node", name, *map(str, arguments)],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while not (said := self.process.stderr.readline()).startswith("Node ") and said:
            pass  # A warning of a probe may come first.
        self.ports = [int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", said)]
        self.port = self.ports[0]

    def metrics(self):
        """By name and labels."""
        lines = get(self.port, "/metrics")[2].decode().splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


class Node(unittest.TestCase):
    def start(self, name, *arguments, **options):
        agent = Agent(name, *arguments, **options)
        self.addCleanup(agent.process.stderr.close)
        self.addCleanup(agent.process.wait)
        self.addCleanup(agent.process.kill)
        return agent

    def wait_for(self, condition, limit_s=30):
        end = time.monotonic() + limit_s
        while not (found := condition()):
            self.assertLess(time.monotonic(), end, "waited too long")
            time.sleep(0.05)
        return found

    def test_metrics_name_the_node_and_promtool_is_content(self):
        agent = self.start("edge-1", "--period", "50ms")
        self.wait_for(lambda: get(agent.port, "/readyz")[0] == 200)
        self.assertEqual(get(agent.port, "/livez")[0], 200)
        status, kind, text = get(agent.port, "/metrics")
        self.assertEqual((status, kind), (200, "text/plain; version=0.0.4; charset=utf-8"))
        for name in ("cpu_busy_seconds_total", "cpu_cores", "memory_bytes", "memory_available_bytes",
                     "network_receive_bytes_total", "network_transmit_bytes_total", "disk_read_bytes_total",
                     "disk_written_bytes_total", "peers", "peers_probed"):
            self.assertIn(f'\nrudderfish_node_{name}{{node="edge-1"}} '.encode(), text)
        if shutil.which("promtool") is None:
            self.skipTest("promtool is not installed (./setup installs it)")
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))

    def test_agents_find_each_other_and_one_of_each_pair_probes(self):
        with socket.socket() as one, socket.socket() as two, socket.socket() as three:
            for holder in (one, two, three):
                holder.bind(("127.0.0.1", 0))
            ports = [holder.getsockname()[1] for holder in (one, two, three)]
        peers = ",".join(f"127.0.0.1:{port}" for port in ports)
        agents = [self.start(f"n{i}", "--peers", peers, "--interval", "50ms", "--probes-per-second", "100",
                             listen=f"127.0.0.1:{port}") for i, port in enumerate(ports)]

        def pairs():
            found = []
            for i, agent in enumerate(agents):
                for series in agent.metrics():
                    match = re.fullmatch(r'rudderfish_node_round_trip_p99_seconds\{node="n(\d)",peer="n(\d)",protocol="udp"\}', series)
                    if match:
                        self.assertEqual(int(match[1]), i)
                        found.append(tuple(sorted(map(int, match.groups()))))
            return sorted(found)

        self.wait_for(lambda: pairs() == [(0, 1), (0, 2), (1, 2)])
        for agent in agents:
            self.assertEqual({value for name, value in agent.metrics().items() if name.startswith("rudderfish_node_peers{")}, {2})

    def test_users_are_measured(self):
        with socket.create_server(("127.0.0.1", 0)) as user:
            address = f"127.0.0.1:{user.getsockname()[1]}"
            agent = self.start("edge-1", "--users", f"{address},127.0.0.1:1", "--interval", "50ms", "--latency-app", "127.0.0.1:0")
            series = f'rudderfish_node_user_round_trip_mean_seconds{{node="edge-1",protocol="tcp",user="{address}"}}'
            self.wait_for(lambda: agent.metrics().get(series, 0) > 0)
            failures = 'rudderfish_node_user_probe_failures_total{node="edge-1",protocol="tcp",user="127.0.0.1:1"}'
            self.wait_for(lambda: agent.metrics()[failures] > 0)
            status, kind, body = get(agent.ports[-1], "/")
            self.assertEqual((status, kind), (200, "text/html; charset=utf-8"))
            self.assertRegex(body, rb"^\d+\.\d\d$")

    def test_the_latency_app_says_that_it_has_none_by_its_status(self):
        agent = self.start("edge-1", "--users", "127.0.0.1:1", "--latency-app", "127.0.0.1:0")
        self.wait_for(lambda: b"refused" in get(agent.ports[-1], "/")[2])
        self.assertEqual(get(agent.ports[-1], "/")[0], 503)

    def test_get_state_is_the_text_of_a_python_tuple(self):
        agent = self.start("edge-1", "--drs-monitor", "127.0.0.1:0", "--period", "50ms")

        def state():
            with socket.create_connection(("127.0.0.1", agent.ports[1]), timeout=30) as client:
                client.sendall(b"getState")
                return client.recv(2048)

        self.wait_for(state)  # It hangs up until it has read the node three times.
        with socket.create_connection(("127.0.0.1", agent.ports[1]), timeout=30) as client:
            for _ in range(3):  # On one connection, as its client asks.
                client.sendall(b"getState")
                state = client.recv(2048)
                self.assertIsNotNone(STATE.fullmatch(state), state)
                numbers = [float(word) for word in state[1:-1].decode().split(",")]  # As its client reads it.
                self.assertEqual(len(numbers), 6)
                self.assertTrue(0 <= numbers[0] <= 100 and 0 < numbers[1] <= 100, numbers)

    def test_a_busy_core_shows_in_the_counters(self):
        agent = self.start("edge-1", "--period", "100ms")
        name = 'rudderfish_node_cpu_busy_seconds_total{node="edge-1"}'
        self.wait_for(lambda: name in agent.metrics())
        before = agent.metrics()[name]
        end = time.monotonic() + 1
        while time.monotonic() < end:
            pass
        self.wait_for(lambda: agent.metrics()[name] - before > 0.8)

    def test_other_folders_stand_for_proc_and_sys(self):
        agent = self.start("edge-1", "--proc", "/proc", "--sys", "/sys", "--interfaces", "lo")
        name = 'rudderfish_node_network_receive_bytes_total{node="edge-1"}'
        self.wait_for(lambda: agent.metrics().get(name, 0) > 0)

    def test_ends_within_five_seconds_of_sigterm(self):
        agent = self.start("edge-1", "--peers", "no-such-name.invalid", "--drs-monitor", "127.0.0.1:0")
        start = time.monotonic()
        agent.process.send_signal(signal.SIGTERM)
        self.assertEqual(agent.process.wait(timeout=60), 0)
        self.assertLess(time.monotonic() - start, 5)

    def test_bad_arguments_are_one_line_and_status_2(self):
        for arguments, says in ((["--node", "a b"], "--node"), (["--peers", "a:b:c d"], "--peers"), (["--listen", "9100"], "--listen"),
                                (["--proc", "/no/such"], "/no/such"), (["--latency-app", "127.0.0.1:0"], "--users"),
                                (["--peers-max", "-1"], "--peers-max"), (["--period", "1us"], "--period")):
            done = subprocess.run([PROGRAM, "node", *(["--listen", "127.0.0.1:0"] if "--listen" not in arguments else []), *arguments,
                                   "-q"], cwd=TOP, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 2, (arguments, done.stderr))
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(says, done.stderr)


if __name__ == "__main__":
    unittest.main()
