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
        if "--" in command:  # In a node; what was started there outlives who has started it.
            words = " ".join(command[command.index("--") + 1:])
            self.addCleanup(subprocess.run, ["pkill", "-KILL", "-f", "^" + re.escape(words)], check=False)
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
            self.addCleanup(pathlib.Path(f"/tmp/gateway-{cluster.name}.sock").unlink, missing_ok=True)  # Ends its follower.
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

    def reach_both_servers(self):
        """The API servers of both clusters listen on this machine; a network for administrators brings them to the door of eu."""
        here, there = ["defaults", "  mode tcp", "  timeout connect 2s", "  timeout client 1h", "  timeout server 1h"], None
        there = list(here)
        for cluster in (EU, US):
            config = json.loads(cluster.kubeconfig.read_text(encoding="utf-8"))
            address = config["clusters"][0]["cluster"]["server"].split("//")[1]
            path = self.folder / f"{cluster.name}.sock"
            shutil.copy(cluster.kubeconfig, self.folder / f"{cluster.name}.kubeconfig")  # Nodes do not see the testbed's own.
            here += [f"listen {cluster.name}", f"  bind unix@{path}", f"  server api {address}"]
            there += [f"listen {cluster.name}", f"  bind {address}", f"  server api unix@{path}"]
        for name, lines, around in (("here", here, list), ("there", there, lambda words: door(EU, *words))):
            file = self.folder / f"{name}.cfg"
            file.write_text("\n".join(lines) + "\n", encoding="utf-8")
            self.background(around(["haproxy", "-db", "-f", str(file)]))

    def pods(self, cluster):
        return int(cluster.kubectl("get", "deployment", "-n", "shop", "web", "-o", "jsonpath={.spec.replicas}"))

    @unittest.skipUnless(os.environ.get("RUDDERFISH_CLOUDS"), "minutes; RUDDERFISH_CLOUDS=1, as ./test --full sets it")
    def test_both_clusters_have_the_pods_that_a_learned_policy_decides_on(self):
        """Both tiers in one process, which reaches two clusters by two kubeconfigs."""
        self.start_services()
        self.reach_both_servers()
        for path in pathlib.Path("/tmp").glob("rudderfish-clouds.db*"):
            path.unlink()
        shutil.copy(HERE / "regions.yaml", self.folder / "regions.yaml")
        subprocess.run([str(PROGRAM), "train", str(self.folder / "regions.yaml"), "--rule", "mpc", "--time", "5s", "-d",
                        str(self.folder / "learned")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, timeout=120)
        text = (HERE / "rudderfish.yaml").read_text(encoding="utf-8")
        text = text.replace("policy: lp", "policy: learned").replace("mode: shadow", "mode: enforce").replace("settle: 75s", "settle: 20s")
        text = text.replace("    routes:", """    capacity:
      eu: {deployment: shop/web, cluster: {kubeconfig: eu.kubeconfig}, pods_min: 2, pods_max: 7, step: 2}
      us: {deployment: shop/web, cluster: {kubeconfig: us.kubeconfig}, pods_min: 2, pods_max: 8, step: 2}
    routes:""")
        file = self.folder / "rudderfish.yaml"
        file.write_text(text, encoding="utf-8")
        self.assertIn("capacity      us: 2 to 8 pods of deployment shop/web", self.ask("run", "--dry-run"))
        for cluster in (EU, US):
            self.background(door(cluster, str(PROGRAM), "load", "--target", "http://127.0.0.1:8000/call/1", "--rate",
                                 str(RATES[cluster.name]), "--arrivals", "poisson", "--for", "10m"))
        log = open(self.folder / "log", "ab")
        self.addCleanup(log.close)
        start = lambda: self.background(door(EU, str(PROGRAM), "run", "--config", str(file)), stderr=log)
        process = start()
        # 36 requests a second need more than the 4 pods of eu; 10 need less than the 8 of us.
        self.wait_for(lambda: self.pods(EU) >= 6 and self.pods(US) <= 5, "pods follow demand", 180)
        rows = [one for one in json.loads(self.ask("decisions", "--kind", "routing", "--limit", "1000", "-o", "json"))["decisions"]
                if one["subject"].startswith("capacity/")]
        self.assertEqual({one["subject"] for one in rows}, {"capacity/eu", "capacity/us"})
        for one in rows:
            self.assertLessEqual(abs(one["capacity"]["allowed"] - one["capacity"]["now"]), 2, one)
        self.assertIn("deployment shop/web", self.ask("explain", "capacity/us"))
        # Gone, it leaves pods as they are; back, it goes on.
        subprocess.run(["pkill", "-KILL", "-f", f"^{PROGRAM} run --config {file}"], check=True)
        process.wait()
        stands = self.pods(EU), self.pods(US)
        time.sleep(5)
        self.assertEqual((self.pods(EU), self.pods(US)), stands)
        # What somebody else decides about is left alone, and said.
        US.kubectl("autoscale", "deployment", "web", "-n", "shop", "--min=3", "--max=9")
        process = start()
        self.wait_for(lambda: "HorizontalPodAutoscaler web decides" in self.ask("status"), "it is said", 60)
        US.kubectl("delete", "hpa", "-n", "shop", "web")
        # What a person switched off stays off, though a number is aimed at.
        self.wait_for(lambda: [one["aim"] for one in json.loads(self.ask("status", "-o", "json"))["decisions"]["routing"]["capacity"]
                               if one["region"] == "us" and one["problem"] == "" and one["aim"]], "us has an aim", 60)
        US.kubectl("scale", "-n", "shop", "deployment/web", "--replicas=0")
        self.wait_for(lambda: self.split("eu")["us"] == 0, "nothing goes to us", 90)
        time.sleep(5)
        self.assertEqual(self.pods(US), 0)
        subprocess.run(["pkill", "-TERM", "-f", f"^{PROGRAM} run --config {file}"], check=True)
        process.wait(30)


if __name__ == "__main__":
    main(PROGRAM)
