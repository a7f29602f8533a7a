#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two clusters of the testbed, joined by a wide-area network: routing between them by a policy, in shadow first; latency that follows
the prediction; and what becomes of users where the network between both is cut.

RUDDERFISH names the program; default: build/release/rudderfish. Needs what tests/testbed_test.py needs, HAProxy and Prometheus.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from live_support import PROGRAM, TESTBED, TOP, Cluster, commands_of, main, run

HERE = TOP / "examples/clouds"
EU, US = Cluster("eu"), Cluster("us")
PODS = {"eu": 4, "us": 8}  # Each serves 10 requests a second.
RATES = {"eu": 36, "us": 10}
ROUND_TRIP_MS = 76


def door(cluster, *words, **options):
    """A command beside the gateway of a cluster."""
    return [str(TESTBED), "exec", "--name", cluster.name, "door-1", "--", *words]


class CloudsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for cluster in (EU, US):
            cls.addClassCleanup(cluster.testbed, "down")
        cls.shown = []
        for command in commands_of(TOP / "docs/testbed.md", "## Two clusters"):
            words = command.split()
            if "down" in words:
                break
            done = subprocess.run([str(TESTBED), *words[1:]], capture_output=True, text=True, check=False, timeout=300)
            if done.returncode != 0:
                raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
            cls.shown.append((command, done.stdout))

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def background(self, command, **options):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=options.pop("stdout", subprocess.DEVNULL),
                                   stderr=options.pop("stderr", subprocess.DEVNULL), **options)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def ask(self, *words, expect=0):
        where = () if words[0] == "route" else ("--config", str(self.folder / "rudderfish.yaml"))
        done = subprocess.run(door(EU, str(PROGRAM), *words, *where), capture_output=True, text=True, check=False, timeout=60,
                              stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, expect, done.stderr + done.stdout)
        return done.stdout + done.stderr

    def decisions(self, route):
        with contextlib.suppress(AssertionError):
            return [one for one in json.loads(self.ask("decisions", "--kind", "routing", "--limit", "2000", "-o", "json"))["decisions"]
                    if one["subject"] == f"route/{route}"]
        return []

    def split(self, cluster):
        return json.loads(self.ask("route", "show", "--haproxy", f"/tmp/gateway-{cluster}.sock", "--backend", "web", "-o", "json"))["split"]

    def wait_for(self, holds, what, limit_s=90):
        deadline = time.monotonic() + limit_s
        while not holds():
            if time.monotonic() > deadline:
                log = self.folder / "log"
                said = log.read_text(encoding="utf-8")[-3000:] if log.exists() else ""
                said += "".join(subprocess.run(door(EU, str(PROGRAM), *words, "--config", str(self.folder / "rudderfish.yaml")),
                                               capture_output=True, text=True, check=False, timeout=60).stdout
                                for words in (("status",), ("explain", "route/web-eu")))
                self.fail(f"{what}: {said}")
            time.sleep(0.5)

    def start_services(self):
        for cluster in (EU, US):
            cluster.kubectl("apply", "-f", str(HERE / "web.yaml"))
            cluster.kubectl("scale", "-n", "shop", "deployment/web", f"--replicas={PODS[cluster.name]}")
        addresses = dict(re.findall(r"^(\w+) +door-1 +(\S+)$", "".join(said for _, said in self.shown), re.MULTILINE))
        for cluster, other in ((EU, US), (US, EU)):
            cluster.kubectl("rollout", "status", "-n", "shop", "deployment/web", "--timeout=90s")
            done = subprocess.run([str(HERE / "gateway.sh"), cluster.name, other.name, addresses[other.name]], capture_output=True,
                                  text=True, check=False, timeout=60)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.background(door(EU, "prometheus", f"--config.file={HERE / 'prometheus.yaml'}", f"--storage.tsdb.path={self.folder}/data",
                             "--web.listen-address=127.0.0.1:9090"))

    def test_the_network_between_them_delays_and_can_be_cut(self):
        ping = next(said for command, said in self.shown if " ping " in command)
        times = [float(ms) for ms in re.findall(r"time=([\d.]+) ms", ping)]
        self.assertTrue(times and all(ROUND_TRIP_MS <= ms < ROUND_TRIP_MS + 20 for ms in times), ping)
        self.assertEqual(run("link", "eu", "us", "--round-trip", f"{ROUND_TRIP_MS}ms", "--cut").returncode, 2)
        self.assertEqual(run("link", "eu", "eu").returncode, 2)
        self.assertEqual(run("link", "eu", "mars", "--delay", "1ms").returncode, 1)
        self.assertEqual(run("link", "eu", "us", "--nodes", "serve-1,door-1").returncode, 1)
        self.assertEqual(EU.status()["linked"], {"address": "203.0.113.1", "node": "door-1", "peers": {"us": "203.0.113.2"}})
        self.assertEqual(run("link", "us", "eu", "--cut").returncode, 0)
        cut = subprocess.run(door(EU, "busybox", "ping", "-c", "2", "-W", "1", "203.0.113.2"), capture_output=True, check=False, timeout=30)
        self.assertNotEqual(cut.returncode, 0)
        self.assertEqual(run("link", "eu", "us", "--round-trip", f"{ROUND_TRIP_MS}ms").returncode, 0)
        back = subprocess.run(door(US, "busybox", "ping", "-c", "2", "203.0.113.1"), capture_output=True, check=False, timeout=30)
        self.assertEqual(back.returncode, 0)

    @unittest.skipUnless(os.environ.get("RUDDERFISH_CLOUDS"), "minutes; RUDDERFISH_CLOUDS=1, as ./test --full sets it")
    def test_requests_move_to_the_other_cluster_and_latency_follows_the_prediction(self):
        self.start_services()
        journal = pathlib.Path("/tmp/rudderfish-clouds.db")
        for path in journal.parent.glob(journal.name + "*"):
            path.unlink()
        for file in ("rudderfish.yaml", "regions.yaml"):
            shutil.copy(HERE / file, self.folder / file)
        for cluster in (EU, US):
            self.background(door(cluster, str(PROGRAM), "load", "--target", "http://127.0.0.1:8000/call/1", "--rate",
                                 str(RATES[cluster.name]), "--arrivals", "poisson", "--for", "10m"))
        log = open(self.folder / "log", "ab")
        self.addCleanup(log.close)
        process = self.background(door(EU, str(PROGRAM), "run", "--config", str(self.folder / "rudderfish.yaml")), stderr=log)
        self.wait_for(lambda: any(one["fate"] == "recorded" and one["measured_now_ms"] for one in self.decisions("web-eu")), "shadowed")
        self.assertGreater(self.split("eu")["eu"], 0.99, "nothing is touched in shadow")
        time.sleep(30)  # Until what is measured is of this split alone.
        before = self.decisions("web-eu")[-1]["measured_now_ms"]
        self.ask("promote", "routing", "--to", "enforce", "--force")
        self.wait_for(lambda: self.split("eu")["us"] > 0.2, "requests move", 180)
        self.assertGreater(self.split("us")["us"], 0.95, "those of us have no reason to")
        self.wait_for(lambda: any(one["fate"] == "done" and one["measured_ms"] for one in self.decisions("web-eu")), "it is measured", 180)
        last = [one for one in self.decisions("web-eu") if one["fate"] == "done" and one["measured_ms"]][-1]
        print(f"\nusers of eu: {before:.0f} ms before; predicted {last['predicted_ms']:.0f} ms, measured {last['measured_ms']:.0f} ms"
              f" with {self.split('eu')['us']:.0%} in us")
        self.assertLess(last["measured_ms"], before)
        self.assertLess(abs(last["predicted_ms"] / last["measured_ms"] - 1), 0.25)

        # The network between both is cut: nothing more goes there, and users are served at home.
        self.assertEqual(run("link", "eu", "us", "--cut").returncode, 0)
        self.wait_for(lambda: self.split("eu")["us"] == 0, "nothing goes where nothing arrives", 60)
        process.send_signal(signal.SIGTERM)


if __name__ == "__main__":
    main(PROGRAM)
