# SPDX-License-Identifier: Apache-2.0
"""What benches on a testbed have in common: the testbed, and what its servers use."""
import base64
import collections
import contextlib
import http.client
import json
import os
import pathlib
import platform
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.parse

TOP = pathlib.Path(__file__).resolve().parents[1]
RESTS, RESTING_CPUS = 30, 0.3


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Bed:
    """A testbed of hollow nodes without kube-scheduler, and its namespace "bench"."""

    def __init__(self, build, nodes, folder):
        self.folder = folder
        self.build = build.resolve()
        self.kubeconfig = pathlib.Path(self.testbed("up", "--nodes", "0", "--hollow", str(nodes)).split()[-1])
        config = json.loads(self.kubectl("config", "view", "--raw", "-o", "json"))
        user, cluster = config["users"][0]["user"], config["clusters"][0]["cluster"]
        self.address = urllib.parse.urlsplit(cluster["server"]).netloc
        self.tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
                                              if "certificate-authority-data" in cluster
                                              else pathlib.Path(cluster["certificate-authority"]).read_text())
        paths = []
        for key in ("client-certificate", "client-key"):
            if key in user:
                paths.append(user[key])
                continue
            paths.append(folder / key)
            paths[-1].write_bytes(base64.b64decode(user[f"{key}-data"]))
        self.tls.load_cert_chain(*paths)
        self.programs = json.loads((self.kubeconfig.parent / "layout.json").read_text())["programs"]["kubernetes"]
        self.testbed("stop", "kube-scheduler")
        self.kubectl("create", "namespace", "bench")

    def testbed(self, command, *words, text=None):
        done = subprocess.run([TOP / "testbed/testbed", command, "--name", "bench", *words], capture_output=True, text=True,
                              check=False, input=text, **({} if text else {}))
        if done.returncode:
            sys.exit(f"testbed {command}: {done.stderr.strip()}")
        return done.stdout

    def kubectl(self, *words):
        return self.testbed("kubectl", "--", *words)

    def leave_nodes_bare(self):
        """Nodes stay ready and report nothing more; no controller reacts to their silence."""
        while not self.ask("GET", "/api/v1/namespaces/bench/serviceaccounts").get("items"):
            time.sleep(0.1)  # Without one there are no pods, and who makes it is about to end.
        for server in ("kube-controller-manager", "kwok"):
            self.testbed("stop", server)

    def connection(self, timeout=90):
        return http.client.HTTPSConnection(self.address, context=self.tls, timeout=timeout)

    def ask(self, method, path, body=None):
        connection = self.connection()
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        connection.request(method, path, None if body is None else json.dumps(body),
                           {"Content-Type": kind, "User-Agent": "bench"})
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    def create(self, pod, count, prefix):
        subprocess.run([self.build / "bench/pods_live", self.kubeconfig, "create", str(count), prefix],
                       input=json.dumps(pod), text=True, check=True)

    def clear(self):
        while self.ask("GET", "/api/v1/namespaces/bench/pods?limit=1")["items"]:
            # Of many pods only those that the server gets to within a minute.
            self.ask("DELETE", "/api/v1/namespaces/bench/pods?gracePeriodSeconds=0")
            time.sleep(0.5)
        while self.ask("GET", "/api/v1/namespaces/bench/events?limit=1")["items"]:
            self.ask("DELETE", "/api/v1/namespaces/bench/events")
        self.rest()

    def rest(self):
        """Until the servers have done what they still had to do."""
        for _ in range(RESTS):
            before = cpu_seconds([])
            time.sleep(1)
            if (cpu_seconds([]) - before).total() < RESTING_CPUS:
                return


def cpu_seconds(processes):
    """Of each server of the testbed, and of these processes, since they began."""
    used, ours = collections.Counter(), {process.pid for process in processes}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if int(folder.name) in ours or "/rudderfish-testbed/bench/" in (folder / "cgroup").read_text():
                name, fields = re.match(r".*\((.*)\) (.*)", (folder / "stat").read_text()).groups()
                used[name] += sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            pass  # It has ended.
    return used


def cut(connection):
    """Ends what is read from it, too: who only closes it leaves the answer its socket."""
    if connection.sock:
        with contextlib.suppress(OSError):  # The server has left already.
            connection.sock.shutdown(socket.SHUT_RDWR)


def need(build, *programs):
    """Says what is missing before a cluster is started for it."""
    for program in programs:
        if not (build / program).exists():
            sys.exit(f"{build / program}: is not there; cmake --preset release && cmake --build --preset release --target "
                     f"{pathlib.Path(program).name}")


@contextlib.contextmanager
def bed(build, nodes):
    """One for as long as it is needed."""
    down = [TOP / "testbed/testbed", "down", "--name", "bench"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(down, capture_output=True, check=False)
        try:
            yield Bed(build, nodes, pathlib.Path(folder))
        finally:
            subprocess.run(down, capture_output=True, check=False)


def machine():
    return {"cpus": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "system": platform.platform()}
