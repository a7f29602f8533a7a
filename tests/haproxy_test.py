#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`route` on the real HAProxy: the split that it sets is the split of the requests that servers get, what HAProxy refuses is said,
and a process that is killed at any moment leaves the old split or the new one. RUDDERFISH names the program.
"""
import collections
import http.client
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

from live_support import commands_of

TOP = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = pathlib.Path(os.environ.get("RUDDERFISH", TOP / "build/release/rudderfish")).resolve()
HAPROXY = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Region:
    """A server that says its name."""

    def __init__(self, name):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # pylint: disable=invalid-name
                self.send_response(200)
                self.send_header("Content-Length", str(len(name)))
                self.end_headers()
                self.wfile.write(name.encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class HaproxyTest(unittest.TestCase):
    def setUp(self):
        self.assertTrue(HAPROXY, "haproxy is not installed; ./setup installs it")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.socket = pathlib.Path(folder.name) / "admin.sock"
        self.regions = {name: Region(name) for name in ("eu", "us")}
        for region in self.regions.values():
            self.addCleanup(region.stop)
        self.port, self.admin_port = free_port(), free_port()
        config = pathlib.Path(folder.name) / "haproxy.cfg"
        lines = ["global", f"  stats socket {self.socket} mode 600 level admin",
                 f"  stats socket 127.0.0.1:{self.admin_port} level admin", f"  stats socket {self.socket}.user level user",
                 "defaults", "  mode http", "  timeout connect 1s", "  timeout client 10s", "  timeout server 10s",
                 "frontend in", f"  bind 127.0.0.1:{self.port}", "  default_backend web",
                 "backend web", "  balance roundrobin"]
        servers = [f"  server {name} 127.0.0.1:{region.port} check inter 50ms fall 2 rise 1 weight 128"
                   for name, region in self.regions.items()]
        config.write_text("\n".join(lines + servers + ["backend fixed", "  balance static-rr"] + servers) + "\n", encoding="utf-8")
        haproxy = subprocess.Popen([HAPROXY, "-db", "-f", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(haproxy.communicate)
        self.addCleanup(haproxy.kill)
        self.wait_for(lambda: self.socket.exists() and self.run_route("show").returncode == 0, "HAProxy is up")

    def wait_for(self, holds, what):
        deadline = time.monotonic() + 30
        while not holds():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.05)

    def command(self, verb, *words, peer=None, backend="web"):
        return [str(PROGRAM), "route", verb, "--haproxy", str(peer or self.socket), "--backend", backend, *words]

    def run_route(self, verb, *words, **where):
        return subprocess.run(self.command(verb, *words, **where), capture_output=True, text=True, check=False, timeout=60,
                              stdin=subprocess.DEVNULL)

    def succeed(self, *words, **where):
        done = self.run_route(*words, **where)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        return done.stdout

    def weights(self, **where):
        shown = json.loads(self.succeed("show", "-o", "json", **where))
        return {one["name"]: one["weight"] for one in shown["backends"]}

    def served(self, count):
        """How many of so many requests each region got."""
        regions = collections.Counter()
        for _ in range(count):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            connection.request("GET", "/")
            regions[connection.getresponse().read().decode()] += 1
            connection.close()
        return regions

    def test_requests_follow_the_split_that_is_set(self):
        self.assertEqual(self.served(100), {"eu": 50, "us": 50})
        dry = self.succeed("set", "--to", "eu=80,us=20", "--step", "100")
        self.assertIn("set server web/eu weight 205; set server web/us weight 51", dry)
        self.assertEqual(self.weights(), {"eu": 128, "us": 128})
        self.succeed("set", "--to", "eu=80,us=20", "--step", "100", "--apply")
        self.assertEqual(self.weights(), {"eu": 205, "us": 51})
        got = self.served(500)
        self.assertLessEqual(abs(got["eu"] - 400), 5, got)
        # Over TCP, by steps.
        self.succeed("set", "--to", "eu=30,us=70", "--apply", peer=f"127.0.0.1:{self.admin_port}")
        self.assertEqual(self.weights(), {"eu": 179, "us": 77})
        got = self.served(500)
        self.assertLessEqual(abs(got["eu"] - 350), 5, got)

    def test_region_that_dies_gets_nothing(self):
        self.regions["us"].stop()
        self.wait_for(lambda: "stopped" in self.succeed("show"), "HAProxy sees that us is dead")
        text = self.succeed("set", "--to", "eu=40,us=60", "--apply")
        self.assertIn("us gets no requests: stopped", text)
        self.assertEqual(self.weights(), {"eu": 256, "us": 0})
        self.assertEqual(self.served(50), {"eu": 50})

    def test_refusals_change_nothing(self):
        for words, where, says in (
                # HAProxy takes the first weight, 0, and refuses the second.
                (("--to", "eu=0,us=100", "--step", "100", "--floor", "0"), {"backend": "fixed"}, "static"),
                (("--to", "eu=60,us=40"), {"backend": "nil"}, "Can't find backend"),
                (("--to", "eu=60,us=40"), {"backend": "a;b"}, "expected a name of HAProxy"),
                (("--to", "eu=60,us=40"), {"backend": "fixed"}, "static"),
                (("--to", "eu=60,us=40"), {"peer": f"{self.socket}.user"}, "ermission denied"),
                (("--to", "eu=60,us=40"), {"peer": "/nonexistent/x"}, "nothing listens there"),
                (("--to", "eu=60,asia=40"), {}, "region `asia` has no backend `asia`"),
                (("--to", "eu=60,us=41"), {}, "the shares sum to 101 %")):
            done = self.run_route("set", *words, "--apply", **where)
            self.assertEqual(done.returncode, 2, (words, where, done.stdout, done.stderr))
            self.assertIn(says, done.stderr)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
            for backend in ("web", "fixed"):
                self.assertEqual(self.weights(backend=backend), {"eu": 128, "us": 128})

    def test_killed_at_any_moment_the_old_split_or_the_new_stands(self):
        ends = set()
        for delay in (0, 0.001, 0.002, 0.004, 0.006, 0.01, 0.02, None):
            self.succeed("set", "--to", "eu=50,us=50", "--step", "100", "--apply")
            with subprocess.Popen(self.command("set", "--to", "eu=60,us=40", "--apply"), stdout=subprocess.DEVNULL) as process:
                if delay is None:
                    process.wait(timeout=60)
                else:
                    time.sleep(delay)
                    process.send_signal(signal.SIGKILL)
            weights = tuple(self.weights().values())
            self.assertIn(weights, ((128, 128), (154, 102)))
            ends.add(weights)
        self.assertEqual(len(ends), 2, "none was killed before its request, or none after")

    def test_commands_of_the_page(self):
        commands = "\n".join(commands_of(TOP / "docs/routing.md", "## HAProxy") +
                             commands_of(TOP / "docs/routing.md", "## Let a policy decide"))
        with tempfile.TemporaryDirectory() as folder:
            config = (TOP / "examples/routing/haproxy.cfg").read_text(encoding="utf-8")
            for port in ("8080", "8081", "8082"):
                config = config.replace(port, str(free_port()))
            (pathlib.Path(folder) / "haproxy.cfg").write_text(config.replace("/tmp/", f"{folder}/"), encoding="utf-8")
            for name in ("rudderfish.yaml", "regions.yaml"):
                text = (TOP / "examples/routing" / name).read_text(encoding="utf-8")
                (pathlib.Path(folder) / name).write_text(text.replace("/tmp/", f"{folder}/"), encoding="utf-8")
            commands = commands.replace("/tmp/", f"{folder}/").replace("examples/routing/", f"{folder}/")
            commands = commands.replace("haproxy -D", f"{HAPROXY} -D -p {folder}/pid")
            done = subprocess.run(["bash", "-ec", commands], cwd=TOP, capture_output=True, text=True, check=False, timeout=60,
                                  stdin=subprocess.DEVNULL, env=dict(os.environ, PATH=f"{PROGRAM.parent}:{os.environ['PATH']}"))
            pids = pathlib.Path(folder) / "pid"
            for pid in pids.read_text(encoding="utf-8").split() if pids.exists() else ():
                os.kill(int(pid), signal.SIGKILL)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"eu +eu +154 +60.16 % +yes")
        self.assertRegex(done.stdout, r"routing +shadow; lp decides every 30 s")


if __name__ == "__main__":
    unittest.main()
