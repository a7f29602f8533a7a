#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`route` on what splits requests for real: an HTTPRoute on a real API server, and HAProxy with two web servers behind it.

RUDDERFISH names the program; default: build/release/rudderfish. Needs what tests/testbed_test.py needs, and haproxy; where
something is missing it says what and ends with status 77. RUDDERFISH_TESTBED names a testbed that runs already and is left alone.
"""
import collections
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
import urllib.request

from live_support import GIVEN, PROGRAM, Cluster, main

CLUSTER = Cluster(GIVEN or "test-routes")
KUBECONFIG = pathlib.Path("/var/lib/rudderfish-testbed") / CLUSTER.name / "kubeconfig"
KIND = "httproutes.gateway.networking.k8s.io"


def definition():
    """What of the Gateway API's HTTPRoute is asked for here, with its bounds and defaults."""
    backend = {"type": "object", "required": ["name"], "properties": {
        "group": {"type": "string", "default": ""}, "kind": {"type": "string", "default": "Service"}, "name": {"type": "string"},
        "namespace": {"type": "string"}, "port": {"type": "integer"},
        "weight": {"type": "integer", "minimum": 0, "maximum": 1000000, "default": 1}}}
    rule = {"type": "object", "properties": {"backendRefs": {"type": "array", "maxItems": 16, "items": backend}}}
    spec = {"type": "object", "properties": {"hostnames": {"type": "array", "items": {"type": "string"}},
                                             "rules": {"type": "array", "maxItems": 16, "items": rule}}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": KIND, "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/gateway-api"}},
            "spec": {"group": "gateway.networking.k8s.io", "scope": "Namespaced",
                     "names": {"kind": "HTTPRoute", "plural": "httproutes", "singular": "httproute"},
                     "versions": [{"name": "v1", "served": True, "storage": True,
                                   "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]}}


def route(*backends, **metadata):
    return {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
            "metadata": {"name": "shop", "namespace": "default", **metadata},
            "spec": {"hostnames": ["shop.example"], "rules": [{"backendRefs": [{"name": name, "port": 80} for name in backends]}]}}


def slices(name, ready):
    return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": f"{name}-1", "namespace": "default", "labels": {"kubernetes.io/service-name": name}},
            "endpoints": [{"addresses": ["10.9.9.9"], "conditions": {"ready": ready}}], "ports": [{"port": 80}]}


def asked(*words, status=0):
    done = subprocess.run([PROGRAM, "route", *map(str, words)], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                          timeout=60)
    if done.returncode != status:
        raise AssertionError(f"route {words}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout if status == 0 else done.stdout + done.stderr


class Routes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        CLUSTER.start(cls, "--nodes", "0", "--hollow", "1")
        CLUSTER.apply(definition())
        CLUSTER.kubectl("wait", "--for=condition=Established", f"crd/{KIND}", "--timeout=30s")

    def setUp(self):
        CLUSTER.kubectl("delete", KIND, "--all", "--wait=true")
        CLUSTER.kubectl("apply", "-f", "-", input=json.dumps(route("shop-eu", "shop-us")))
        CLUSTER.apply(slices("shop-eu", True), slices("shop-us", True))

    def weights(self):
        rules = CLUSTER.get(KIND, "shop")["spec"]["rules"]
        return {backend["name"]: backend["weight"] for backend in rules[0]["backendRefs"]}

    WORDS = ("httproute/shop", "--kubeconfig", KUBECONFIG, "--regions", "eu=shop-eu,us=shop-us")

    def test_a_split_is_shown_tried_and_written(self):
        standing = json.loads(asked(*self.WORDS, "-o", "json"))
        self.assertEqual([(one["region"], one["health"], one["share"]) for one in standing["backends"]],
                         [("eu", "healthy", 0.5), ("us", "healthy", 0.5)])
        version = CLUSTER.get(KIND, "shop")["metadata"]["resourceVersion"]
        tried = asked(*self.WORDS, "--to", "eu=60,us=40")
        self.assertIn("Nothing was written; --apply sends", tried)
        self.assertIn('{"op":"replace","path":"/spec/rules/0/backendRefs/0/weight","value":600000}', tried)
        self.assertEqual(CLUSTER.get(KIND, "shop")["metadata"]["resourceVersion"], version)
        self.assertIn("Written, and read back.", asked(*self.WORDS, "--to", "eu=60,us=40", "--apply"))
        self.assertEqual(self.weights(), {"shop-eu": 600000, "shop-us": 400000})
        after = CLUSTER.get(KIND, "shop")
        self.assertEqual(after["spec"]["hostnames"], ["shop.example"])
        self.assertEqual(json.loads(after["metadata"]["annotations"]["rudderfish.io/split"])["before"], {"shop-eu": 1, "shop-us": 1})
        self.assertIn("Nothing to change.", asked(*self.WORDS, "--to", "eu=60,us=40", "--apply"))
        # What we wrote last is ours to change.
        asked(*self.WORDS, "--to", "eu=50,us=50", "--apply")
        self.assertEqual(self.weights(), {"shop-eu": 500000, "shop-us": 500000})

    def test_a_large_change_takes_steps_and_a_dark_region_is_left_at_once(self):
        self.assertIn("a step changes a region by at most 10.0 %; 30.0 % more are wanted",
                      asked(*self.WORDS, "--to", "eu=90,us=10", "--apply"))
        self.assertEqual(self.weights()["shop-eu"], 600000)
        CLUSTER.apply(slices("shop-us", False))
        self.assertIn("us gets nothing: it is not healthy", asked(*self.WORDS, "--to", "eu=10,us=90", "--apply"))
        self.assertEqual(self.weights(), {"shop-eu": 1000000, "shop-us": 0})
        CLUSTER.apply(slices("shop-eu", False))
        self.assertIn("the split stays: no region is known to be healthy",
                      asked(*self.WORDS, "--to", "eu=50,us=50", "--apply", status=1))
        self.assertEqual(self.weights(), {"shop-eu": 1000000, "shop-us": 0})

    def test_what_others_write_is_left_alone(self):
        CLUSTER.kubectl("apply", "--server-side", "--force-conflicts", "--field-manager", "flagger", "-f", "-",
                        input=json.dumps(route("shop-eu", "shop-us")))
        self.assertIn("flagger wrote its rules last; --take-over",
                      asked(*self.WORDS, "--to", "eu=60,us=40", "--apply", status=2))
        self.assertEqual(self.weights(), {"shop-eu": 1, "shop-us": 1})
        asked(*self.WORDS, "--to", "eu=60,us=40", "--apply", "--take-over")
        self.assertEqual(self.weights(), {"shop-eu": 600000, "shop-us": 400000})

    def test_what_cannot_be_split_is_refused(self):
        for words, says, status in (
                (("--to", "eu=60,us=30"), "--to: the shares sum to 90 %; they must sum to 100 %", 2),
                (("--to", "eu=60,as=40"), "no backend is the region as", 2),
                (("--rule", "3"), "has no rule 3; it has rule 0", 2),
                (("--regions", "eu=shop-eu,us=shop-ua"), "has no backend shop-ua for the region us", 2),
                (("--apply",), "--apply: name the split with --to", 2),
                (("--socket", "x"), "--socket: only for haproxy/BACKEND", 2)):
            regions = () if "--regions" in words else self.WORDS[3:]
            self.assertIn(says, asked(*self.WORDS[:3], *regions, *words, status=status))
        self.assertIn("httproute default/shp: not found", asked("httproute/shp", *self.WORDS[1:], status=2))
        self.assertEqual(self.weights(), {"shop-eu": 1, "shop-us": 1})

    def test_killed_at_any_moment_leaves_the_old_split_or_the_new_one(self):
        for number in range(12):
            wanted = "eu=60,us=40" if number % 2 == 0 else "eu=50,us=50"
            process = subprocess.Popen([PROGRAM, "route", *map(str, self.WORDS), "--to", wanted, "--apply"], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.005 * number)
            process.send_signal(signal.SIGKILL)
            process.wait()
            weights = self.weights()
            share = weights["shop-eu"] / sum(weights.values())
            self.assertIn(share, (0.5, 0.6))


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.server.name)))
        self.end_headers()
        self.wfile.write(self.server.name)

    def log_message(self, *_):
        pass


@unittest.skipUnless(shutil.which("haproxy") or os.path.exists("/usr/sbin/haproxy"), "haproxy is not installed")
class Haproxy(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.servers = {}
        for region in ("eu", "us"):
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
            server.name = region.encode()
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.servers[region] = server
            self.addCleanup(server.server_close)
            self.addCleanup(server.shutdown)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        lines = "".join(f"  server {name} 127.0.0.1:{server.server_port} weight 128 check inter 100ms\n"
                        for name, server in self.servers.items())
        (self.folder / "haproxy.cfg").write_text(
            f"global\n  stats socket {self.folder}/admin.sock level admin\ndefaults\n  mode http\n  timeout connect 1s\n"
            f"  timeout client 5s\n  timeout server 5s\nfrontend in\n  bind 127.0.0.1:{self.port}\n  default_backend shop\n"
            f"backend shop\n  balance roundrobin\n{lines}", encoding="utf-8")
        self.process = subprocess.Popen([shutil.which("haproxy") or "/usr/sbin/haproxy", "-f", self.folder / "haproxy.cfg", "-db"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.terminate)
        for _ in range(100):
            if (self.folder / "admin.sock").exists():
                break
            time.sleep(0.05)

    def served(self, count=200):
        """By whom."""
        return collections.Counter(urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=5).read().decode()
                                   for _ in range(count))

    def test_requests_go_where_the_split_says(self):
        words = ("haproxy/shop", "--socket", self.folder / "admin.sock")
        self.assertEqual(self.served(), {"eu": 100, "us": 100})
        self.assertIn("set server shop/eu weight 205; set server shop/us weight 51",
                      asked(*words, "--to", "eu=80,us=20", "--max-change", "50"))
        self.assertEqual(self.served(), {"eu": 100, "us": 100})
        asked(*words, "--to", "eu=80,us=20", "--max-change", "50", "--apply")
        served = self.served(1000)
        self.assertLess(abs(served["eu"] - 800), 10, served)
        self.servers["us"].shutdown()
        self.servers["us"].server_close()
        for _ in range(100):
            standing = json.loads(asked(*words, "-o", "json"))
            if standing["backends"][1]["health"] == "unhealthy":
                break
            time.sleep(0.1)
        self.assertIn("us gets nothing: it is not healthy", asked(*words, "--to", "eu=50,us=50", "--apply"))
        self.assertEqual(self.served(), {"eu": 200})
        self.assertIn("no backend is called shp", asked("haproxy/shp", *words[1:], status=2))


if __name__ == "__main__":
    main()
