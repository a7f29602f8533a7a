# SPDX-License-Identifier: Apache-2.0
"""What a testbed consists of: nodes, layers, addresses. Pure data, written to the instance's folder as layout.json.

Every instance has the same addresses, each inside namespaces of its own, where they conflict with no others:

    198.18.0.1          the control plane           (198.18.0.0/15 is set aside for test networks, RFC 2544)
    198.18.0.9+N        node N
    198.18.127+N.0/24   its pods
    198.19.0.0/16       services, 198.19.0.1 the API server's
"""
import dataclasses
import json
import re

from .errors import Misuse

CONTROL_PLANE = "control-plane"
CONTROL_PLANE_ADDRESS = "198.18.0.1"
NETWORK = "198.18.0.0/15"
POD_CIDR = "198.18.128.0/17"
SERVICE_CIDR = "198.19.0.0/16"
API_SERVICE_ADDRESS = "198.19.0.1"
DNS_ADDRESS = "198.19.0.10"
HOLLOW_POD_CIDR = "100.64.0.1/10"  # A pod that does not run is unreachable; addresses only tell them apart.

LAYER_LABEL = "rudderfish.io/layer"
ZONE_LABEL = "topology.kubernetes.io/zone"
HOLLOW_LABEL = "rudderfish.io/hollow"

NODES_MAX = 100  # Of real nodes, by the addresses above.
HOLLOW_MAX = 20000
NAME = re.compile(r"[a-z]([a-z0-9-]{0,18}[a-z0-9])?")


@dataclasses.dataclass
class Node:
    name: str
    index: int  # From 1.
    layer: str = ""

    @property
    def address(self):
        return f"198.18.0.{9 + self.index}"

    @property
    def pod_cidr(self):
        return f"198.18.{127 + self.index}.0/24"


@dataclasses.dataclass
class Layout:
    name: str
    version: str
    nodes: list
    hollow: int = 0
    port: int = 0  # Of the API server: on loopback here, and inside the testbed.
    programs: dict = dataclasses.field(default_factory=dict)  # Name of the set -> folder.
    links: str = ""  # The text of the table of delays.
    audit: str = ""  # The text of the API server's audit policy; empty: it keeps no such log.

    @property
    def layers(self):
        return list(dict.fromkeys(node.layer for node in self.nodes if node.layer))

    def node(self, name):
        return next((node for node in self.nodes if node.name == name), None)

    def save(self, path):
        path.write_text(json.dumps(dataclasses.asdict(self), indent=1) + "\n", encoding="utf-8")

    @staticmethod
    def load(path):
        fields = json.loads(path.read_text(encoding="utf-8"))
        fields["nodes"] = [Node(**node) for node in fields["nodes"]]
        return Layout(**fields)


def check_name(name):
    if not NAME.fullmatch(name):
        raise Misuse(f"--name {name}: wants at most 20 lower-case letters, digits and dashes, a letter first")
    return name


def plain_nodes(count):
    return numbered([("node", "", count)])


def layered_nodes(text):
    """cloud:2,edge:4 -> cloud-1, cloud-2, edge-1, ..."""
    groups = []
    for part in text.split(","):
        match = re.fullmatch(r"([a-z](?:[a-z0-9-]{0,18}[a-z0-9])?):(\d+)", part.strip())
        if not match:
            raise Misuse(f"--layers {text}: wants LAYER:COUNT,..., for instance cloud:2,edge:4")
        layer, count = match[1], int(match[2])
        if layer in [group[0] for group in groups] or layer in (CONTROL_PLANE, "hollow"):
            raise Misuse(f"--layers {text}: {layer} is taken")
        groups.append((layer, layer, count))
    return numbered(groups)


def numbered(groups):
    nodes = []
    for prefix, layer, count in groups:
        for i in range(1, count + 1):
            nodes.append(Node(f"{prefix}-{i}", len(nodes) + 1, layer))
    if len(nodes) > NODES_MAX:
        raise Misuse(f"{len(nodes)} real nodes: at most {NODES_MAX}; --hollow makes nodes by the thousand")
    return nodes
