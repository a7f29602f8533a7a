# SPDX-License-Identifier: Apache-2.0
"""The process that an instance is: it starts the servers, keeps them running, and answers `testbed status` and the
like. It is the first in the instance's namespaces but for pause; with it, all of them end.

Until the cluster is ready, the death of any server is the failure of `up`. Afterwards servers are restarted, as a
machine's own init would.
"""
import concurrent.futures
import json
import os
import signal
import socket
import ssl
import threading
import time
import urllib.request

from . import control_plane, hollow, links, node as nodes, sandbox
from .api import Api, ApiError, is_ready
from .component import Component
from .errors import Misuse, Refusal
from .layout import CONTROL_PLANE, HOLLOW_LABEL
from .pki import Authority

WAIT_S = 60
POLL_S = 0.05
NOTICE_S = 0.3  # Within which the end of a process is noticed.
NODES_AT_ONCE = max(2, os.cpu_count() or 2)


class Supervisor:
    def __init__(self, layout, listener, tell):
        self.layout = layout
        self.listener = listener  # A descriptor, of a socket in the machine's own network namespace.
        self.tell = tell  # Of progress, in words.
        self.programs = {name: sandbox.PROGRAMS / name for name in layout.programs}
        self.authority = Authority(sandbox.FOLDER / "pki")
        self.components = {}
        self.namespaces = {}  # Name of node -> NodeNamespaces.
        self.ready = False
        self.failure = threading.Event()
        self.reason = ""

    # Starting.

    def bring_up(self):
        began = time.monotonic()
        self.authority.make(self.layout.nodes)
        control_plane.write_files(self.layout, self.authority)
        for member in ("kube-proxy", *(node.name for node in self.layout.nodes)):
            self.authority.write_kubeconfig(member, f"https://{sandbox.api_address(self.layout)}")
        with concurrent.futures.ThreadPoolExecutor(NODES_AT_ONCE + 1) as pool:
            plane = pool.submit(self.start_control_plane)
            made = [pool.submit(self.make_node, node) for node in self.layout.nodes]
            # The network needs all namespaces; kubelets need the network and the API server.
            self.wait_for_all([plane, *made])
            self.start_network()
            self.tell(f"control plane is ready after {time.monotonic() - began:.1f} s")
            self.wait_for_all([pool.submit(self.start_node, node) for node in self.layout.nodes])
        if self.layout.hollow:
            self.start_hollow_nodes()
        self.wait_for_nodes()
        self.ready = True
        count = f"{len(self.layout.nodes)} real" + (f", {self.layout.hollow} hollow" if self.layout.hollow else "")
        self.tell(f"all nodes are ready after {time.monotonic() - began:.1f} s ({count})")

    def start_control_plane(self):
        # The API server waits for etcd by itself.
        self.start("etcd", control_plane.etcd(self.programs))
        server = self.start("kube-apiserver",
                            control_plane.api_server(self.layout, self.programs, self.authority))
        self.start("gate", [self.programs["native"] / "gate", self.listener, self.layout.port], (self.listener,))
        api = self.api()
        self.until(lambda: api.succeeds("/readyz"), server)
        self.start("kube-controller-manager",
                   control_plane.controller_manager(self.layout, self.programs, self.authority))
        self.start("kube-scheduler", control_plane.scheduler(self.programs, self.authority))

    def make_node(self, node):
        """Namespaces, containerd and its images: all that needs no API server."""
        folder = self.folder_of(node)
        nodes.write_files(self.layout, node, folder, self.authority)
        self.namespaces[node.name] = nodes.NodeNamespaces(node.name, node.address, folder)
        containerd = self.start_of_node(node, "containerd")
        self.until(lambda: answers(folder / "containerd.sock"), containerd)
        self.import_images(node, self.programs["native"] / "images.tar")

    def start_network(self):
        self.write_links(self.layout.links, "links")
        wan = self.start("wan", [self.programs["native"] / "wan", sandbox.FOLDER / "wan.table"])
        self.until(lambda: "ready" in wan.log.read_text(errors="replace"), wan)

    def start_node(self, node):
        self.start_of_node(node, "kubelet")
        self.start_of_node(node, "kube-proxy")

    def start_of_node(self, node, server):
        name = f"{server}@{node.name}"
        commands = nodes.commands(node, self.folder_of(node), self.namespaces[node.name],
                                  self.programs["kubernetes"], self.authority)
        return self.start(name, commands[name])

    def start_hollow_nodes(self):
        self.start("kwok", control_plane.kwok(self.layout, self.programs, self.authority))
        try:
            hollow.create(self.layout, self.authority, self.check)
        except (OSError, ApiError) as error:
            raise Refusal(f"cannot create hollow nodes: {error}") from None

    def wait_for_nodes(self):
        api = self.api()
        for node in self.layout.nodes:
            kubelet, proxy = self.components[f"kubelet@{node.name}"], self.components[f"kube-proxy@{node.name}"]
            self.until(lambda n=node: is_ready(self.get(api, f"/api/v1/nodes/{n.name}")), kubelet, "ready")
            self.until(lambda n=node: is_healthy(f"http://{n.address}:10256/healthz"), proxy)
        if self.layout.hollow:
            # A turn over thousands of nodes takes a while; the API server counts those still tainted as newcomers.
            self.until(lambda: self.hollow_ready(api) == self.layout.hollow, self.components["kwok"],
                       f"keeping {self.layout.hollow} nodes", WAIT_S + self.layout.hollow // 20)
        for name, path in (("kube-controller-manager", "https://127.0.0.1:10257/healthz"),
                           ("kube-scheduler", "https://127.0.0.1:10259/readyz")):
            self.until(lambda url=path: is_healthy(url), self.components[name])

    def hollow_ready(self, api):
        time.sleep(min(2.0, self.layout.hollow / 5000))
        listed = self.get(api, f"/api/v1/nodes?labelSelector={HOLLOW_LABEL}%3Dtrue&resourceVersion=0")
        return sum(is_ready(node) for node in listed.get("items", []))

    def get(self, api, path):
        """Nothing, where it is not there yet."""
        try:
            return api.request("GET", path)
        except (OSError, ApiError):
            return {}

    def start(self, name, argv, passed=()):
        component = self.components[name] = Component(name, argv, sandbox.FOLDER / "logs" / f"{name}.log",
                                                      self.on_end, passed)
        try:
            component.start()
        except OSError as error:
            raise Refusal(f"cannot start {name}: {error.strerror}") from None
        return component

    def on_end(self, component):
        if not self.ready:
            self.fail(f"{component.name} {component.ended}")

    def fail(self, reason):
        if not self.failure.is_set():
            self.reason = reason
            self.failure.set()

    def check(self):
        if self.failure.is_set():
            raise Refusal(self.reason)

    def wait_for_all(self, futures):
        """The first failure counts, and is not kept waiting by those that still try."""
        for future in concurrent.futures.as_completed(futures):
            try:
                future.result()
            except Refusal as refusal:
                # Where a server has died, that is the reason, and this only what came of it.
                self.failure.wait(NOTICE_S)
                self.fail(str(refusal))
                raise

    def until(self, condition, component, what="up", wait_s=WAIT_S):
        deadline = time.monotonic() + wait_s
        while not condition():
            if time.monotonic() > deadline:
                raise Refusal(f"{component.name} is not {what} after {wait_s} s: {component.last_line()}")
            if self.failure.wait(POLL_S):
                raise Refusal(self.reason)

    def api(self):
        return Api(self.layout.port, self.authority)

    def folder_of(self, node):
        return sandbox.FOLDER / "nodes" / node.name

    # While it runs.

    def write_links(self, text, source):
        table = links.wan_table(self.layout, links.parse(text, self.layout, source), self.namespace_path)
        file = sandbox.FOLDER / "wan.table"
        file.with_suffix(".new").write_text(table, encoding="utf-8")
        file.with_suffix(".new").rename(file)

    def namespace_path(self, name):
        return (f"/proc/{os.getpid()}/ns/net" if name == CONTROL_PLANE
                else f"/proc/{os.getpid()}/fd/{self.namespaces[name].net}")

    def import_images(self, node, archive, shown="its images"):
        command = nodes.import_command(self.folder_of(node), self.namespaces[node.name], archive)
        sandbox.command(*command, what=f"{node.name} cannot import {shown}")

    def answer(self, request):
        what = request.get("do")
        if what == "status":
            return self.status()
        if what == "holder":
            return self.holder(request["of"])
        if not self.ready:
            raise Refusal(f"instance {self.layout.name} is still starting")
        if what in ("stop", "start"):
            return self.switch(what, request["component"])
        if what == "links":
            self.write_links(request["text"], request["source"])
            self.layout.links = request["text"]
            self.layout.save(sandbox.FOLDER / "layout.json")
            self.components["wan"].signal(signal.SIGHUP)
            return {}
        if what == "load":
            with concurrent.futures.ThreadPoolExecutor(NODES_AT_ONCE) as pool:
                list(pool.map(lambda node: self.import_images(node, request["archive"], request["shown"]),
                              self.layout.nodes))
            return {}
        raise Refusal(f"does not know {what}")

    def holder(self, where):
        """Which process holds the namespaces of a node open, and by which descriptors."""
        if where == CONTROL_PLANE:
            return {"pid": os.getpid(), "mount": "ns/mnt", "net": "ns/net", "uts": "ns/uts"}
        space = self.namespaces.get(where)
        if space is None:
            raise Refusal(f"{where} is not there yet")
        return {"pid": os.getpid(), "mount": f"fd/{space.mount}", "net": f"fd/{space.net}", "uts": f"fd/{space.uts}"}

    def switch(self, what, name):
        component = self.components.get(name)
        if component is None:
            raise Refusal(f"no component {name}; there are {', '.join(self.components)}")
        component.stop() if what == "stop" else component.start()
        return {}

    def status(self):
        api = self.api()
        listed = self.get(api, f"/api/v1/nodes?labelSelector=%21{HOLLOW_LABEL}").get("items", [])
        ready = {item["metadata"]["name"] for item in listed if is_ready(item)}
        return {
            "ready": self.ready,
            "nodes": [{"name": n.name, "address": n.address, "layer": n.layer, "ready": n.name in ready}
                      for n in self.layout.nodes],
            "components": [{"name": c.name, "state": c.state, "restarts": c.restarts,
                            "uptimeSeconds": round(time.time() - c.since) if c.state == "running" else 0,
                            "lastEnd": c.ended} for c in sorted(self.components.values(), key=rank)],
        }

    def serve(self):
        """Answers one line with one line, each connection in its thread."""
        path = sandbox.FOLDER / "control"
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(path))
        server.listen()
        while True:
            connection, _ = server.accept()
            threading.Thread(target=self.converse, args=(connection,), daemon=True).start()

    def converse(self, connection):
        with connection, connection.makefile("rw", encoding="utf-8") as stream:
            try:
                answer = self.answer(json.loads(stream.readline()))
            except (Refusal, Misuse) as refusal:
                answer = {"refused": str(refusal)}
            except (ValueError, KeyError):
                answer = {"refused": "not a request"}
            try:
                stream.write(json.dumps(answer) + "\n")
                stream.flush()
            except OSError:
                pass  # Who asked has gone.


def rank(component):
    """The control plane first, then node by node."""
    server, _, node = component.name.partition("@")
    return (node, server)


def answers(path):
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(path))
            return True
        except OSError:
            return False


def is_healthy(url):
    context = ssl.create_default_context()
    context.check_hostname = False  # Certificates that servers make themselves; and it is loopback.
    context.verify_mode = ssl.CERT_NONE
    try:
        with urllib.request.urlopen(url, timeout=2, context=context) as response:
            return response.status == 200
    except OSError:
        return False


def main(folder, layout, listener, report):
    """folder: of the instance, as it is named outside. report: a descriptor; one JSON object a line: {"say": ...}, and
    at last {"ready": true} or {"failed": ...}."""
    stream = os.fdopen(report, "w", buffering=1, encoding="utf-8")

    def tell(**what):
        try:
            stream.write(json.dumps(what) + "\n")
        except OSError:
            pass  # `up` is gone; the cluster may live without it.

    supervisor = Supervisor(layout, listener, lambda text: tell(say=text))
    try:
        sandbox.enter(folder, layout.programs)
        threading.Thread(target=supervisor.serve, daemon=True).start()
        threading.Thread(target=watch_failure, args=(supervisor, tell), daemon=True).start()
        supervisor.bring_up()
    except Refusal as refusal:
        tell(failed=supervisor.reason or str(refusal))
        os._exit(1)
    except BaseException as error:  # A bug; said before everything goes down with us.
        tell(failed=f"{type(error).__name__}: {error}")
        raise
    tell(ready=True)
    stream.close()
    threading.Event().wait()


def watch_failure(supervisor, tell):
    """Whatever the others wait for: they need not be waited for."""
    supervisor.failure.wait()
    tell(failed=supervisor.reason)
    os._exit(1)
