#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The testbed as its users run it: a cluster of three real nodes in two layers, a second one of hollow nodes beside it,
the network between them, and the deaths of all kinds of things; and afterwards a machine as it was.

Needs root, what ./setup --testbed installs, and the servers that `testbed/testbed build` builds; where one is missing
it says which and ends with status 77.
"""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from live_support import TESTBED, Cluster, main, run

os.environ["PATH"] += ":/usr/sbin:/sbin"  # Of ip and nft.

REAL, HOLLOW, BROKEN = "test-real", "test-hollow", "test-broken"
STATE = pathlib.Path("/var/lib/rudderfish-testbed")
CGROUPS = pathlib.Path("/sys/fs/cgroup")
DELAYS = """
cloud -> edge   delay 20ms
edge  -> cloud  delay 10ms
"""
WEB = {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
    "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": {
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "topologySpreadConstraints": [{
                "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}}}],
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "web", "image": "localhost/busybox:1",
                "command": ["sh", "-c", "mkdir -p /tmp/www; hostname >/tmp/www/index.html; echo serving;"
                                        " exec httpd -f -p 8080 -h /tmp/www"],
                "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1}}]}}}}
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
           "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}}
GHOST = {"apiVersion": "v1", "kind": "Pod", "metadata": {
             "name": "ghost", "annotations": {"kwok.x-k8s.io/usage-memory": "64Mi"}},
         "spec": {"nodeName": "hollow-7", "containers": [{"name": "ghost", "image": "none"}]}}


def machine():
    """What a testbed could leave behind, by kind. Other work on the machine goes on, so that only what is ours by name
    counts where names tell."""
    words = ("rudderfish-testbed", "run/testbed", "containerd", "kubelet", "kube-", "cni", "etcd", "kwok")

    def ours(lines):
        return {line for line in lines if any(word in line for word in words)}

    def output(*command):
        return set(subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines())

    def processes():
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if "run/testbed" in command or "rudderfish-testbed" in (folder / "cgroup").read_text():
                    yield f"{folder.name} {command}"

    def files():
        yield from (os.path.join("/tmp", name) for name in os.listdir("/tmp"))  # Below it others build and test.
        for top in ("/etc", "/opt", "/run", "/usr/libexec", "/var/lib", "/var/log", "/var/tmp"):
            for folder, folders, names in os.walk(top):
                if folder.count("/") > 4:
                    folders.clear()
                yield from (os.path.join(folder, name) for name in (*folders, *names))

    sysctls = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
               "kernel/keys/root_maxkeys", "net/ipv4/ip_forward", "fs/inotify/max_user_instances")
    return {
        "processes": set(processes()),
        "mounts": set(pathlib.Path("/proc/self/mounts").read_text().splitlines()),
        "control groups": ours(folder for folder, _, _ in os.walk(CGROUPS)),
        "links": output("ip", "-o", "link"),
        "addresses": output("ip", "-o", "address"),
        "routes": output("ip", "route", "show", "table", "all"),
        "rules": output("nft", "list", "ruleset"),
        "files": ours(files()),
        "settings": {f"{name} {pathlib.Path('/proc/sys', name).read_text().strip()}" for name in sysctls},
    }


def network_namespaces(pids="[0-9]*"):
    found = set()
    for link in pathlib.Path("/proc").glob(f"{pids}/ns/net"):
        with contextlib.suppress(OSError):
            found.add(os.readlink(link))
    return found


class Instance(Cluster):
    """With what runs in it."""

    def component(self, name):
        return next(c for c in self.status()["components"] if c["name"] == name)

    def processes(self):
        groups = (CGROUPS / "pids" if (CGROUPS / "pids").is_dir() else CGROUPS) / "rudderfish-testbed" / self.name
        return [int(pid) for file in groups.rglob("cgroup.procs") for pid in file.read_text().split()]

    def process(self, *parts):
        """The number of the instance's process whose command has all these parts."""
        for pid in self.processes():
            with contextlib.suppress(OSError):
                command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                # `unshare` has the supervisor's name among its arguments.
                if all(part in command for part in parts) and not command.startswith(("unshare", "nsenter")):
                    return pid
        raise AssertionError(f"no process {parts} in {self.name}")

    def kill(self, *parts):
        os.kill(self.process(*parts), signal.SIGKILL)


def eventually(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.1)


class Testbed(unittest.TestCase):
    """Steps of one story, in the order of their names: starting a cluster for each would take minutes."""

    @classmethod
    def setUpClass(cls):
        for name in (REAL, HOLLOW, BROKEN):  # Of a run that was interrupted.
            run("down", "--name", name)
        cls.before = machine()
        cls.spaces = set()  # Network namespaces of both clusters.
        cls.real, cls.hollow, cls.broken = Instance(REAL), Instance(HOLLOW), Instance(BROKEN)
        cls.folder = tempfile.TemporaryDirectory()
        cls.delays = pathlib.Path(cls.folder.name) / "delays"
        cls.delays.write_text(DELAYS)

    @classmethod
    def tearDownClass(cls):
        for name in (REAL, HOLLOW, BROKEN):
            run("down", "--name", name)
        cls.folder.cleanup()

    def pods(self):
        """Name of node -> (name, address) of its web pod."""
        return {pod["spec"]["nodeName"]: (pod["metadata"]["name"], pod["status"]["podIP"])
                for pod in self.real.get("pods", "-l", "app=web")["items"]}

    def round_trip_ms(self, source, target):
        """The fastest of several, which load does not change."""
        pods = self.pods()
        out = self.real.kubectl("exec", pods[source][0], "--", "ping", "-q", "-c", "5", "-i", "0.1", pods[target][1])
        return float(out.split("min/avg/max = ")[1].split("/")[0])

    def reaches(self, source, target):
        pods = self.pods()
        done = run("kubectl", "--name", REAL, "--", "exec", pods[source][0], "--", "ping", "-q", "-c", "1", "-W", "1",
                   pods[target][1])
        return done.returncode == 0

    def fetch_s(self, target, source, size):
        """The seconds that so many bytes take from a pod on one node to a pod on another."""
        pods = self.pods()
        self.real.kubectl("exec", pods[source][0], "--", "dd", "if=/dev/zero", "of=/tmp/www/big", "bs=1", "count=0",
                          f"seek={size}")
        began = time.monotonic()
        self.real.kubectl("exec", pods[target][0], "--", "wget", "-q", "-O", "/dev/null",
                          f"http://{pods[source][1]}:8080/big")
        return time.monotonic() - began

    def test_10_up_prints_the_kubeconfig_of_a_cluster_whose_nodes_are_ready(self):
        out = self.real.testbed("up", "--layers", "cloud:1,edge:2", "--delays", str(self.delays))
        self.assertEqual(out, f"{STATE / REAL / 'kubeconfig'}\n")
        self.assertEqual((STATE / REAL / "kubeconfig").stat().st_mode & 0o777, 0o600)
        nodes = self.real.get("nodes")["items"]
        self.assertEqual({n["metadata"]["name"]: n["metadata"]["labels"]["rudderfish.io/layer"] for n in nodes},
                         {"cloud-1": "cloud", "edge-1": "edge", "edge-2": "edge"})
        for n in nodes:
            self.assertIn(("Ready", "True"), [(c["type"], c["status"]) for c in n["status"]["conditions"]])
        self.assertTrue(all(c["state"] == "running" for c in self.real.status()["components"]))

    def test_11_a_second_up_of_the_same_name_is_refused(self):
        done = run("up", "--name", REAL)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("is there already", done.stderr)

    def test_20_pods_run_and_kubectl_reads_and_enters_them(self):
        self.real.apply(WEB, SERVICE)
        self.real.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
        pods = self.pods()
        self.assertEqual(set(pods), {"cloud-1", "edge-1", "edge-2"})
        name = pods["edge-1"][0]
        self.assertEqual(self.real.kubectl("logs", name), "serving\n")
        self.assertEqual(self.real.kubectl("exec", name, "--", "hostname"), f"{name}\n")

    def test_21_a_service_answers_with_all_its_pods_on_nodes_and_beside_the_control_plane(self):
        address = self.real.get("service", "web")["spec"]["clusterIP"]
        request = f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | busybox nc -w 5 {address} 80 | tail -n 1"
        names = {name for name, _ in self.pods().values()}
        for where in ("edge-1", "control-plane"):
            def all_answer(node=where):
                said = self.real.testbed("exec", node, "--", "sh", "-c", f"for i in $(seq 30); do {request}; done").split()
                return len(said) == 30 and set(said) == names
            eventually(all_answer, f"all pods answer on {where}", 20)  # kube-proxy hears of one that is ready later than kubectl.

    def test_22_pods_reach_the_api_server_by_its_service(self):
        name = self.pods()["edge-2"][0]
        done = self.real.kubectl("exec", name, "--", "sh", "-c",
                                 "nc -w 5 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT </dev/null && echo open")
        self.assertEqual(done, "open\n")

    def test_23_an_image_of_a_static_binary_is_made_loaded_and_run(self):
        archive = str(pathlib.Path(self.folder.name) / "tool.tar")
        done = run("image", "localhost/tool:1", "/bin/busybox", "/etc/hostname=/etc/greeting", "--user", "1000", "-o",
                   archive)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.real.testbed("load", archive)
        self.real.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tool"}, "spec": {
            "restartPolicy": "Never", "containers": [{
                "name": "tool", "image": "localhost/tool:1", "args": ["id", "-u"],
                "securityContext": {"runAsNonRoot": True, "readOnlyRootFilesystem": True}}]}})
        self.real.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/tool", "--timeout=60s")
        self.assertEqual(self.real.kubectl("logs", "tool"), "1000\n")

    def test_30_layers_are_as_far_apart_as_the_table_says(self):
        self.assertTrue(30 <= self.round_trip_ms("cloud-1", "edge-1") < 40)
        self.assertTrue(30 <= self.round_trip_ms("edge-2", "cloud-1") < 40)
        self.assertLess(self.round_trip_ms("edge-1", "edge-2"), 10)

    def test_31_the_network_changes_while_pods_talk(self):
        self.real.testbed("network", "-", input="cloud <-> edge cut\nedge-1 -> edge-2 delay 50ms\n")
        self.assertFalse(self.reaches("cloud-1", "edge-1"))
        self.assertTrue(50 <= self.round_trip_ms("edge-1", "edge-2") < 60)
        self.real.testbed("network", "-", input="edge-1 <-> edge-2 loss 100%\n")
        self.assertFalse(self.reaches("edge-1", "edge-2"))
        self.real.testbed("network", "-", input="edge-1 -> edge-2 rate 1mbit\n")
        self.assertGreater(self.fetch_s("edge-2", "edge-1", 250_000), 1.5)
        self.real.testbed("network", str(self.delays))
        self.assertTrue(30 <= self.round_trip_ms("cloud-1", "edge-1") < 40)
        self.assertEqual(self.real.testbed("network"), DELAYS)

    def test_32_a_table_with_an_error_is_refused_by_its_line(self):
        for text, reason in (("cloud <-> moon delay 1ms", "no layer or node moon"), ("a b", "FROM -> TO"),
                             ("cloud -> edge delay 10", "a number and a unit"), ("cloud -> edge loss 101%", "at most"),
                             ("cloud -> edge speed 1ms", "none of delay"), ("cloud -> edge delay", "wants a value")):
            done = run("network", "--name", REAL, "-", input=f"# first line\n{text}\n")
            self.assertEqual(done.returncode, 2, text)
            self.assertIn("-:2: ", done.stderr)
            self.assertIn(reason, done.stderr)
        self.assertTrue(30 <= self.round_trip_ms("cloud-1", "edge-1") < 40)

    def test_40_a_second_cluster_of_hollow_nodes_lives_beside_it(self):
        self.hollow.testbed("up", "--nodes", "0", "--hollow", "60")
        self.assertLessEqual({HOLLOW, REAL}, set(run("list").stdout.split()))
        self.assertEqual(len(self.hollow.get("nodes")["items"]), 60)
        self.assertEqual(len(self.real.get("nodes")["items"]), 3)
        self.hollow.apply(GHOST)
        self.hollow.kubectl("wait", "--for=condition=Ready", "pod/ghost", "--timeout=60s")

        def usage():
            return self.hollow.testbed("exec", "control-plane", "--", "busybox", "wget", "-q", "-O", "-",
                                       "http://198.18.0.1:10247/metrics/nodes/hollow-7/metrics/resource")

        for cluster in (self.real, self.hollow):
            for pid in cluster.processes():
                self.spaces.update(network_namespaces(pid) - network_namespaces("self"))
        self.assertGreaterEqual(len(self.spaces), 2 + 3 + 3)  # Control planes, nodes, pods that serve.

        eventually(lambda: 'pod_memory_working_set_bytes{namespace="default",pod="ghost"} 6.7108864e+07' in usage(),
                   "the usage the pod's annotation asks for")

    def test_50_servers_that_are_killed_come_back(self):
        for parts in (("/native/wan",), ("/native/gate",), ("/kube-apiserver",), ("/etcd",),
                      ("/kubelet", "nodes/edge-1/"), ("/kube-proxy", "nodes/edge-2/"),
                      ("containerd --config", "nodes/cloud-1/")):
            self.real.kill(*parts)
        names = ("wan", "gate", "kube-apiserver", "etcd", "kubelet@edge-1", "kube-proxy@edge-2", "containerd@cloud-1")
        eventually(lambda: all(self.real.component(name)["restarts"] >= 1
                               and self.real.component(name)["state"] == "running" for name in names), "restarts")
        self.assertIn("SIGKILL", self.real.component("wan")["lastEnd"])
        eventually(lambda: run("kubectl", "--name", REAL, "--", "get", "--raw", "/readyz").returncode == 0, "readiness")
        eventually(lambda: all(n["ready"] for n in self.real.status()["nodes"]), "nodes")
        self.assertTrue(30 <= self.round_trip_ms("cloud-1", "edge-1") < 40)

    def test_51_a_server_that_is_stopped_stays_dead_until_it_is_started(self):
        self.real.testbed("stop", "kube-scheduler")
        self.assertEqual(self.real.component("kube-scheduler")["state"], "stopped")
        self.real.testbed("start", "kube-scheduler")
        self.assertEqual(self.real.component("kube-scheduler")["state"], "running")
        done = run("stop", "--name", REAL, "kube-nothing")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no component kube-nothing", done.stderr)

    def test_52_an_instance_whose_supervisor_is_killed_is_dead_and_can_be_removed(self):
        self.hollow.kill("testbed supervise")
        eventually(lambda: "is dead" in run("status", "--name", HOLLOW).stderr, "death")
        self.assertEqual(run("status", "--name", HOLLOW).returncode, 1)
        self.assertEqual(run("up", "--name", HOLLOW, "--nodes", "0").returncode, 1)
        self.hollow.testbed("down")
        self.assertEqual({REAL, HOLLOW} & set(run("list").stdout.split()), {REAL})

    def test_60_up_fails_at_once_when_a_server_dies_and_leaves_nothing(self):
        up = self.begin_up()
        eventually(lambda: (STATE / BROKEN / "logs" / "kube-apiserver.log").exists(), "an API server")
        self.broken.kill("/etcd")
        out, errors = up.communicate(timeout=30)
        self.assertEqual((up.returncode, out), (1, ""))
        self.assertIn("testbed: etcd was killed by SIGKILL: ", errors)
        self.assertNotIn(BROKEN, run("list").stdout)

    def test_61_up_that_is_killed_half_way_leaves_what_down_removes(self):
        up = self.begin_up()
        eventually(lambda: (STATE / BROKEN / "nodes" / "node-1").exists(), "a node")
        up.kill()
        up.communicate()
        self.assertIn(BROKEN, run("list").stdout)
        self.broken.testbed("down")
        self.assertNotIn(BROKEN, run("list").stdout)

    def test_62_up_that_is_interrupted_removes_its_own(self):
        up = self.begin_up()
        eventually(lambda: (STATE / BROKEN / "logs" / "etcd.log").exists(), "a server")
        up.send_signal(signal.SIGINT)
        up.communicate(timeout=30)
        self.assertNotEqual(up.returncode, 0)
        self.assertNotIn(BROKEN, run("list").stdout)

    def begin_up(self):
        return subprocess.Popen([str(TESTBED), "up", "--name", BROKEN, "--nodes", "1"], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_70_wrong_use_is_told_in_one_line(self):
        for words, status, reason in (
                (("status", "--name", "nobody"), 1, "no instance nobody"),
                (("exec", "--name", REAL, "moon", "--", "true"), 1, "no node moon"),
                (("exec", "--name", REAL, "edge-1"), 2, "no command"),
                (("logs", "--name", REAL, "nothing"), 1, "no log of nothing"),
                (("up", "--name", "Big"), 2, "--name Big"),
                (("up", "--version", "v1.2.3"), 2, "not pinned"),
                (("up", "--nodes", "-1"), 2, "--nodes -1"),
                (("up", "--layers", "cloud"), 2, "--layers cloud"),
                (("up", "--delays", "/nothing"), 2, "cannot read /nothing"),
                (("up", "--audit", "/nothing"), 2, "cannot read /nothing"),
                (("scheduler", "--name", REAL, "--serves", "a", "/nothing"), 2, "cannot read /nothing"),
                (("scheduler", "--name", REAL, "--serves", "a b", "/nothing"), 2, "--serves a b")):
            done = run(*words)
            self.assertEqual((done.returncode, done.stdout), (status, ""), words)
            self.assertIn(reason, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertEqual(self.real.testbed("exec", "edge-1", "--", "hostname"), "edge-1\n")

    def test_90_down_leaves_the_machine_as_it_was_and_can_be_repeated(self):
        for name in (REAL, REAL, HOLLOW, BROKEN):
            Cluster(name).testbed("down")
        self.assertFalse({REAL, HOLLOW, BROKEN} & set(run("list").stdout.split()))
        # The kernel takes a network namespace apart a moment after its last process.
        for _ in range(50):
            left = {kind: sorted(now - self.before[kind]) for kind, now in machine().items()}
            left["network namespaces"] = sorted(self.spaces & network_namespaces())
            left = {kind: things for kind, things in left.items() if things}
            if not left:
                return
            time.sleep(0.2)
        self.fail(json.dumps(left, indent=1))


if __name__ == "__main__":
    main(failfast=True)
