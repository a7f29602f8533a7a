#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`reach` on a testbed of real nodes: its five modes around a `run` that moves real pods, their CSV columns, and what is left behind.

RUDDERFISH names the program; default: build/release/rudderfish. RUDDERFISH_REACH_ALL: all cases, and not only those that also try what
the others do. Needs what tests/testbed_test.py needs; where something is missing it says what and ends with status 77.
"""
import contextlib
import csv
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from live_support import PROGRAM, TESTBED, TOP, Cluster, commands_of, main

CLUSTER = Cluster("test-reach")
KUBECONFIG = pathlib.Path("/var/lib/rudderfish-testbed") / CLUSTER.name / "kubeconfig"
SCENARIO = TOP / "scenarios/continuum-7x21.yaml"
SPACE = "continuum-7x21"
SERVICES = {"aggregator": 2, "detection": 1, "db": 1, "machine-learning": 1}
COLUMNS = ("aggregator", "detection", "ml", "db")
TIMES = "timestamp,human_readable_timestamp,latency,current_node,target_node,target_pod,failed_node,event".split(",")
TRACE_PORT = 4318
ALL = os.environ.get("RUDDERFISH_REACH_ALL")


def is_ready(pod):
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod.get("status", {}).get("conditions", []))


class Reach(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.said("manifests", SCENARIO, "--pattern", "chain", "--seed", "1", "-d", cls.folder / "episode", "-q")
        CLUSTER.start(cls, "--layers", "cloud:2,edge:3,client:1", "--delays", str(cls.folder / "episode/network.links"))
        CLUSTER.kubectl("apply", "-k", str(TOP / "deploy/moves"))
        nodes = CLUSTER.get("nodes")["items"]
        cls.layers = {node["metadata"]["name"]: node["metadata"]["labels"]["rudderfish.io/layer"] for node in nodes}
        device = next(node for node in nodes if node["metadata"]["name"] == "client-1")
        cls.address = next(one["address"] for one in device["status"]["addresses"] if one["type"] == "InternalIP")
        cls.started(cls, sys.executable, TOP / "tests/trace_server.py", cls.address, TRACE_PORT)
        migration = {"mode": "enforce", "policy": "greedy", "interval": "500ms", "budgets": {"pod_cooldown": "1s", "moves_per_plan": 10},
                     "moves": {"settle": "1s"}}
        # What the testbed keeps is not to be seen on its nodes, which know the API server by another address.
        server = f"https://{CLUSTER.get('service', 'kubernetes')['spec']['clusterIP']}:443"
        (cls.folder / "kubeconfig").write_text(re.sub(r"https://127[^\s\"]*", server, KUBECONFIG.read_text(encoding="utf-8")),
                                               encoding="utf-8")
        for name, kubeconfig in (("rudderfish.yaml", KUBECONFIG), ("device.yaml", "kubeconfig")):
            (cls.folder / name).write_text(json.dumps({
                "rudderfish": "config/v1", "cluster": {"kubeconfig": str(kubeconfig)}, "scope": {"namespaces": [SPACE]},
                "applications": ["episode/application.yaml"], "decisions": {"migration": migration}, "journal": {"path": "j.db"},
                "server": {"socket": "s.sock"}}), encoding="utf-8")
        log = (cls.folder / "log").open("w")
        cls.addClassCleanup(log.close)
        cls.controller = subprocess.Popen([PROGRAM, "run"], cwd=cls.folder, stdout=log, stderr=log)
        cls.addClassCleanup(cls.controller.wait)
        cls.addClassCleanup(cls.controller.terminate)
        end = time.monotonic() + 30
        while subprocess.run([PROGRAM, "pause"], cwd=cls.folder, capture_output=True, check=False).returncode != 0:
            if time.monotonic() > end:
                raise AssertionError((cls.folder / "log").read_text(encoding="utf-8"))
            time.sleep(0.2)

    @staticmethod
    def started(owner, *words):
        """On the device, until the class or the case ends."""
        process = subprocess.Popen([TESTBED, "exec", "--name", CLUSTER.name, "client-1", "--", *map(str, words)],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)

        def end():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        (owner.addClassCleanup if isinstance(owner, type) else owner.addCleanup)(end)
        return process

    @staticmethod
    def said(*words, **options):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=120,
                              **options)
        if done.returncode != 0:
            raise AssertionError(f"{words}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    page = [command.split()[2:] for command in commands_of(TOP / "docs/serve-reach.md", "## REACH's experiments")]

    def setUp(self):
        self.assertTrue(self.status()["paused"])
        self.place_badly()

    def status(self):
        return json.loads(self.said("status", "-o", "json", cwd=self.folder))

    def place_badly(self):
        """All pods in the cloud, whatever an earlier case has made of them."""
        good = [name for name, layer in self.layers.items() if layer != "cloud"]
        CLUSTER.kubectl("delete", "namespace", SPACE, "--ignore-not-found", "--wait=true")
        CLUSTER.kubectl("cordon", *good)
        replicas = ",".join(f"{name}={count}" for name, count in SERVICES.items())
        cpu = ",".join(f"{name}=100m" for name in SERVICES)
        CLUSTER.kubectl("apply", "-f", "-", input=self.said(
            "manifests", SCENARIO, "--pattern", "chain", "--seed", "1", "--replicas", replicas, "--cpu", cpu, "--app", "drains", "--otlp",
            f"http://{self.address}:{TRACE_PORT}"))
        for name in SERVICES:
            CLUSTER.kubectl("rollout", "status", f"deployment/{name}", "-n", SPACE, "--timeout=60s")
        CLUSTER.kubectl("uncordon", *good)
        address = CLUSTER.get("service", "aggregator", "-n", SPACE)["spec"]["clusterIP"]
        (self.folder / ".env").write_text(
            f"NAMESPACE={SPACE}\nAPP_LABEL='deployment=mubench'\nPOLLING_PERIOD=200ms\nALPHA=.3\nMAX_POD_WAITING_RETRIES=300\n"
            f"MAX_STEP=15\nENTRY_SERVICE_URL=http://{address}:8080/call/1\n", encoding="utf-8")

    def reach(self, *words):
        return self.started(self, "env", "-C", self.folder, PROGRAM, "reach", *words, "-c", "device.yaml")

    def ended(self, process, status=0, limit=180):
        said, complained = process.communicate(timeout=limit)
        self.assertEqual(process.returncode, status, complained)
        return said

    def rows(self, name):
        with (self.folder / name).open(encoding="utf-8") as file:
            reader = csv.DictReader(file)
            return reader.fieldnames, list(reader)

    def pods(self):
        return [pod for pod in CLUSTER.get("pods", "-n", SPACE)["items"] if "deletionTimestamp" not in pod["metadata"]]

    def left_as_found(self):
        """The controller is paused, as it was; no node is closed; all pods are there."""
        self.assertTrue(self.status()["paused"])
        self.assertEqual([node["metadata"]["name"] for node in CLUSTER.get("nodes")["items"] if node["spec"].get("unschedulable")], [])
        self.assertEqual(sum(map(is_ready, self.pods())), sum(SERVICES.values()))

    def test_test_measures_before_and_after_the_moves(self):
        with (self.folder / ".env").open("a", encoding="utf-8") as file:
            file.write(f"JAEGER_URL=http://{self.address}:{TRACE_PORT}/api/traces\n")
        self.ended(self.reach(*self.page[0]))
        columns, rows = self.rows("be.csv")
        self.assertEqual(columns, ["total_latency"] + [f"{name}_latency" for name in COLUMNS])
        before = {name: float(value) for name, value in rows[0].items()}
        self.assertEqual({pod["spec"]["nodeName"].split("-")[0] for pod in self.pods()}, {"cloud"})  # be: nothing was moved.
        self.ended(self.reach(*self.page[1]))
        columns, rows = self.rows("rl.csv")
        self.assertEqual(columns, [f"{when}_{name}_latency" for name in ("total", *COLUMNS) for when in ("start", "end")] + ["step"])
        row = {name: float(value) for name, value in rows[0].items()}
        self.assertGreaterEqual(row["step"], 1)
        self.assertLess(row["end_total_latency"], 0.9 * row["start_total_latency"])
        self.assertAlmostEqual(row["start_total_latency"] / before["total_latency"], 1, delta=0.25)
        # A call takes less than that of its caller: a chain.
        self.assertGreaterEqual(row["end_total_latency"], row["end_aggregator_latency"])
        self.assertGreater(row["end_aggregator_latency"], row["end_db_latency"])
        self.ended(self.reach(*self.page[2]))
        columns, rows = self.rows("latency.csv")
        self.assertEqual(columns, TIMES)
        self.assertGreater(len(rows), 5)
        self.ended(self.reach(*self.page[3]))
        self.check_distribution()
        self.left_as_found()

    def check_distribution(self):
        columns, rows = self.rows("where.csv")
        names = sorted(name.replace("-", "_") for name in self.layers)
        self.assertEqual(columns, [f"{service}_{node}" for service in COLUMNS for node in names])
        counts = {}
        for pod in self.pods():
            service = {"machine-learning": "ml"}.get(pod["metadata"]["labels"]["app"], pod["metadata"]["labels"]["app"])
            name = f"{service}_{pod['spec']['nodeName'].replace('-', '_')}"
            counts[name] = counts.get(name, 0) + 1
        self.assertEqual({name: int(count) for name, count in rows[-1].items() if count != "0"}, counts)

    @unittest.skipUnless(ALL, "RUDDERFISH_REACH_ALL is not set")
    def test_monitoring_says_what_was_moved(self):
        self.ended(self.reach("monitoring", "--output", "ts.csv", "--qos", "1000000", "--for", "5"))
        columns, rows = self.rows("ts.csv")
        self.assertEqual(columns, TIMES)
        self.assertEqual({row["event"] for row in rows}, {"latency"})  # Below --qos nothing is moved.
        self.assertGreater(len(rows), 2)
        self.assertEqual({pod["spec"]["nodeName"].split("-")[0] for pod in self.pods()}, {"cloud"})
        process = self.reach("monitoring", "--output", "ts.csv", "--qos", "1")
        end = time.monotonic() + 90
        while not any(row["event"] == "rescheduling" for row in self.rows("ts.csv")[1]):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.5)
        os.killpg(process.pid, signal.SIGINT)  # Without --for it goes on until somebody stops it.
        self.assertIn("requests answered, 0 failed", process.communicate(timeout=60)[1])
        moved = next(row for row in self.rows("ts.csv")[1] if row["event"] == "rescheduling")
        self.assertEqual((moved["latency"], moved["current_node"].split("-")[0]), ("", "cloud"))
        self.assertNotEqual(moved["current_node"], moved["target_node"])
        self.assertRegex(moved["human_readable_timestamp"], r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$")
        self.left_as_found()

    def test_nodes_fail_and_recover(self):
        CLUSTER.kubectl("cordon", "edge-3")
        process = self.reach("nodefailed", "--target_node_a", "edge-3", "--output", "none.csv", "--stable_start_time", "0")
        self.assertIn("edge-3 is cordoned already", process.communicate(timeout=60)[1])
        self.assertEqual(process.returncode, 2)
        CLUSTER.kubectl("uncordon", "edge-3")
        # A budget that allows no eviction is obeyed.
        at_once = ("--stable_start_time", "0", "--experiment_waiting_time", "0", "--t", "0", "--qos", "1000000")
        (self.folder / "few.env").write_text((self.folder / ".env").read_text(encoding="utf-8").replace("RETRIES=300", "RETRIES=10"),
                                             encoding="utf-8")
        process = self.reach("nodefailed", "--target_node_a", "cloud-1", *at_once, "--env", "few.env", "--output", "none.csv")
        said = process.communicate(timeout=60)[1]
        self.assertRegex(said, r"node cloud-1 still has \d pods: .*disruption budget")
        self.assertEqual(process.returncode, 1)
        self.left_as_found()
        CLUSTER.kubectl("delete", "poddisruptionbudgets", "--all", "-n", SPACE)
        times = ("--stable_start_time", "1", "--experiment_waiting_time", "1", "--t", "15", "--after_wait_time", "8")
        nodes = ("--target_node_a", "cloud-1", "--target_node_b", "edge-1")
        self.ended(self.reach("nodefailed", *nodes, *times, "--qos", "1", "--output", "failed.csv"))
        _, rows = self.rows("failed.csv")
        events = [(row["event"], row["failed_node"]) for row in rows if row["event"] not in ("latency", "rescheduling")]
        self.assertEqual(events, [("experiment_start", ""), ("node_failed", "cloud-1"), ("node_failed", "edge-1"),
                                  ("node_recovered", "Finish")])
        self.assertEqual({pod["spec"]["nodeName"] for pod in self.pods()} & {"cloud-1", "edge-1"}, set())
        self.left_as_found()
        # Killed while nodes are closed: the next experiment opens them.
        process = self.reach("nodefailed", *nodes, *at_once, "--after_wait_time", "600", "--output", "killed.csv")
        end = time.monotonic() + 60
        while sum(bool(node["spec"].get("unschedulable")) for node in CLUSTER.get("nodes")["items"]) < 2:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.2)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        self.ended(self.reach("pod_distribution", "--strategy", "be", "--output", "after.csv"))
        self.left_as_found()

    @unittest.skipUnless(ALL, "RUDDERFISH_REACH_ALL is not set")
    def test_a_workload_is_scaled_after_the_first_plan(self):
        process = self.reach("autoscaling", "--target_replica", "3", "--qos", "1", "--output", "scaled.csv", "--for", "3")
        self.ended(process)
        _, rows = self.rows("scaled.csv")
        events = [row["event"] for row in rows if row["event"] != "latency"]
        self.assertEqual(events.count("autoscaling"), 2)
        self.assertLess(events.index("rescheduling"), events.index("autoscaling"))
        self.assertEqual(CLUSTER.get("deployment", "aggregator", "-n", SPACE)["spec"]["replicas"], 3)
        self.assertTrue(self.status()["paused"])


if __name__ == "__main__":
    main(PROGRAM)
