#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One `run` that places pods in two clusters: each by its own modes and evidence, neither held up by the other.

RUDDERFISH names the program; default: build/release/rudderfish. Needs what tests/testbed_test.py needs.
"""
import json
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from live_support import PROGRAM, Cluster, main

OWN, OTHER = Cluster("test-own"), Cluster("test-other")


def deployment(name, replicas):
    """Its pods name us."""
    template = {"schedulerName": "rudderfish", "tolerations": [{"key": "rudderfish.io/hollow", "operator": "Exists"}],
                "containers": [{"name": "main", "image": "localhost/pause:1", "resources": {"requests": {"cpu": "500m"}}}]}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": {"app": name}}, "spec": template}}}


def pods(cluster, name):
    return cluster.get("pods", "-l", f"app={name}")["items"]


def placed(cluster, name):
    return sum(1 for pod in pods(cluster, name) if pod["spec"].get("nodeName"))


class Clusters(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for cluster in (OWN, OTHER):
            cluster.start_audited(cls, "--nodes", "0", "--hollow", "8")

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.config = self.folder / "rudderfish.yaml"
        self.write(OTHER.kubeconfig)
        self.process = None
        self.addCleanup(self.end)

    def write(self, other):
        self.config.write_text(
            f"rudderfish: config/v1\ncluster: {{kubeconfig: {OWN.kubeconfig}, staleness: 5s}}\n"
            f"decisions: {{placement: {{mode: enforce, policy: most-allocated, settle: 8s, clusters: {{us: {{kubeconfig: {other}}}}}}}}}\n"
            f"journal: {{path: r.db}}\nserver: {{listen: \"127.0.0.1:{self.port}\"}}\n", encoding="utf-8")

    def end(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for cluster in (OWN, OTHER):
            cluster.kubectl("delete", "deployments", "--all", "--cascade=background", "--wait=false")
            cluster.kubectl("delete", "pods", "--all", "--force", "--grace-period=0", "--wait=false")

    def start(self):
        with (self.folder / "log").open("a", encoding="utf-8") as log:
            self.process = subprocess.Popen([PROGRAM, "run", "-c", self.config], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.wait_for(lambda: self.page("metrics"), "it runs")

    def page(self, name):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{name}", timeout=5) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            return f"{error.code}: {error.read().decode()}"
        except OSError:
            return ""

    def ask(self, *words, expect=0):
        done = subprocess.run([PROGRAM, *words, "-c", self.config], capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def kinds(self):
        return json.loads(self.ask("status", "-o", "json"))["decisions"]

    def wait_for(self, holds, what, limit_s=60):
        deadline = time.monotonic() + limit_s
        while not holds():
            if time.monotonic() > deadline:
                self.fail(f"{what}: {(self.folder / 'log').read_text(encoding='utf-8')[-3000:]}")
            time.sleep(0.2)

    def test_pods_of_both_clusters_are_placed_and_each_has_modes_of_its_own(self):
        said = self.ask("run", "--dry-run")
        self.assertRegex(said, r"placement/us +the same in https://")
        self.assertIn("cluster us:\nreached", said)
        self.start()
        OWN.apply(deployment("web", 6))
        OTHER.apply(deployment("web", 9))
        self.wait_for(lambda: placed(OWN, "web") == 6, "all are placed")
        self.wait_for(lambda: placed(OTHER, "web") == 9, "all are placed in the other cluster", 90)
        for cluster, count in ((OWN, 6), (OTHER, 9)):
            log = cluster.binding_log()
            self.assertEqual(len({pod["metadata"]["uid"] for pod in pods(cluster, "web")} & log.done_at_s.keys()), count)
            self.assertEqual(log.done_twice(), {})
        # One journal, which tells them apart.
        theirs = {pod["metadata"]["uid"] for pod in pods(OTHER, "web")}
        recorded = lambda *words: json.loads(self.ask("decisions", *words, "-o", "json"))["decisions"]
        # Beside pods of earlier tests, which a controller whose API server was dead removes late.
        self.wait_for(lambda: theirs <= {row["uid"] for row in recorded("--cluster", "us")}, "they are recorded")
        rows = recorded("--cluster", "us")
        self.assertFalse({pod["metadata"]["uid"] for pod in pods(OWN, "web")} & {row["uid"] for row in rows})
        self.assertEqual({row["cluster"] for row in rows}, {"us"})
        self.assertEqual({row["cluster"] for row in recorded()}, {"", "us"})
        name = pods(OTHER, "web")[0]["metadata"]["name"]
        self.assertIn(f"default/{name} of cluster us was put on", self.ask("explain", f"pod/{name}"))
        self.assertIn("-n default --cluster us", self.ask("decisions"))
        # Modes are of one cluster each.
        self.assertIn("placement/us: enforce -> off", self.ask("demote", "placement/us", "--to", "off"))
        self.assertIn("no cluster asia in `decisions.placement.clusters`", self.ask("promote", "placement/asia", expect=2))
        self.assertEqual({kind: one["mode"] for kind, one in self.kinds().items()}, {"placement": "enforce", "placement/us": "off"})
        OWN.apply(deployment("later", 2))
        OTHER.apply(deployment("later", 2))
        self.wait_for(lambda: placed(OWN, "later") == 2, "the own cluster goes on")
        self.wait_for(lambda: self.kinds()["placement/us"]["unserved"] >= 2, "the other's pods are seen to wait")
        self.assertEqual(placed(OTHER, "later"), 0)
        waiting = pods(OTHER, "later")[0]["metadata"]["name"]
        told = self.ask("explain", f"pod/{waiting}", "--cluster", "us")
        self.assertIn(f"default/{waiting} of cluster us waits for rudderfish", told)
        self.assertIn("placement is in off", told)
        self.assertRegex(self.page("metrics"), r'rudderfish_placement_unserved_pods{cluster="us"} [1-9]')
        self.assertIn("rudderfish_placement_unserved_pods 0", self.page("metrics"))
        # Killed and started again, each goes on as it was.
        self.process.kill()
        self.process.wait()
        self.start()
        self.assertEqual({kind: one["mode"] for kind, one in self.kinds().items()}, {"placement": "enforce", "placement/us": "off"})
        self.assertIn("only decisions of placement", self.ask("decisions", "--cluster", "us", "--kind", "migration", expect=2))
        self.assertIn("no recorded decision", self.ask("explain", f"pod/{name}", "--cluster", "asia", expect=2))
        self.ask("promote", "placement/us", "--to", "enforce", "--force")
        self.wait_for(lambda: placed(OTHER, "later") == 2, "they are placed")
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(20), 0)

    def test_nothing_is_measured_in_a_cluster_that_is_not_seen(self):
        recorded = lambda: json.loads(self.ask("decisions", "--cluster", "us", "-o", "json"))["decisions"]
        self.start()
        OTHER.apply(deployment("seen", 3))
        self.wait_for(lambda: any("measured_gain" in row for row in recorded()), "a choice is compared")
        self.process.kill()
        self.process.wait()
        self.assertEqual([row for row in recorded() if row.get("measured_gain") is not None], [], "it was killed too late")
        OTHER.testbed("stop", "kube-apiserver")
        try:
            self.start()
            time.sleep(10)  # More than `settle`: what was compared would be due.
            self.assertEqual([row for row in recorded() if row.get("measured_gain") is not None], [])
        finally:
            OTHER.testbed("start", "kube-apiserver")
        self.wait_for(lambda: any(row.get("measured_gain") is not None for row in recorded()), "it is measured once all is seen", 90)

    def test_a_cluster_that_is_gone_holds_up_no_other(self):
        OTHER.testbed("stop", "kube-apiserver")
        try:
            self.start()  # As it is not there.
            OWN.apply(deployment("gone", 3))
            self.wait_for(lambda: placed(OWN, "gone") == 3, "the own cluster is served")
            self.assertIn("not listed yet", self.ask("status"))
        finally:
            OTHER.testbed("start", "kube-apiserver")
        OTHER.apply(deployment("gone", 3))
        self.wait_for(lambda: placed(OTHER, "gone") == 3, "it is served as soon as it is there", 90)
        self.wait_for(lambda: 'rudderfish_placement_state_fresh{cluster="us"} 1' in self.page("metrics"), "it is fresh")
        OTHER.testbed("stop", "kube-apiserver")
        try:
            self.wait_for(lambda: 'rudderfish_placement_state_fresh{cluster="us"} 0' in self.page("metrics"), "it is not fresh")
            OWN.apply(deployment("back", 3))
            self.wait_for(lambda: placed(OWN, "back") == 3, "the own cluster is served")
            self.assertNotRegex(self.page("readyz"), "^503")
            self.assertNotEqual(self.kinds()["placement/us"]["problem"], "")
            self.assertEqual(self.kinds()["placement"]["problem"], "")
        finally:
            OTHER.testbed("start", "kube-apiserver")
        OTHER.apply(deployment("back", 3))
        self.wait_for(lambda: placed(OTHER, "back") == 3, "it is served again", 90)

    def test_two_names_of_one_cluster_are_refused(self):
        self.write(OWN.kubeconfig)
        said = self.ask("run", "--dry-run", expect=2)
        self.assertRegex(said, r"rudderfish.yaml:3:\d+: `decisions.placement.clusters.us`: https://.* is the API server of `cluster` as well")
        self.assertIn("is the API server of `cluster` as well", self.ask("run", expect=2))
        self.write(self.folder / "none")
        self.assertIn("decisions.placement.clusters.us", self.ask("run", expect=2))


if __name__ == "__main__":
    main(PROGRAM)
