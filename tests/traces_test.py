#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`profile --traces`: calls and execution times from files, from a Jaeger, and from pods of the testbed's image.

RUDDERFISH names the program; default: build/release/rudderfish. JAEGER names Jaeger's all-in-one; without it, one is used that
answers what a test tells it.
"""
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse
import urllib.request

import trace_support

TOP = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = pathlib.Path(os.environ.get("RUDDERFISH", TOP / "build/release/rudderfish")).resolve()
DUMP = TOP / "tests/data/kube-dump/shop.json"
APPLICATION = TOP / "tests/data/traces/shop-application.yaml"
CONTINUUM = TOP / "examples/continuum/application.yaml"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Server:
    """Answers GET by `answer(path, query)` and hands the bodies of POST to `take`."""

    def __init__(self, answer=None, take=None):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                url = urllib.parse.urlparse(self.path)
                status, text = answer(url.path, dict(urllib.parse.parse_qsl(url.query)))
                self.reply(status, text)

            def do_POST(self):
                take(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self.reply(200, "{}")

            def reply(self, status, text):
                self.send_response(status)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def jaeger_of(text):
    """One that knows these traces, and gives each with all services of it."""
    traces = json.loads(text)["data"]

    def answer(path, query):
        services = {process["serviceName"] for trace in traces for process in trace["processes"].values()}
        if path == "/api/services":
            return 200, json.dumps({"data": sorted(services), "errors": None})
        if path != "/api/traces" or not query["start"].isdigit() or int(query["start"]) >= int(query["end"]):
            return 400, "no"
        mine = [trace for trace in traces
                if query["service"] in {process["serviceName"] for process in trace["processes"].values()}]
        return 200, json.dumps({"data": mine[:int(query["limit"])], "errors": None})

    return Server(answer=answer)


class Traces(unittest.TestCase):
    def setUp(self):
        self.maxDiff = None
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def run_cli(self, *arguments):
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, check=False, text=True)

    def profile(self, traces, *more, application=APPLICATION, dump=DUMP):
        """What was said, and the application that was written."""
        done = self.run_cli("profile", "--from", dump, "--application", application, "--traces", traces, "--application-out",
                            "out.yaml", "-o", "out-scenario.yaml", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr, (self.folder / "out.yaml").read_text(encoding="utf-8")

    def refuse(self, *arguments, says):
        done = self.run_cli(*arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        for word in [says] if isinstance(says, str) else says:
            self.assertIn(word, done.stderr)

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def check_shop(self, text):
        """The calls are those of trace_support.shop."""
        calls = [(len(indent), name) for indent, name in re.findall(r"^( +)- (web|cart|db):$", text, re.M)]
        depths = sorted({depth for depth, _ in calls})
        self.assertEqual([(depths.index(depth), name) for depth, name in calls],
                         [(0, "web"), (1, "cart"), (2, "db"), (2, "db")])
        times = re.findall(r"execution: \{fast: ([\d.]+)ms, slow: ([\d.]+)ms", text)
        for (fast, slow), truth in zip(times, ((5, 9), (3, 6), (2, 4), (2, 4))):
            self.assertAlmostEqual(float(fast) / truth[0], 1, delta=0.05, msg=text)
            self.assertAlmostEqual(float(slow) / truth[1], 1, delta=0.05, msg=text)
        for data in ("0.1MB", "0.02MB", "0.01MB"):
            self.assertIn(f"data: {data}", text)

    def test_traces_of_both_formats_give_calls_and_times(self):
        shop = trace_support.shop(clocks={"edge-b": -80_000_000, "edge-c": 1_500_000_000})
        self.write("jaeger.json", shop.jaeger("shop"))
        self.write("otlp.jsonl", shop.otlp("shop"))
        for name in ("jaeger.json", "otlp.jsonl"):
            said, text = self.profile(name)
            self.check_shop(text)
            self.assertIn("200 traces from 2026-09-21", said)
            self.assertIn("The clock of edge-b is 80.0 ms slow; taken out", said)
            self.assertIn("The clock of edge-c is 1500.0 ms fast; taken out", said)
            self.assertIn("rate: 20", text)
            self.assertIn("# 200 traces", (self.folder / "out-scenario.yaml").read_text(encoding="utf-8"))
        # What was written is complete.
        for command in (("profile", "--from", DUMP, "--application", "out.yaml", "-o", "again.yaml"),
                        ("evaluate", "out-scenario.yaml", "--policy", "stay,greedy", "--episodes", "2")):
            done = self.run_cli(*command)
            self.assertIn(done.returncode, (0, 3), done.stderr)

    def test_traces_replace_calls_and_keep_rates_and_targets(self):
        given = TOP / "tests/data/kube-dump/shop-application.yaml"
        self.write("otlp.jsonl", trace_support.shop().otlp("shop"))
        said, text = self.profile("otlp.jsonl", application=given)
        self.assertIn(f"The calls of {given} are replaced by those of the traces", said)
        for part in ("  buy:", "rate: 20\n", "qos: 150ms"):
            self.assertIn(part, text)
        self.check_shop(text)
        said, text = self.profile("otlp.jsonl", "--sampled", "0.1")
        self.assertRegex(text, r"rate: 20\d")
        said, text = self.profile("otlp.jsonl", "--anonymize")
        self.assertNotIn("cart", (self.folder / "out-scenario.yaml").read_text(encoding="utf-8"))

    def test_traces_come_from_a_jaeger(self):
        jaeger = jaeger_of(trace_support.shop().jaeger("shop"))
        self.addCleanup(jaeger.close)
        said, text = self.profile(jaeger.url, "--for", "10m")
        self.check_shop(text)
        self.assertIn("200 traces", said)
        self.assertNotIn("twice", said)

    def test_what_is_no_jaeger_is_refused_in_one_line(self):
        for status, text, says in ((404, "", "status 404"), (200, "<html>", "is this Jaeger's query service?"),
                                   (200, '{"data": null}', "no trace of that time")):
            server = Server(answer=lambda path, query, status=status, text=text: (status, text))
            done = self.run_cli("profile", "--from", DUMP, "--application", APPLICATION, "--traces", server.url, "-o", "s.yaml")
            server.close()
            self.assertIn(done.returncode, (1, 2), done.stderr)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
            self.assertIn(says, done.stderr)
        self.assertFalse((self.folder / "s.yaml").exists())

    def test_bad_traces_are_refused_in_one_line(self):
        head = ("profile", "--from", DUMP, "--application", APPLICATION, "-o", "s.yaml", "--traces")
        self.refuse(*head, self.write("a.json", '{"data": [{"traceID": "1",\n  "spans": oops}]}'), says="a.json:2:12")
        self.refuse(*head, self.write("b.json", '{"kind": "List"}'), says=("b.json:1:1", "holds no traces"))
        self.refuse(*head, self.write("c.json", ""), says="c.json: is empty")
        self.refuse(*head, self.write("d.json", '{"data": []}'), says="no trace shows a whole request")
        self.refuse(*head, "none.json", says="none.json")
        self.refuse(*head, "a.json", "--sampled", "2", says="--sampled")
        self.refuse("profile", "--from", DUMP, "--application-out", "x.yaml", says="--application-out goes with --traces")
        self.refuse("profile", "--from", DUMP, "--application", APPLICATION, says="missing key `endpoints`")
        self.refuse(*head, "a.json", "--for", "1m", says=("--for", "--from"))
        foreign = trace_support.shop().otlp("shop").replace('"web', '"x').replace('"cart', '"y').replace('"db', '"z')
        self.refuse(*head, self.write("e.json", foreign), says="of no workload are the services x, y, z")

    def test_pods_of_the_testbed_report_what_the_application_says(self):
        gcc = shutil.which("gcc")
        if gcc is None:
            self.skipTest("no gcc")
        bodies = []
        receiver = Server(take=bodies.append)
        self.addCleanup(receiver.close)
        self.play(gcc, receiver.url, requests=60)
        self.write("otlp.jsonl", "\n".join(bodies) + "\n")
        self.check_continuum("otlp.jsonl")

    def test_pods_of_the_testbed_report_to_a_jaeger(self):
        program, gcc = os.environ.get("JAEGER"), shutil.which("gcc")
        if program is None or gcc is None:
            self.skipTest("JAEGER names no program")
        ports = [free_port() for _ in range(7)]
        flags = ["--query.http-server.host-port", "--query.grpc-server.host-port", "--admin.http.host-port",
                 "--collector.otlp.http.host-port", "--collector.otlp.grpc.host-port", "--collector.http-server.host-port",
                 "--collector.grpc-server.host-port"]
        jaeger = subprocess.Popen([program, *(f"{flag}=127.0.0.1:{port}" for flag, port in zip(flags, ports))],
                                  cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(jaeger.wait)
        self.addCleanup(jaeger.kill)
        for _ in range(200):
            if all(is_open(port) for port in (ports[3], ports[0])):
                break
            time.sleep(0.1)
        self.play(gcc, f"http://127.0.0.1:{ports[3]}", requests=60)
        self.check_continuum(f"http://127.0.0.1:{ports[0]}", "--for", "10m")

    def play(self, gcc, otlp, requests):
        """Requests to the continuum as processes on this machine, which report to `otlp`."""
        app = self.folder / "app"
        subprocess.run([gcc, "-O2", "-pthread", *map(str, sorted((TOP / "testbed/native").glob("app*.c"))), "-o", str(app), "-lm"],
                       check=True)
        # A call of 1 ms may be over before a busy machine has begun the one beside it.
        played = CONTINUUM.read_text(encoding="utf-8").replace("{fast: 1ms, slow: 1.5ms}", "{fast: 8ms, slow: 8ms}")
        self.assertIn("slow: 8ms", played)
        manifests = self.run_cli("manifests", self.write("played.yaml", played)).stdout
        lines = manifests.split("calls: |\n")[1].split("---")[0]
        self.write("calls", "".join(line.strip() + "\n" for line in lines.splitlines()))
        services = {"aggregator": "edge-1", "detection": "cloud-1", "db": "cloud-1", "machine-learning": "cloud-1"}
        ports = {service: free_port() for service in services}
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": otlp, "POD_NAMESPACE": "continuum", "PATH": os.environ["PATH"]}
        for service, port in ports.items():
            name = service.upper().replace("-", "_")
            environment |= {f"{name}_SERVICE_HOST": "127.0.0.1", f"{name}_SERVICE_PORT": str(port)}
        pods = [subprocess.Popen([app, "--port", str(ports[service]), "--calls", "calls", "--service", service], cwd=self.folder,
                                 env=environment | {"NODE_NAME": node, "POD_NAME": f"{service}-5f6d-abcde"})
                for service, node in services.items()]
        try:
            url = f"http://127.0.0.1:{ports['aggregator']}"
            for path in ["/ready"] + ["/call/1"] * requests:
                for _ in range(100):
                    try:
                        with urllib.request.urlopen(url + path, timeout=10):
                            break
                    except OSError:
                        time.sleep(0.1)
        finally:
            for pod in pods:
                pod.send_signal(signal.SIGTERM)
            for pod in pods:
                self.assertEqual(pod.wait(timeout=30), 0)

    def check_continuum(self, traces, *more):
        text = CONTINUUM.read_text(encoding="utf-8")
        text = re.sub(r"\n +execution: .*", "", text[:text.index("endpoints:")])
        said, text = self.profile(traces, *more, application=self.write("given.yaml", text), dump=self.continuum_dump())
        graph = self.run_cli("inspect", "out-scenario.yaml").stdout
        self.assertIn("client > aggregator > detection > ", graph)
        self.assertRegex(text, r"parallel:\n +- (db|machine-learning):")
        self.assertRegex(said, r"parallel ([6-9]\d|100) %")
        truth = {"aggregator": ("slow", 3), "detection": ("fast", 7), "db": ("fast", 8), "machine-learning": ("fast", 9)}
        for name, (cpu_type, ms) in truth.items():
            found = re.search(rf" {name}:\n +data: ([\d.]+)MB\n +execution: .*?{cpu_type}: ([\d.]+)ms", text)
            self.assertIsNotNone(found, text)
            # Never shorter than it was to be; how much longer says how busy this machine is.
            self.assertGreater(float(found[2]), 0.98 * ms, text)
            self.assertLess(float(found[2]), 4 * ms + 10, text)
        self.assertIn("data: 0.05MB", text)

    def continuum_dump(self):
        items = [{"kind": "Node", "metadata": {"name": f"{layer}-1", "uid": layer, "labels": {"rudderfish.io/layer": layer}},
                  "status": {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"},
                             "conditions": [{"type": "Ready", "status": "True"}]}} for layer in ("cloud", "edge", "client")]
        for name, node in (("aggregator", "edge-1"), ("detection", "cloud-1"), ("db", "cloud-1"),
                           ("machine-learning", "cloud-1")):
            place = {"namespace": "continuum", "labels": {"app": name}}
            spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}}
            owner = [{"kind": "Deployment", "name": name, "uid": f"d-{name}", "controller": True}]
            items.append({"kind": "Deployment", "metadata": {"name": name, "uid": f"d-{name}", **place}, "spec": spec,
                          "status": {"replicas": 1, "readyReplicas": 1}})
            items.append({"kind": "ReplicaSet", "metadata": {"name": f"{name}-5f6d", "uid": f"r-{name}", **place,
                                                             "ownerReferences": owner}, "spec": spec,
                          "status": {"replicas": 1, "readyReplicas": 1}})
            owner = [{"kind": "ReplicaSet", "name": f"{name}-5f6d", "uid": f"r-{name}", "controller": True}]
            requests = {"cpu": "100m", "memory": "64Mi"}
            items.append({"kind": "Pod", "metadata": {"name": f"{name}-5f6d-abcde", "uid": f"p-{name}", **place,
                                                      "ownerReferences": owner},
                          "spec": {"nodeName": node, "containers": [{"name": "app", "resources": {"requests": requests}}]},
                          "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
        for item in items:
            item["apiVersion"] = "v1" if item["kind"] in ("Node", "Pod") else "apps/v1"
        return self.write("dump.json", json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))


if __name__ == "__main__":
    unittest.main()
