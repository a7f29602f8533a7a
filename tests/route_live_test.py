#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`route` on HTTPRoutes of a real API server: what it shows, the exact request of a dry run, what stands after it is sent, and
every refusal, after which the route is as it was.

RUDDERFISH names the program; default: build/release/rudderfish. Needs what tests/testbed_test.py needs; where something is
missing it says what and ends with status 77. RUDDERFISH_TESTBED names a testbed that runs already and is left alone.
"""
import contextlib
import http.client
import http.server
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from live_support import GIVEN, PROGRAM, TESTBED, TOP, Cluster, commands_of, main

CLUSTER = Cluster(GIVEN or "test-route")
KUBECONFIG = pathlib.Path("/var/lib/rudderfish-testbed") / CLUSTER.name / "kubeconfig"
CRD = TOP / "tests/data/gateway-api/httproute-crd.yaml"
REGIONS = ("--regions", "eu=web-eu,us=web-us")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def backend(name, weight=None, **more):
    return {"name": name, "port": 80, **({} if weight is None else {"weight": weight}), **more}


def route(name, *rules):
    return {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"hostnames": ["shop.example"], "rules": [{"backendRefs": list(rule)} for rule in rules]}}


def slice_of(service, ready):
    return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": service, "namespace": "default", "labels": {"kubernetes.io/service-name": service}},
            "ports": [{"port": 80}], "endpoints": [{"addresses": ["10.9.0.1"], "conditions": {"ready": ready}}]}


class BetweenRouteAndApiServer:
    """What stands between the program and the API server, and has its way with each PATCH: `meddle` answers it, or lets it pass."""

    def __init__(self, meddle):
        self.proxy = subprocess.Popen([str(TESTBED), "kubectl", "--name", CLUSTER.name, "--", "proxy", "--port=0"],
                                      stdout=subprocess.PIPE, text=True)
        port = int(re.search(r":(\d+)", self.proxy.stdout.readline()).group(1))

        class Handler(http.server.BaseHTTPRequestHandler):
            def forward(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
                connection.request(self.command, self.path, body, {"Content-Type": self.headers.get("Content-Type", "")})
                try:
                    answer = connection.getresponse()
                    return answer.status, answer.read()
                finally:
                    connection.close()

            def answer(self, status, body):
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):  # pylint: disable=invalid-name
                self.answer(*self.forward())

            def do_PATCH(self):  # pylint: disable=invalid-name
                meddle(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def kubeconfig(self):
        server = f"http://127.0.0.1:{self.server.server_address[1]}"
        return json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "x", "users": [{"name": "x", "user": {}}],
                           "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
                           "clusters": [{"name": "x", "cluster": {"server": server}}]})

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.proxy.terminate()
        self.proxy.communicate()


class RouteTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        CLUSTER.start(cls, "--nodes", "0")
        CLUSTER.kubectl("apply", "-f", str(CRD))
        CLUSTER.kubectl("wait", "--for=condition=Established", "crd/httproutes.gateway.networking.k8s.io", "--timeout=30s")

    def setUp(self):
        self.addCleanup(CLUSTER.tried, "kubectl", "--", "delete", "httproutes", "--all")
        for service in ("web-eu", "web-us"):
            CLUSTER.apply(slice_of(service, True))

    def create(self, name, *rules, manager=None):
        words = ("create", "-f", "-") + (("--field-manager", manager) if manager else ())
        CLUSTER.kubectl(*words, input=json.dumps(route(name, *rules)))

    def run_route(self, verb, name, *words):
        if "--kubeconfig" not in words:
            words = (*words, "--kubeconfig", str(KUBECONFIG))
        return subprocess.run([str(PROGRAM), "route", verb, "--httproute", f"default/{name}", *words], capture_output=True,
                              text=True, check=False, timeout=60, stdin=subprocess.DEVNULL)

    def succeed(self, verb, name, *words):
        done = self.run_route(verb, name, *words)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        return done.stdout

    def refuse(self, verb, name, *words, says):
        before = CLUSTER.get("httproute", name)
        done = self.run_route(verb, name, *words)
        self.assertEqual(done.returncode, 2, done.stderr + done.stdout)
        self.assertIn(says, done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertEqual(CLUSTER.get("httproute", name), before)

    def backends(self, name, rule=0):
        return CLUSTER.get("httproute", name)["spec"]["rules"][rule]["backendRefs"]

    def weights(self, name, rule=0):
        return {one["name"]: one["weight"] for one in self.backends(name, rule)}

    def test_dry_run_sends_nothing_and_apply_sends_just_that(self):
        self.create("web", [backend("web-eu", 70), backend("web-us", 30)])
        before = CLUSTER.get("httproute", "web")
        dry = json.loads(self.succeed("set", "web", *REGIONS, "--to", "eu=64,us=36", "-o", "json"))
        self.assertEqual(CLUSTER.get("httproute", "web"), before)
        self.assertIsNone(dry["after"])
        head, body = dry["request"].split("\n\n", 1)
        self.assertIn("PATCH /apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes/web?fieldManager=rudderfish", head)
        # The printed request, sent by kubectl, does the same.
        self.create("twin", [backend("web-eu", 70), backend("web-us", 30)])
        patch = [op for op in json.loads(body) if op["path"] != "/metadata/resourceVersion"]
        CLUSTER.kubectl("patch", "httproute", "twin", "--type=json", "-p", json.dumps(patch))
        done = json.loads(self.succeed("set", "web", *REGIONS, "--to", "eu=64,us=36", "--apply", "-o", "json"))
        self.assertEqual(done["request"], dry["request"])
        self.assertEqual(done["reasons"], [])
        self.assertEqual(self.weights("web"), {"web-eu": 640000, "web-us": 360000})
        self.assertEqual(self.backends("web"), self.backends("twin"))
        self.assertEqual({one["name"]: one["weight"] for one in done["after"]["backends"]}, self.weights("web"))
        # Again: it stands already.
        version = CLUSTER.get("httproute", "web")["metadata"]["resourceVersion"]
        self.assertIn("nothing to send", self.succeed("set", "web", *REGIONS, "--to", "eu=64,us=36", "--apply"))
        self.assertEqual(CLUSTER.get("httproute", "web")["metadata"]["resourceVersion"], version)
        self.assertIn("64 %", self.succeed("show", "web", *REGIONS))

    def test_one_rule_of_several_and_weights_that_are_not_given(self):
        self.create("web", [backend("other")], [backend("web-eu"), backend("web-us")])
        self.refuse("show", "web", says="has 2 rules; choose one with --rule")
        self.refuse("show", "web", "--rule", "2", says="has no rule 2")
        self.succeed("set", "web", "--rule", "1", *REGIONS, "--to", "eu=55,us=45", "--apply")
        self.assertEqual(self.weights("web", 1), {"web-eu": 550000, "web-us": 450000})
        self.assertEqual(self.backends("web", 0)[0]["weight"], 1)

    def test_guard_goes_by_steps_and_leaves_a_dead_region_at_once(self):
        self.create("web", [backend("web-eu", 1), backend("web-us", 1)])
        text = self.succeed("set", "web", *REGIONS, "--to", "eu=0,us=100", "--apply")
        self.assertIn("at most 10 points in one step", text)
        self.assertEqual(self.weights("web"), {"web-eu": 400000, "web-us": 600000})
        self.succeed("set", "web", *REGIONS, "--to", "eu=0,us=100", "--step", "100", "--apply")
        self.assertEqual(self.weights("web"), {"web-eu": 10000, "web-us": 990000})
        CLUSTER.apply(slice_of("web-us", False))
        text = self.succeed("set", "web", *REGIONS, "--to", "eu=1,us=99", "--apply")
        self.assertIn("us gets no requests: Service web-us has no ready endpoint", text)
        self.assertEqual(self.weights("web"), {"web-eu": 1000000, "web-us": 0})
        CLUSTER.apply(slice_of("web-eu", False))
        done = self.run_route("set", "web", *REGIONS, "--to", "eu=50,us=50", "--apply")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no region is healthy: the last good split is kept", done.stdout)
        self.assertEqual(self.weights("web"), {"web-eu": 1000000, "web-us": 0})

    def test_refusals_change_nothing(self):
        self.create("web", [backend("web-eu", 1), backend("web-us", 1)])
        for words, says in ((("--to", "eu=60,us=30"), "the shares sum to 90 %"),
                            (("--to", "eu=60,asia=40"), "region `asia` has no backend `asia`"),
                            (("--to", "eu=100"), "backend `web-us` has no share"),
                            (("--to", "eu=60,us=40", "--floor", "60"), "more than 2 regions can have")):
            self.refuse("set", "web", *REGIONS, *words, "--apply", says=says)
        self.create("owned", [backend("web-eu", 1), backend("web-us", 1)], manager="rollouts-controller")
        self.refuse("set", "owned", *REGIONS, "--to", "eu=55,us=45", "--apply", says="field manager `rollouts-controller`")
        self.succeed("set", "owned", *REGIONS, "--to", "eu=55,us=45", "--may-change", "rollouts-controller", "--apply")
        self.create("kinds", [backend("web-eu", 1), backend("web-us", 1, group="multicluster.x-k8s.io", kind="ServiceImport")])
        text = self.succeed("set", "kinds", *REGIONS, "--to", "eu=55,us=45")
        self.assertIn("us gets no requests: whether a multicluster.x-k8s.io/ServiceImport is healthy is not seen", text)
        done = self.run_route("show", "missing")
        self.assertEqual(done.returncode, 2)
        self.assertIn("404", done.stderr)

    def test_killed_at_any_moment_the_old_split_or_the_new_stands(self):
        self.create("web", [backend("web-eu", 70), backend("web-us", 30)])
        ends = set()
        for delay in (0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, None):
            CLUSTER.kubectl("patch", "httproute", "web", "--type=json", "-p", json.dumps(
                [{"op": "replace", "path": f"/spec/rules/0/backendRefs/{i}/weight", "value": value}
                 for i, value in enumerate((70, 30))]))
            with subprocess.Popen([str(PROGRAM), "route", "set", "--httproute", "default/web", "--kubeconfig", str(KUBECONFIG),
                                   *REGIONS, "--to", "eu=64,us=36", "--apply"], stdout=subprocess.DEVNULL) as process:
                if delay is None:
                    process.wait(timeout=60)
                else:
                    time.sleep(delay)
                    process.send_signal(signal.SIGKILL)
            weights = tuple(self.weights("web").values())
            self.assertIn(weights, ((70, 30), (640000, 360000)))
            ends.add(weights)
        self.assertEqual(len(ends), 2, "none was killed before its request, or none after")

    def set_with(self, meddle):
        """`set` with something in between."""
        between = BetweenRouteAndApiServer(meddle)
        self.addCleanup(between.stop)
        with tempfile.TemporaryDirectory() as folder:
            kubeconfig = pathlib.Path(folder) / "kubeconfig"
            kubeconfig.write_text(between.kubeconfig(), encoding="utf-8")
            return self.run_route("set", "web", *REGIONS, "--to", "eu=55,us=45", "--apply", "--kubeconfig", str(kubeconfig))

    def test_change_of_others_in_between_is_not_overwritten(self):
        self.create("web", [backend("web-eu", 1), backend("web-us", 1)])

        def others_were_faster(request):
            CLUSTER.kubectl("patch", "httproute", "web", "--type=json", "-p",
                            '[{"op": "replace", "path": "/spec/rules/0/backendRefs/0/weight", "value": 5}]')
            request.answer(*request.forward())

        done = self.set_with(others_were_faster)
        self.assertEqual(done.returncode, 1, done.stderr + done.stdout)
        self.assertIn("it was changed since it was read, and nothing was done; run it again", done.stderr)
        self.assertEqual(self.weights("web"), {"web-eu": 5, "web-us": 1})

    def test_what_stands_says_whether_a_request_without_answer_was_done(self):
        self.create("web", [backend("web-eu", 1), backend("web-us", 1)])
        sent = []

        def cut_before(request):
            sent.append("before")
            request.close_connection = True

        def cut_after(request):
            sent.append("after")
            request.forward()
            request.close_connection = True

        done = self.set_with(cut_before)
        self.assertEqual(done.returncode, 1, done.stderr + done.stdout)
        self.assertEqual(self.weights("web"), {"web-eu": 1, "web-us": 1})
        done = self.set_with(cut_after)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertEqual(self.weights("web"), {"web-eu": 550000, "web-us": 450000})
        self.assertEqual(sent, ["before", "after"])

    def test_commands_of_the_page(self):
        commands = [one for one in commands_of(TOP / "docs/routing.md", "## An HTTPRoute of the Gateway API")
                    if not one.startswith(("testbed/testbed", "export KUBECONFIG"))]
        self.addCleanup(CLUSTER.kubectl, "delete", "namespace", "shop", "--wait=false")
        environment = dict(os.environ, KUBECONFIG=str(KUBECONFIG), PATH=f"{PROGRAM.parent}:{os.environ['PATH']}")
        done = subprocess.run(["bash", "-ec", "\n".join(commands)], cwd=TOP, env=environment, capture_output=True, text=True,
                              check=False, stdin=subprocess.DEVNULL, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("nothing was sent; --apply sends this request", done.stdout)
        self.assertIn("us      web-us   400000   40 %  yes", done.stdout)

    def test_rights_of_the_page_are_enough_and_missing_ones_are_named(self):
        self.create("web", [backend("web-eu", 1), backend("web-us", 1)])
        role = re.search(r"^```yaml\n(.*?)^```", (TOP / "docs/routing.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        config = json.loads(CLUSTER.kubectl("config", "view", "--raw", "--flatten", "-o", "json"))
        for user in config["users"]:
            user["user"]["as"] = "router"
        with tempfile.TemporaryDirectory() as folder:
            kubeconfig = pathlib.Path(folder) / "kubeconfig"
            kubeconfig.write_text(json.dumps(config), encoding="utf-8")
            words = ("set", "web", *REGIONS, "--to", "eu=55,us=45", "--apply", "--kubeconfig", str(kubeconfig))
            self.refuse(*words, says='resources: ["httproutes"], verbs: ["get"]')
            CLUSTER.kubectl("apply", "-f", "-", input=role.group(1))
            CLUSTER.kubectl("create", "clusterrolebinding", "rudderfish-route", "--clusterrole=rudderfish-route", "--user=router")
            self.addCleanup(CLUSTER.kubectl, "delete", "clusterrolebinding,clusterrole", "rudderfish-route")
            time.sleep(1)  # Until the API server goes by the new binding.
            self.succeed(*words)
        self.assertEqual(self.weights("web"), {"web-eu": 550000, "web-us": 450000})

    def test_objects_of_other_projects(self):
        """What is set is what stands, in 100ths, 255ths and as text; and where an object shows no health, --healthy says it."""
        CLUSTER.kubectl("apply", "-f", str(TOP / "tests/data/split-objects/crds.yaml"))
        CLUSTER.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        istio, dns, karmada = "networking.istio.io/v1", "externaldns.k8s.io/v1alpha1", "policy.karmada.io/v1alpha1"

        def record(name, weight):
            return {"dnsName": "web.example", "recordType": "A", "setIdentifier": name,
                    "providerSpecific": [{"name": "aws/weight", "value": str(weight)}]}

        def cluster(name, weight):
            return {"targetCluster": {"clusterNames": [name]}, "weight": weight}

        specs = {
            "virtualservice": (istio, "VirtualService", {"hosts": ["shop"], "http": [{"route": [
                {"destination": {"host": "web-eu"}, "weight": 50}, {"destination": {"host": "web-us"}, "weight": 50}]}]}),
            "destinationrule": (istio, "DestinationRule", {"host": "shop", "trafficPolicy": {"loadBalancer": {"localityLbSetting": {
                "distribute": [{"from": "eu/*", "to": {"web-eu": 50, "web-us": 50}}]}}}}),
            "dnsendpoint": (dns, "DNSEndpoint", {"endpoints": [record("web-eu", 128), record("web-us", 127)]}),
            "propagationpolicy": (karmada, "PropagationPolicy", {"placement": {"replicaScheduling": {
                "weightPreference": {"staticWeightList": [cluster("web-eu", 1), cluster("web-us", 1)]}}}})}
        for option, (version, kind, spec) in specs.items():
            with self.subTest(option):
                self.addCleanup(CLUSTER.tried, "kubectl", "--", "delete", option, "web")
                CLUSTER.kubectl("create", "-f", "-", input=json.dumps(
                    {"apiVersion": version, "kind": kind, "metadata": {"name": "web", "namespace": "default"}, "spec": spec}))
                words = [str(PROGRAM), "route", "set", f"--{option}", "default/web", *REGIONS, "--to", "eu=60,us=40", "-o", "json",
                         "--kubeconfig", str(KUBECONFIG)]
                run = lambda *more: subprocess.run([*words, *more], capture_output=True, text=True, check=False, timeout=60,
                                                   stdin=subprocess.DEVNULL)
                before = CLUSTER.get(option, "web")
                if option != "virtualservice":
                    refused = run("--apply")
                    self.assertEqual(refused.returncode, 1, refused.stdout + refused.stderr)
                    self.assertIn("no region is healthy", refused.stdout)
                self.assertEqual(run("--healthy", "eu,us").returncode, 0)
                self.assertEqual(CLUSTER.get(option, "web"), before)
                done = run("--healthy", "eu,us", "--apply")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                total = 255 if option == "dnsendpoint" else 100
                stands = {one["name"]: one["weight"] for one in json.loads(done.stdout)["after"]["backends"]}
                self.assertEqual(stands, {"web-eu": total * 60 // 100, "web-us": total * 40 // 100})
                after = CLUSTER.get(option, "web")
                self.assertNotEqual(after["spec"], before["spec"])
                if option == "dnsendpoint":
                    self.assertEqual(after["spec"]["endpoints"][0]["providerSpecific"][0]["value"], "153")

    def test_scores_of_managed_clusters(self):
        """One object for each cluster; what else their status holds stays, and a cluster that is not available gets nothing."""
        CLUSTER.kubectl("apply", "-f", str(TOP / "tests/data/split-objects/crds.yaml"))
        CLUSTER.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        group = "cluster.open-cluster-management.io"

        def status(kind, name, *words, **what):
            CLUSTER.kubectl("patch", kind, name, *words, "--subresource=status", "--type=merge", "-p", json.dumps({"status": what}))

        def available(name, said):
            status("managedcluster", name, conditions=[{"type": "ManagedClusterConditionAvailable", "status": said}])

        for name in ("web-eu", "web-us"):
            self.addCleanup(CLUSTER.tried, "kubectl", "--", "delete", "namespace,managedcluster", name, "--wait=false")
            CLUSTER.kubectl("create", "namespace", name)
            CLUSTER.kubectl("create", "-f", "-", input=json.dumps(
                {"apiVersion": f"{group}/v1", "kind": "ManagedCluster", "metadata": {"name": name}, "spec": {}}))
            available(name, "True")
            CLUSTER.kubectl("create", "-f", "-", input=json.dumps(
                {"apiVersion": f"{group}/v1alpha1", "kind": "AddOnPlacementScore", "metadata": {"name": "web", "namespace": name}}))
        status("addonplacementscore", "web", "-n", "web-eu", validUntil="2030-01-01T00:00:00Z", scores=[{"name": "cpu", "value": -7}])

        def run(verb, *more):
            done = subprocess.run([str(PROGRAM), "route", verb, "--placementscores", "web", *REGIONS, "--kubeconfig", str(KUBECONFIG),
                                   *more], capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return done.stdout

        def scores(name):
            found = CLUSTER.get("addonplacementscore", "web", "-n", name)
            return found["status"], {one["name"]: one["value"] for one in found["status"].get("scores", [])}

        planned = run("set", "--to", "eu=60,us=40")
        self.assertIn(f"PATCH /apis/{group}/v1alpha1/namespaces/web-eu/addonplacementscores/web/status", planned)
        self.assertEqual(scores("web-eu")[1], {"cpu": -7}, "nothing was sent")
        run("set", "--to", "eu=60,us=40", "--apply")
        held, values = scores("web-eu")
        self.assertEqual((held["validUntil"], values), ("2030-01-01T00:00:00Z", {"cpu": -7, "share": 60}))
        self.assertEqual(scores("web-us")[1], {"share": 40})
        available("web-us", "Unknown")
        run("set", "--to", "eu=60,us=40", "--apply")
        self.assertEqual((scores("web-eu")[1]["share"], scores("web-us")[1]["share"]), (100, 0))
        self.assertIn("its ManagedCluster is not available", run("show"))

    def test_run_decides_about_an_httproute(self):
        """Nothing changes in shadow, an Event says what would in advise, and in enforce the weights follow in steps."""
        self.create("web", [backend("web-eu", 9), backend("web-us", 1)])
        before = CLUSTER.get("httproute", "web")
        with contextlib.ExitStack() as stack:
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            port = free_port()
            (folder / "prometheus.yml").write_text("{}\n", encoding="utf-8")
            self.background(stack, ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                                    f"--web.listen-address=127.0.0.1:{port}"])
            both = 'label_replace(vector({}), "region", "eu", "", "") or label_replace(vector({}), "region", "us", "", "")'
            config = {"rudderfish": "config/v1", "cluster": {"kubeconfig": str(KUBECONFIG)},
                      "decisions": {"routing": {
                          "regions": str(TOP / "examples/routing/regions.yaml"), "policy": "lp:foreign=0,moving=0",
                          "interval": "1s", "settle": "1s", "budgets": {"step": 20, "signals_max_age": "20s"},
                          "routes": [{"name": "web", "origin": "eu", "httproute": "default/web",
                                      "backends": {"eu": "web-eu", "us": "web-us"}}]}},
                      "signals": {"prometheus": [f"http://127.0.0.1:{port}"], "period": "500ms", "queries": {
                          "demand_per_s": {"per": "region", "query": both.format(58, 0)},
                          "ready_pods": {"per": "region", "query": both.format(3, 6)},
                          "latency_s": {"per": "region", "query": both.format(0.1, 0.1)}}},
                      "journal": {"path": str(folder / "journal.db")}}
            (folder / "rudderfish.yaml").write_text(json.dumps(config), encoding="utf-8")
            log = stack.enter_context(open(folder / "log", "wb"))
            process = self.background(stack, [str(PROGRAM), "run", "--config", str(folder / "rudderfish.yaml")], stderr=log)

            def ask(*words):
                return subprocess.run([str(PROGRAM), *words], capture_output=True, text=True, check=False, timeout=60, cwd=folder,
                                      stdin=subprocess.DEVNULL).stdout

            def wait_for(holds, what):
                deadline = time.monotonic() + 40
                while not holds():
                    if time.monotonic() > deadline:
                        self.fail(f"{what}: {(folder / 'log').read_text(encoding='utf-8')}{ask('explain', 'route/web')}")
                    time.sleep(0.2)

            wait_for(lambda: "route web would be set to" in ask("explain", "route/web"), "shadow")
            self.assertEqual(CLUSTER.get("httproute", "web"), before)
            ask("promote", "routing", "--to", "advise", "--force")
            wait_for(lambda: any(event["reason"] == "WouldRoute" and event["regarding"]["name"] == "web"
                                 for event in CLUSTER.get("events.events.k8s.io")["items"]), "an Event advises")
            self.assertEqual(CLUSTER.get("httproute", "web")["spec"], before["spec"])
            ask("promote", "routing", "--to", "enforce", "--force")
            wait_for(lambda: self.weights("web")["web-us"] >= 290000, "weights follow")
            done = [one for one in json.loads(ask("decisions", "-o", "json"))["decisions"] if one["fate"] == "done"]
            self.assertEqual(done[0]["chosen_node"], "eu 70, us 30")
            self.assertIn("PATCH /apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes/web", done[0]["request"])
            # A region that dies gets nothing.
            CLUSTER.apply(slice_of("web-us", False))
            wait_for(lambda: self.weights("web") == {"web-eu": 1000000, "web-us": 0}, "it is drained")
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=20), 0)

    @staticmethod
    def background(stack, command, **options):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=options.pop("stderr", subprocess.DEVNULL))
        stack.callback(process.wait)
        stack.callback(process.kill)
        return process


if __name__ == "__main__":
    main(PROGRAM)
