#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rudderfish vms` against a real Keystone, Placement and Nova: the walk of docs/openstack.md, what is refused, and 100 VMs that are made,
moved, drained and deleted while one request in ten goes wrong.

Needs root and the packages of `./setup --openstack`; a run takes six minutes. RUDDERFISH names the program.
"""
import collections
import contextlib
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
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

TOP = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = pathlib.Path(os.environ.get("RUDDERFISH", TOP / "build/release/rudderfish")).resolve()
sys.path.insert(0, str(TOP / "testbed"))

from bed import openstack  # noqa: E402
from live_support import commands_of  # noqa: E402

PAGE = TOP / "docs/openstack.md"
NAME = f"test-{os.getpid()}"  # Beside others that somebody has.
HOME = openstack.TOP / NAME
FAULTS, VMS = 0.1, 100
LIKE = ["--fleet", "shop", "--flavor", "tiny", "--image", "empty", "--network", "none", "--zone", "eu"]

HAPROXY = """\
global
  stats socket {folder}/admin.sock level admin
defaults
  mode http
  timeout client 10s
  timeout connect 1s
  timeout server 10s
backend web
  server eu 127.0.0.1:9 weight 128
  server us 127.0.0.1:9 weight 128
"""
CAPACITY = """\
rudderfish: config/v1
decisions:
  routing:
    mode: {mode}
    regions: regions.yaml
    policy: lp:down=0s,foreign=0,moving=0
    interval: 2s
    settle: 2s
    budgets: {{signals_max_age: 10s}}
    capacity:
      eu: {{clouds: {clouds}, cloud: {cloud}, fleet: shop-eu, flavor: tiny, image: empty, network: none, zone: eu, vms_max: 8}}
      us: {{clouds: {clouds}, cloud: {cloud}, fleet: shop-us, flavor: tiny, image: empty, network: none, zone: us, vms_max: 30}}
    routes: [{{name: web, origin: eu, haproxy: {folder}/admin.sock, backend: web}}]
signals:
  prometheus: ['http://127.0.0.1:{prometheus}']
  period: 1s
  queries:
    demand_per_s:
      per: region
      query: >-
        label_replace(vector(20) + 180 * (time() > bool {rises}) - 180 * (time() > bool {falls}), "region", "eu", "", "")
        or label_replace(vector(1), "region", "us", "", "")
journal: {{path: {folder}/journal.db}}
server: {{socket: {folder}/control.sock}}
"""


class Proxy:
    """Before one server: forwards, but for a share of requests. Rewrites the catalog, so that all servers are reached by theirs."""
    KINDS = ("refused", "lost before", "lost after", "failed after", "cut short", "unauthorized")

    def __init__(self, target, share, seed, rewrites, kinds):
        self.kinds = kinds
        self.share, self.random, self.counts = share, random.Random(seed), collections.Counter()
        self.lock = threading.Lock()
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                kind = proxy.draw()
                if kind == "refused":
                    return self.answer(503, {}, b'{"error": {"message": "try again"}}')
                if kind == "unauthorized":
                    return self.answer(401, {}, b'{"error": {"message": "not valid any more"}}')
                if kind == "lost before":
                    return self.hang_up()
                headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection", "accept-encoding")}
                request = urllib.request.Request(target + self.path, method=self.command, headers=headers, data=body or None)
                try:
                    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as reply:
                        status, found, text = reply.status, dict(reply.headers), reply.read()
                except urllib.error.HTTPError as error:
                    status, found, text = error.code, dict(error.headers), error.read()
                for old, new in rewrites.items():
                    text = text.replace(old.encode(), new.encode())
                if kind == "lost after":
                    return self.hang_up()
                if kind == "failed after":
                    return self.answer(500, {}, b'{"computeFault": {"message": "an injected fault"}}')
                if kind == "cut short" and text:
                    self.answer(status, found, text, cut=len(text) // 2)
                    return self.hang_up()
                return self.answer(status, found, text)

            do_GET = do_POST = do_PUT = do_DELETE = handle_any

            def answer(self, status, headers, text, cut=None):
                self.send_response(status)
                for name, value in headers.items():
                    if name.lower() in ("x-subject-token", "x-openstack-request-id", "content-type", "location"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(text[:cut])

            def hang_up(self):
                self.close_connection = True
                with contextlib.suppress(OSError):
                    self.connection.shutdown(2)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def draw(self):
        with self.lock:
            self.counts["requests"] += 1
            if self.random.random() >= self.share:
                return ""
            kind = self.random.choice(self.kinds)
            self.counts[kind] += 1
            return kind

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class OpenStackTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(cls.down)
        cls.down()
        done = subprocess.run([str(TOP / "testbed/openstack"), "up", "--name", NAME, "--zones", "eu:3,us:1"], capture_output=True, text=True,
                              check=False, timeout=400)
        if done.returncode:
            raise AssertionError(done.stdout + done.stderr)
        cls.clouds = done.stdout.strip()
        cls.plan = openstack.Plan(**json.loads((HOME / "plan.json").read_text(encoding="utf-8")))
        cls.admin = openstack.Session(cls.plan)

    @staticmethod
    def down():
        subprocess.run([str(TOP / "testbed/openstack"), "down", "--name", NAME], capture_output=True, check=True, timeout=100)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def vms(self, *words, clouds=None, status=0, timeout=600, **options):
        environment = {**os.environ, "OS_CLIENT_CONFIG_FILE": str(clouds or self.clouds), **options}
        environment.pop("OS_CLOUD", None)
        done = subprocess.run([str(PROGRAM), "vms", *map(str, words)], capture_output=True, text=True, check=False,
                              timeout=timeout, env=environment)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def refused(self, text, *words, status=2, **options):
        done = self.vms(*words, status=status, **options)
        self.assertIn(text, done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertNotIn(self.plan.password, done.stdout + done.stderr)

    def servers(self):
        """All of the project, past any proxy, over all pages."""
        found, marker = [], ""
        while True:
            page = self.admin.get("nova", "/v2.1/servers/detail" + (f"?marker={marker}" if marker else ""))["servers"]
            if not page:
                return found
            found += page
            marker = page[-1]["id"]

    def slots(self, fleet="shop"):
        """How many VMs each slot has, and on which hosts they are."""
        own = [one for one in self.servers() if one["metadata"].get("rudderfish_fleet") == fleet]
        return (collections.Counter(int(one["metadata"]["rudderfish_slot"]) for one in own),
                collections.Counter(one["OS-EXT-SRV-ATTR:host"] for one in own), {one["status"] for one in own})

    def nova_waits(self):
        """Until nothing is being done with any VM: an answer that was lost may be carried out after we left."""
        for _ in range(120):
            if not [one for one in self.servers() if one["OS-EXT-STS:task_state"] or one["status"] == "BUILD"]:
                return
            time.sleep(0.5)
        self.fail("Nova does not come to rest")

    def write_clouds(self, **auth):
        kind = "v3applicationcredential" if "application_credential_id" in auth else "password"
        path = self.folder / "clouds.yaml"
        path.write_text(json.dumps({"clouds": {"test": {"auth_type": kind, "region_name": auth.pop("region", openstack.REGION),
                                                        "auth": {"auth_url": self.plan.url("keystone", "/v3"), **auth}}}}))
        return path

    def member(self, name):
        """A user who is no administrator."""
        role = next(one["id"] for one in self.admin.get("keystone", "/v3/roles")["roles"] if one["name"] == "member")
        project = self.admin.post("keystone", "/v3/projects", {"project": {"name": name, "domain_id": "default"}})["project"]["id"]
        user = self.admin.post("keystone", "/v3/users", {"user": {"name": name, "password": "of-" + name, "domain_id": "default"}})
        self.admin.call("PUT", "keystone", f"/v3/projects/{project}/users/{user['user']['id']}/roles/{role}")
        return project, {"username": name, "password": "of-" + name, "project_name": name}

    def test_the_walk_of_the_page(self):
        for command in commands_of(PAGE, "## Walk"):
            words = command.split()
            if words[0] in ("testbed/openstack", "export"):
                continue
            done = self.vms(*words[2:])
            self.assertTrue(done.stdout, command)
        self.assertEqual(self.slots(), ({}, {}, set()))

    def test_one_request_in_ten_goes_wrong_and_no_vm_is_lost_or_doubled(self):
        rewrites = {}
        proxies = {}
        for seed, server in enumerate(("nova", "placement", "images", "keystone")):
            # Who is told that a password is wrong does not try it again.
            kinds = [kind for kind in Proxy.KINDS if (server, kind) != ("keystone", "unauthorized")]
            proxies[server] = Proxy(self.plan.url(server), FAULTS, seed, rewrites, kinds)
            self.addCleanup(proxies[server].close)
        rewrites.update({self.plan.url(server): proxy.url for server, proxy in proxies.items()})
        clouds = self.folder / "clouds.yaml"
        clouds.write_text(pathlib.Path(self.clouds).read_text().replace(self.plan.url("keystone"), proxies["keystone"].url))

        # Killed in the middle, twice, and begun again.
        for after_s in (3, 6):
            process = subprocess.Popen([str(PROGRAM), "vms", "scale", str(VMS), *LIKE, "--apply"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, env={**os.environ, "OS_CLIENT_CONFIG_FILE": str(clouds)})
            time.sleep(after_s)
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.vms("scale", VMS, *LIKE, "--apply", clouds=clouds)
        once = {slot: 1 for slot in range(1, VMS + 1)}
        self.nova_waits()
        self.assertEqual(self.slots()[::2], (once, {"ACTIVE"}))

        full = max(self.slots()[1].items(), key=lambda one: one[1])[0]
        self.vms("drain", full, "--apply", clouds=clouds)
        self.nova_waits()
        slots, hosts, statuses = self.slots()
        self.assertEqual((slots, hosts[full], statuses), (once, 0, {"ACTIVE"}))
        self.vms("resume", full, "--apply", clouds=clouds)
        for name in ("shop-7", "shop-8", "shop-9"):
            self.vms("move", name, "--to", full, *(["--cold"] if name == "shop-9" else []), "--apply", clouds=clouds)
        self.nova_waits()
        slots, hosts, statuses = self.slots()
        self.assertEqual((slots, hosts[full], statuses), (once, 3, {"ACTIVE"}))

        self.vms("scale", 40, *LIKE, "--apply", clouds=clouds)
        self.assertEqual(self.slots()[0], {slot: 1 for slot in range(1, 41)})
        self.vms("scale", 0, *LIKE, "--apply", clouds=clouds)
        self.nova_waits()
        self.assertEqual(self.slots(), ({}, {}, set()))
        counts = sum((proxy.counts for proxy in proxies.values()), collections.Counter())
        print(f"faults: {json.dumps(counts)}")
        for kind in Proxy.KINDS:
            self.assertGreater(counts[kind], 0, kind)

    def test_a_cold_migration_that_a_killed_process_left_is_confirmed(self):
        self.vms("scale", 1, *LIKE, "--apply")
        before = self.servers()[0]
        self.admin.call("POST", "nova", f"/v2.1/servers/{before['id']}/action", {"migrate": None})
        self.until("it is to be confirmed", lambda: self.servers()[0]["status"] == "VERIFY_RESIZE")
        self.assertIn("confirmResize", self.vms("move", "shop-1").stdout)
        self.assertIn("1 moved, 0 given up", self.vms("move", "shop-1", "--apply").stdout)
        after = self.servers()[0]
        self.assertEqual(after["status"], "ACTIVE")
        self.assertNotEqual(after["OS-EXT-SRV-ATTR:host"], before["OS-EXT-SRV-ATTR:host"])
        self.vms("scale", 0, *LIKE, "--apply")

    def test_others_vms_are_left_alone(self):
        flavor = next(one["id"] for one in self.admin.get("nova", "/v2.1/flavors")["flavors"] if one["name"] == "tiny")
        body = {"server": {"name": "shop-1", "imageRef": "11111111-1111-4111-8111-111111111111", "flavorRef": flavor,
                           "networks": "none", "metadata": {"rudderfish_fleet": "others", "rudderfish_slot": "one"}}}
        other = self.admin.post("nova", "/v2.1/servers", body)["server"]["id"]
        self.addCleanup(self.admin.call, "DELETE", "nova", f"/v2.1/servers/{other}")
        self.vms("scale", 2, *LIKE, "--apply")
        self.vms("scale", 0, *LIKE, "--apply")
        self.vms("scale", 0, *["others" if word == "shop" else word for word in LIKE], "--apply")
        self.assertEqual([one["id"] for one in self.servers()], [other])

    def test_a_user_with_an_application_credential_who_is_no_administrator(self):
        project, auth = self.member("dev")
        session = openstack.Session.__new__(openstack.Session)
        session.plan, session.token = self.plan, None
        user = {"name": auth["username"], "domain": {"id": "default"}, "password": auth["password"]}
        with session.open("POST", "keystone", "/v3/auth/tokens", {"auth": {
                "identity": {"methods": ["password"], "password": {"user": user}},
                "scope": {"project": {"id": project}}}}) as response:
            session.token = response.headers["X-Subject-Token"]
            user_id = json.loads(response.read())["token"]["user"]["id"]
        made = session.post("keystone", f"/v3/users/{user_id}/application_credentials",
                            {"application_credential": {"name": "vms"}})["application_credential"]
        clouds = self.write_clouds(application_credential_id=made["id"], application_credential_secret=made["secret"])
        self.assertIn("3 of 3 ready", self.vms("scale", 3, *LIKE, "--apply", clouds=clouds).stdout)
        self.refused("Policy doesn't allow", "hosts", clouds=clouds)
        self.refused("only administrators see and choose hosts", "move", "shop-1", clouds=clouds)
        # A quota ends it with Nova's words, and what is there stays.
        self.admin.call("PUT", "nova", f"/v2.1/os-quota-sets/{project}", {"quota_set": {"instances": 4}})
        self.refused("Quota exceeded", "scale", 6, *LIKE, "--apply", clouds=clouds)
        # Nova counts late, so that one more may have passed.
        self.assertIn(len(json.loads(self.vms("list", "-o", "json", clouds=clouds).stdout)["vms"]), (4, 5))
        self.assertEqual(self.vms("list", "--fleet", "shop").stdout.count("shop-"), 0)  # Of another project.
        self.vms("scale", 0, *LIKE, "--apply", clouds=clouds)
        session.call("DELETE", "keystone", f"/v3/users/{user_id}/application_credentials/{made['id']}")
        self.refused("cannot log in", "list", clouds=clouds)

    def test_no_host_has_room(self):
        big = self.admin.post("nova", "/v2.1/flavors", {"flavor": {"name": "half", "vcpus": 1, "ram": 4096, "disk": 1}})
        self.addCleanup(self.admin.call, "DELETE", "nova", f"/v2.1/flavors/{big['flavor']['id']}")
        like = ["half" if word == "tiny" else word for word in LIKE]
        # By Placement, before anything is asked for: 3 hosts have room for one each, and more by Nova's ratio of memory.
        room = sum(host["room"] for host in json.loads(self.vms("hosts", "--flavor", "half", "-o", "json").stdout)["hosts"]
                   if host["zone"] == "eu")
        self.refused(f"{room} of {room + 2} ready, 2 without room on any host", "scale", room + 2, *like, "--apply")
        self.refused("have no room on another host of zone eu; nothing was changed", "drain", "eu-1", "--apply")
        self.assertNotIn("disabled", self.vms("hosts").stdout)
        self.vms("scale", 0, *like, "--apply")
        # Without Placement's word Nova's scheduler finds out: a VM that fails is deleted and asked for again, later each time.
        _, auth = self.member("dev2")
        huge = self.admin.post("nova", "/v2.1/flavors", {"flavor": {"name": "huge", "vcpus": 1, "ram": 1 << 20, "disk": 1}})
        self.addCleanup(self.admin.call, "DELETE", "nova", f"/v2.1/flavors/{huge['flavor']['id']}")
        clouds = self.write_clouds(**auth)
        self.refused("No valid host was found", "scale", 1, *["huge" if word == "tiny" else word for word in LIKE], "--apply",
                     "--timeout", "12s", clouds=clouds, status=1)
        self.vms("scale", 0, *LIKE, "--apply", clouds=clouds)

    def test_servers_that_are_away_come_back(self):
        bed = str(TOP / "testbed/openstack")
        process = subprocess.Popen([str(PROGRAM), "vms", "scale", "12", *LIKE, "--apply"], stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, "OS_CLIENT_CONFIG_FILE": self.clouds})
        time.sleep(1)
        for server in ("nova-api", "keystone"):
            subprocess.run([bed, "stop", "--name", NAME, server], check=True, timeout=60)
        time.sleep(4)
        for server in ("nova-api", "keystone"):
            subprocess.run([bed, "start", "--name", NAME, server], check=True, timeout=60)
        self.assertIn("12 of 12 ready", process.communicate(timeout=300)[0])
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.slots()[0], {slot: 1 for slot in range(1, 13)})
        self.vms("scale", 0, *LIKE, "--apply")

    def start(self, *command):
        log = open(self.folder / "log", "ab")
        self.addCleanup(log.close)
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def ready(self, zone):
        """VMs of the fleet of a region that run."""
        return sum(one["status"] == "ACTIVE" and not one["OS-EXT-STS:task_state"] for one in self.servers()
                   if one["metadata"].get("rudderfish_fleet") == "shop-" + zone)

    def until(self, what, is_so, within_s=90):
        deadline, log = time.monotonic() + within_s, self.folder / "log"
        while not is_so():
            if time.monotonic() > deadline:
                self.fail(f"{what}; eu has {self.ready('eu')}, us {self.ready('us')}; "
                          f"{log.read_text(errors='replace')[-2000:] if log.exists() else ''}")
            time.sleep(0.5)

    def test_run_has_as_many_vms_as_it_decides_on(self):
        haproxy, prometheus = (shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin") for name in ("haproxy", "prometheus"))
        if not haproxy or not prometheus:
            self.skipTest("needs HAProxy and Prometheus")
        with contextlib.ExitStack() as stack:
            probe = stack.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        (self.folder / "haproxy.cfg").write_text(HAPROXY.format(folder=self.folder))
        (self.folder / "prometheus.yml").write_text("global: {scrape_interval: 1s}\n")
        (self.folder / "regions.yaml").write_text((TOP / "examples/routing/regions.yaml").read_text())
        self.start(haproxy, "-db", "-f", self.folder / "haproxy.cfg")
        self.start(prometheus, f"--config.file={self.folder}/prometheus.yml", f"--web.listen-address=127.0.0.1:{port}",
                   f"--storage.tsdb.path={self.folder}/tsdb")
        rises = falls = 1 << 40  # Told by a reload once it is time.
        config = self.folder / "rudderfish.yaml"

        def write(mode):
            config.write_text(CAPACITY.format(mode=mode, folder=self.folder, prometheus=port, clouds=self.clouds, cloud=NAME, rises=rises,
                                              falls=falls))

        def run(mode):
            write(mode)
            return self.start(PROGRAM, "run", "--config", config)

        process = run("shadow")
        self.until("it decides", lambda: '"wanted_nodes"' in self.status(config) and "null" not in self.status_of(config, "wanted_nodes"))
        self.assertEqual((self.ready("eu"), self.ready("us")), (0, 0))
        process.send_signal(signal.SIGTERM)
        process.wait()
        process = run("enforce")
        self.until("few VMs serve few requests", lambda: 1 <= self.ready("eu") <= 3 and self.ready("us") >= 1)
        # Nova is away just as more are needed, and the process is killed in the middle.
        bed = str(TOP / "testbed/openstack")
        rises = int(time.time())
        write("enforce")
        process.send_signal(signal.SIGHUP)
        subprocess.run([bed, "stop", "--name", NAME, "nova-api"], check=True, timeout=60)
        time.sleep(5)
        subprocess.run([bed, "start", "--name", NAME, "nova-api"], check=True, timeout=60)
        for _ in range(300):
            if openstack.listens(self.plan.ports["nova"]):
                break
            time.sleep(0.2)
        self.until("more are made", lambda: self.ready("eu") >= 4)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process = run("enforce")
        self.until("as many as allowed", lambda: self.ready("eu") == 8 and self.ready("us") >= 2)
        slots = self.slots("shop-eu")[0]
        self.assertEqual(slots, {slot: 1 for slot in range(1, 9)})
        self.until("status shows them", lambda: re.search(r"eu +fleet shop-eu of cloud \S+ +8 +0 +8", subprocess.run(
            [str(PROGRAM), "status", "--config", str(config)], capture_output=True, text=True, check=True).stdout))
        self.until("it is done", lambda: "capacity/eu was set to 8 VMs" in subprocess.run(
            [str(PROGRAM), "explain", "capacity/eu", "--config", str(config)], capture_output=True, text=True, check=True).stdout)
        listed = subprocess.run([str(PROGRAM), "decisions", "--kind", "routing", "--limit", "500", "--config", str(config)],
                                capture_output=True, text=True, check=True).stdout
        self.assertRegex(listed, r"enforce +capacity/eu +0 VMs +2 VMs")
        falls = int(time.time())
        write("enforce")
        process.send_signal(signal.SIGHUP)
        self.until("few again", lambda: self.ready("eu") <= 3)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=30), 0)
        for zone in ("eu", "us"):
            like = [{"shop": "shop-" + zone, "eu": zone}.get(word, word) for word in LIKE]
            self.vms("scale", 0, *like, "--apply")

    def status(self, config):
        return subprocess.run([str(PROGRAM), "status", "--config", str(config), "-o", "json"], capture_output=True, text=True,
                              check=False).stdout

    def status_of(self, config, key):
        return "".join(re.findall(f'"{key}": *([^,]*),?', self.status(config)))

    def test_bad_input_is_one_line(self):
        good = {"username": "admin", "password": self.plan.password, "project_name": "admin"}
        self.refused("cannot log in", "list", clouds=self.write_clouds(**{**good, "password": "wrong"}))
        self.refused("in region `mars`", "list", clouds=self.write_clouds(**good, region="mars"))
        self.refused(f"no cloud `other`; there are {NAME}", "list", "--cloud", "other")
        self.refused("did you mean `tiny`?", "scale", 1, *["tinny" if word == "tiny" else word for word in LIKE])
        self.refused("no image `debian`; there are empty", "scale", 1, *["debian" if word == "empty" else word for word in LIKE])
        self.refused("expected at most 50 lower-case letters", "scale", 1, *["Shop!" if word == "shop" else word for word in LIKE])
        self.refused("expected an integer from 0 to 1000", "scale", "many", *LIKE)
        self.refused("no host `eu-9`; there are eu-1", "drain", "eu-9")
        self.refused("no VM `shop-1`", "move", "shop-1")
        self.refused("availability zone is not available", "scale", 1, *["moon" if word == "eu" else word for word in LIKE],
                     "--apply")
        service = next(one for one in self.admin.get("nova", "/v2.1/os-services?binary=nova-compute")["services"]
                       if one["host"] == "eu-2")
        self.admin.call("PUT", "nova", f"/v2.1/os-services/{service['id']}", {"status": "disabled", "disabled_reason": "disk"})
        self.refused("eu-2 was not disabled by `vms drain`; the reason is `disk`", "resume", "eu-2", "--apply")
        self.admin.call("PUT", "nova", f"/v2.1/os-services/{service['id']}", {"status": "enabled"})
        self.assertEqual(self.slots(), ({}, {}, set()))


def why_not():
    if os.geteuid() != 0:
        return "OpenStack's servers need root"
    try:
        openstack.require_packages()
    except openstack.Refusal as refusal:
        return str(refusal)
    return ""


if __name__ == "__main__":
    reason = why_not()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
