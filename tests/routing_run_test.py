#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`run` decides about the route of a real HAProxy by what a real Prometheus measures of it. Two regions serve, one of them 80 ms
away; the near one has too few pods for all requests. RUDDERFISH names the program.
"""
import contextlib
import http.client
import http.server
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

TOP = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = pathlib.Path(os.environ.get("RUDDERFISH", TOP / "build/release/rudderfish")).resolve()
HAPROXY = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
PROMETHEUS = shutil.which("prometheus")
POD_PER_S = 25.0  # The scenario says 20: what a busy machine and this server add is within it.
PODS = {"eu": 3, "us": 6}
AWAY_S = {"eu": 0.0, "us": 0.08}
RATE = 66.0

CONFIG = """\
rudderfish: config/v1
decisions:
  routing:
    mode: {mode}
    regions: {regions}
    policy: lp:foreign=0,moving=0
    baseline: locality
    interval: 1s
    settle: 6s
    budgets: {{step: {step}, floor: 1, gain: 0.5, signals_max_age: 5s}}
    routes:
      - {route}
signals:
  prometheus: ['http://{prometheus}']
  period: 500ms
  queries:
    demand_per_s:
      per: region
      query: >-
        label_replace(sum(rate(haproxy_frontend_http_requests_total{{proxy="in"}}[5s])), "region", "eu", "", "")
        or label_replace(vector(0), "region", "us", "", "")
    latency_s:
      per: region
      query: label_replace(rate(answer_seconds_sum[3s]) / rate(answer_seconds_count[3s]), "region", "eu", "", "")
    ready_pods:
      per: region
      query: label_replace(vector({eu}), "region", "eu", "", "") or label_replace(vector({us}), "region", "us", "", "")
journal: {{path: {folder}/journal.db}}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Region:
    """So many pods, each of which serves one request after another, in times that are exponential."""

    def __init__(self, name):
        pods = threading.Semaphore(PODS[name])
        chance = random.Random(name)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # pylint: disable=invalid-name
                time.sleep(AWAY_S[name])
                with pods:
                    time.sleep(chance.expovariate(POD_PER_S))
                with contextlib.suppress(OSError):  # Who gave up.
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(name)))
                    self.end_headers()
                    self.wfile.write(name.encode())

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 256
            daemon_threads = True

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Load:
    """Requests at random times, whatever becomes of those before."""

    def __init__(self, port):
        self.port, self.answers, self.ends = port, [], threading.Event()
        self.thread = threading.Thread(target=self.send, daemon=True)
        self.thread.start()

    def send(self):
        chance = random.Random(5)
        while not self.ends.wait(chance.expovariate(RATE)):
            threading.Thread(target=self.ask, daemon=True).start()

    def ask(self):
        begun = time.monotonic()
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            connection.request("GET", "/")
            where = connection.getresponse().read().decode()
            connection.close()
            self.answers.append((time.monotonic(), where, time.monotonic() - begun))

    def mean_s(self, last_s):
        since = time.monotonic() - last_s
        times = [seconds for at, _, seconds in list(self.answers) if at >= since]
        return sum(times) / max(1, len(times))

    def stop(self):
        self.ends.set()
        self.thread.join()

    def metrics(self):
        """What clients measure, for Prometheus."""
        times = [seconds for _, _, seconds in list(self.answers)]
        return f"answer_seconds_sum {sum(times)}\nanswer_seconds_count {len(times)}\n"


def serve_metrics(load):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # pylint: disable=invalid-name
            body = load.metrics().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class RoutingRunTest(unittest.TestCase):
    def setUp(self):
        self.assertTrue(HAPROXY and PROMETHEUS, "haproxy or prometheus is not installed; ./setup installs them")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.socket = self.folder / "admin.sock"
        self.regions = {name: Region(name) for name in ("eu", "us")}
        for region in self.regions.values():
            self.addCleanup(region.stop)
        self.port, metrics = free_port(), free_port()
        config = ["global", f"  stats socket {self.socket} mode 600 level admin", "defaults", "  mode http", "  timeout connect 1s",
                  "  timeout client 20s", "  timeout server 20s", "frontend in", f"  bind 127.0.0.1:{self.port}",
                  "  default_backend web", "frontend metrics", f"  bind 127.0.0.1:{metrics}",
                  "  http-request use-service prometheus-exporter if { path /metrics }", "backend web", "  balance roundrobin"]
        config += [f"  server {name} 127.0.0.1:{region.port} check inter 200ms fall 2 rise 1 weight {weight}"
                   for (name, region), weight in zip(self.regions.items(), (255, 1))]
        config += ["backend orders", "  balance roundrobin"]
        config += [f"  server {name} 127.0.0.1:{region.port} check inter 200ms fall 2 rise 1 weight 100"
                   for name, region in self.regions.items()]
        self.background([HAPROXY, "-db", "-f", self.write("haproxy.cfg", "\n".join(config) + "\n")])
        self.wait_for(self.socket.exists, "HAProxy is up")
        self.load = Load(self.port)
        self.addCleanup(self.load.stop)
        clients = serve_metrics(self.load)
        self.addCleanup(clients.server_close)
        self.addCleanup(clients.shutdown)
        self.prometheus_port = free_port()
        scrape = (f"global: {{scrape_interval: 500ms}}\nscrape_configs: [{{job_name: haproxy, static_configs: "
                  f"[{{targets: ['127.0.0.1:{metrics}', '127.0.0.1:{clients.server_address[1]}']}}]}}]\n")
        self.prometheus = self.background(
            [PROMETHEUS, f"--config.file={self.write('prometheus.yml', scrape)}", f"--storage.tsdb.path={self.folder}/data",
             f"--web.listen-address=127.0.0.1:{self.prometheus_port}"])

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")
        return str(self.folder / name)

    def background(self, command, **options):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=options.pop("stderr", subprocess.DEVNULL), **options)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def wait_for(self, holds, what, limit_s=float(os.environ.get("LIMIT", 60))):
        deadline = time.monotonic() + limit_s
        while not holds():
            if time.monotonic() > deadline:
                log = self.folder / "log"
                said = log.read_text(encoding="utf-8")[-2000:] if log.exists() else "it was not started"
                said += self.ask("status") + self.ask("explain", "route/web") if log.exists() else ""
                self.fail(f"{what}: {said}")
            time.sleep(0.2)

    def configure(self, mode, step=10, route=None):
        route = route or f"{{name: web, origin: eu, haproxy: {self.socket}, backend: web}}"
        return self.write("rudderfish.yaml", CONFIG.format(
            mode=mode, step=step, regions=TOP / "examples/routing/regions.yaml", route=route,
            prometheus=f"127.0.0.1:{self.prometheus_port}", folder=self.folder, **PODS))

    def start(self, mode, **options):
        self.log = open(self.folder / "log", "ab")
        self.addCleanup(self.log.close)
        self.config = self.configure(mode, **options)
        return self.background([str(PROGRAM), "run", "--config", self.config], stderr=self.log)

    def ask(self, *words, expect=0):
        done = subprocess.run([str(PROGRAM), *words], capture_output=True, text=True, check=False, timeout=60, cwd=self.folder,
                              stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, expect, done.stderr + done.stdout)
        return done.stdout + done.stderr

    def decisions(self):
        with contextlib.suppress(AssertionError):
            return json.loads(self.ask("decisions", "--kind", "routing", "-o", "json"))["decisions"]
        return []

    def split(self, backend="web"):
        shown = json.loads(self.ask("route", "show", "--haproxy", str(self.socket), "--backend", backend, "-o", "json"))
        return shown["split"]

    def test_services_that_share_nodes_are_decided_on_each_by_its_bounds(self):
        regions = (TOP / "examples/routing/regions.yaml").read_text(encoding="utf-8")
        shared = regions.replace("  objective:", "  services:\n    web: {}\n    orders: {stays: [eu]}\n  objective:")
        self.assertNotEqual(shared, regions)
        path = self.configure("enforce", step=40, route=(
            f"{{name: web, service: web, origin: eu, haproxy: {self.socket}, backend: web}}\n"
            f"      - {{name: orders, service: orders, origin: eu, haproxy: {self.socket}, backend: orders}}"))
        text = pathlib.Path(path).read_text(encoding="utf-8")
        text = text.replace(str(TOP / "examples/routing/regions.yaml"), self.write("regions.yaml", shared))
        for name in ("demand_per_s", "latency_s", "ready_pods"):
            query = re.search(rf"    {name}:\n(      .*\n)+", text).group(0)
            text = text.replace(query, "".join(query.replace(name, f"{service}/{name}", 1) for service in ("web", "orders")))
        self.write("rudderfish.yaml", text)
        self.log = open(self.folder / "log", "ab")
        self.addCleanup(self.log.close)
        self.background([str(PROGRAM), "run", "--config", path], stderr=self.log)
        # Both are in enforce: orders of Europeans leave us at once, those of web go there, since eu is full.
        self.wait_for(lambda: self.split("orders") == {"eu": 1.0, "us": 0.0}, "orders stay")
        self.wait_for(lambda: self.split()["us"] > 0.2, "web goes where there is room")
        self.assertEqual(self.split("orders"), {"eu": 1.0, "us": 0.0})
        self.assertIn("these requests may not be served there", self.ask("explain", "route/orders"))
        status = self.ask("status")
        for part in ("SERVICE AND REGION", "orders eu", "web us"):
            self.assertIn(part, status)

    def test_the_split_follows_the_load_and_latency_falls_as_predicted(self):
        process = self.start("shadow")
        self.wait_for(lambda: any(one["fate"] == "recorded" and one["measured_now_ms"] for one in self.decisions()), "shadowed")
        self.assertGreater(self.split()["eu"], 0.99, "nothing is touched in shadow")
        last = [one for one in self.decisions() if one["fate"] == "recorded"][-1]
        self.assertEqual(last["subject"], "route/web")
        self.assertGreater(last["gain_units"], 0)
        self.assertIn("set server web/eu weight", last["request"])
        story = self.ask("explain", "route/web")
        for part in ("route web would be set to", "one request more costs", "response time", "REGION", "set server web/eu weight"):
            self.assertIn(part, story)
        self.assertIn("routing    shadow", self.ask("status"))
        refused = self.ask("promote", "routing", "--to", "canary", expect=2)
        self.assertIn("decisions that are needed", refused)

        # What cannot be is refused, and all goes on; what can be holds at once.
        text = pathlib.Path(self.config).read_text(encoding="utf-8")
        for wrong, says in ((text.replace("demand_per_s:", "demands:"), "needs a signal demand_per_s"),
                            (text.replace("origin: eu", "origin: mars"), "`mars`: no region"),
                            (text.replace("step: 10", "step: 9"), "rudderfish.yaml reloaded")):
            self.write("rudderfish.yaml", wrong)
            process.send_signal(signal.SIGHUP)
            self.wait_for(lambda says=says: says in (self.folder / "log").read_text(encoding="utf-8"), says)
        self.wait_for(lambda: self.decisions()[-1]["fate"] == "recorded" and
                      any("at most 9 points" in reason for reason in self.decisions()[-1]["reasons"]), "the new step holds")

        before = self.load.mean_s(5)
        self.ask("promote", "routing", "--to", "enforce", "--force")
        self.wait_for(lambda: self.split()["us"] > 0.25, "requests move, in steps")
        self.wait_for(lambda: any(one["fate"] == "done" and one["measured_ms"] for one in self.decisions()), "a change is measured")
        time.sleep(8)
        after = self.load.mean_s(5)
        self.assertLess(after, before, "latency falls")
        for one in self.decisions():
            if one["fate"] != "done":
                continue
            moved = max(abs(region["allowed"] - region["now"]) for region in one["regions"])
            self.assertLessEqual(moved, 0.1 + 2 / 256, "one step at most")

        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=15), 0)

    def test_region_that_dies_gets_nothing_also_without_signals(self):
        self.start("enforce", step=100)
        self.wait_for(lambda: self.split()["us"] > 0.2, "requests move")
        self.prometheus.kill()
        self.wait_for(lambda: "splits that stand are kept" in self.ask("status"), "signals are too old")
        kept = self.split()
        time.sleep(3)
        self.assertEqual(self.split(), kept, "the last good split is kept")
        self.regions["us"].stop()
        self.wait_for(lambda: self.split()["us"] == 0, "nothing goes to the region that died", limit_s=15)

    def test_killed_at_any_moment_it_goes_on(self):
        chance = random.Random(3)
        for _ in range(5):
            process = self.start("enforce", step=2)
            time.sleep(2 + chance.random() * 2)
            process.kill()
            process.wait()
            self.assertEqual(round(sum(self.split().values()), 6), 1)
        self.start("enforce", step=2)
        before = self.split()["us"]
        self.wait_for(lambda: self.split()["us"] > before, "it goes on where it was")
        fates = [one["fate"] for one in self.decisions()]
        self.assertNotIn("in flight", fates[:-1], "what an earlier process began has an end in the journal")

    def test_what_clients_of_xds_are_told_follows_load_and_deaths_and_outlives_a_kill(self):
        endpoints = ", ".join(f"{name}: ['127.0.0.1:{region.port}']" for name, region in self.regions.items())
        route = f"{{name: web, origin: eu, xds: web, endpoints: {{{endpoints}}}}}\n    xds: {{listen: '127.0.0.1:{free_port()}'}}"

        def told():
            with contextlib.suppress(AssertionError, KeyError):
                return json.loads(self.ask("status", "-o", "json"))["decisions"]["routing"]["routes"][0]["split"]
            return {}

        process = self.start("enforce", step=5, route=route)
        self.wait_for(lambda: told().get("us", 0.5) not in (0, 0.5), "weights follow the load")
        self.wait_for(lambda: any(one["fate"] == "done" for one in self.decisions()), "it is in the journal")
        self.assertIn("ClusterLoadAssignment web", [one for one in self.decisions() if one["fate"] == "done"][-1]["request"])
        self.assertIn("0 clients connected", self.ask("status"))
        process.kill()
        process.wait()
        kept = json.loads((self.folder / "rudderfish-xds.json").read_text(encoding="utf-8"))["services"][0]["weights"]
        self.assertEqual(sum(kept.values()), 10000)
        self.start("shadow", step=5, route=route)
        self.wait_for(lambda: told(), "it is read again")
        self.assertEqual({name: round(10000 * share) for name, share in told().items()}, kept, "the next process tells the same")
        self.ask("promote", "routing", "--to", "enforce", "--force")
        self.regions["us"].stop()
        self.wait_for(lambda: told().get("us") == 0, "nothing goes to the region that died", limit_s=15)


if __name__ == "__main__":
    unittest.main()
