# SPDX-License-Identifier: Apache-2.0
"""The table of delays: what a user writes, and what native/wan.cc reads.

    # from      to        what
    cloud  <->  edge      delay 10ms  jitter 1ms  loss 0.1%  rate 100mbit
    edge   ->   client    delay 4ms
    client ->   edge      delay 6ms
    edge-1 <->  *         cut

A side is a layer, a node, control-plane, or * for every node (not for the control plane, which has to be named). A
delay is one way. Lines apply in order: a later one replaces what an earlier one said of the same pair. Pairs that no
line names have no delay.
"""
import dataclasses
import re

from .errors import Misuse
from .layout import CONTROL_PLANE, CONTROL_PLANE_ADDRESS, SERVICE_CIDR

TIMES_NS = {"us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
RATES_BPS = {"kbit": 1_000, "mbit": 1_000_000, "gbit": 1_000_000_000}
DELAY_MAX_NS = 60 * TIMES_NS["s"]


@dataclasses.dataclass(frozen=True)
class Link:
    delay_ns: int = 0
    jitter_ns: int = 0
    loss_ppm: int = 0
    rate_bps: int = 0
    cut: bool = False


def parse(text, layout, source):
    """(from, to) -> Link, by name of node. `source` is for messages."""
    links = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        try:
            if len(words) < 4 or words[1] not in ("->", "<->"):
                raise ValueError("wants FROM -> TO or FROM <-> TO, and then what the link is like")
            link = parse_link(words[3:])
            froms, tos = members(words[0], layout), members(words[2], layout)
        except ValueError as error:
            raise Misuse(f"{source}:{number}: {error}") from None
        pairs = [(a, b) for a in froms for b in tos]
        if words[1] == "<->":
            pairs += [(b, a) for a, b in pairs]
        links.update({(a, b): link for a, b in pairs if a != b})
    return links


def members(side, layout):
    if side == CONTROL_PLANE:
        return [CONTROL_PLANE]
    names = [node.name for node in layout.nodes if side in ("*", node.name, node.layer)]
    if not names:
        known = ", ".join([*layout.layers, *(node.name for node in layout.nodes), CONTROL_PLANE])
        raise ValueError(f"no layer or node {side}; there are {known}")
    return names


def parse_link(words):
    if words == ["cut"]:
        return Link(cut=True)
    readers = {
        "delay": ("delay_ns", lambda text: quantity(text, TIMES_NS)),
        "jitter": ("jitter_ns", lambda text: quantity(text, TIMES_NS)),
        "loss": ("loss_ppm", lambda text: quantity(text, {"%": 10_000})),
        "rate": ("rate_bps", lambda text: quantity(text, RATES_BPS)),
    }
    if len(words) % 2 != 0:
        raise ValueError(f"{words[-1]}: wants a value, or is none of delay, jitter, loss, rate, cut")
    fields = {}
    for key, value in zip(words[::2], words[1::2]):
        if key not in readers:
            raise ValueError(f"{key}: is none of delay, jitter, loss, rate, cut")
        field, read = readers[key]
        if field in fields:
            raise ValueError(f"{key}: said twice")
        fields[field] = read(value)
    link = Link(**fields)
    if link.delay_ns + link.jitter_ns > DELAY_MAX_NS:
        raise ValueError("delay and jitter: at most 60s")
    if link.loss_ppm > 1_000_000:
        raise ValueError("loss: at most 100%")
    if "rate_bps" in fields and link.rate_bps < 1000:
        raise ValueError("rate: at least 1kbit; without packets at all: cut")
    return link


def quantity(text, units):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([a-z%]+)", text)
    if not match or match[2] not in units:
        raise ValueError(f"{text}: wants a number and a unit of {', '.join(units)}")
    return round(float(match[1]) * units[match[2]])


def wan_table(layout, links, namespace_of):
    """What wan reads. namespace_of: name of node -> path of its network namespace."""
    # What the control plane sends to a service goes to a node, whose proxy knows where it is.
    services = {layout.nodes[0].name: f" {SERVICE_CIDR}"} if layout.nodes else {}
    lines = [f"site {CONTROL_PLANE} {namespace_of(CONTROL_PLANE)} {CONTROL_PLANE_ADDRESS}/32"]
    for node in layout.nodes:
        lines.append(f"site {node.name} {namespace_of(node.name)} {node.address}/32 {node.pod_cidr}"
                     + services.get(node.name, ""))
    for (a, b), link in links.items():
        if link.cut:
            lines.append(f"cut {a} {b}")
        elif link != Link():
            lines.append(f"link {a} {b} {link.delay_ns} {link.jitter_ns} {link.loss_ppm} {link.rate_bps}")
    return "\n".join(lines) + "\n"
