# SPDX-License-Identifier: Apache-2.0
"""A wide-area network between two instances: one node of each gets an address that the other one's reaches.

Instances have the same addresses inside, so that their nodes cannot meet as they are. What is to be reached from another
instance runs on the linked node, or goes through a proxy there:

    203.0.113.N   the linked node of an instance, in all others that it is linked with (RFC 5737 sets the block aside)

The packets are carried by a `wan` of its own, outside of both instances. It ends with the first of them.
"""
import contextlib
import fcntl
import json
import os
import pathlib
import signal
import subprocess
import zlib

from . import cgroups, links
from .component import ENVIRONMENT
from .errors import Refusal
from .instance import TOP, Instance, names

NETWORK = "203.0.113"
FILE = "peers.json"


def read(place):
    """What is known of the links of an instance."""
    try:
        return json.loads((place.folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {"address": "", "node": "", "peers": {}}


def write(place, known):
    new = place.folder / f"{FILE}.new"
    new.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    new.rename(place.folder / FILE)


@contextlib.contextmanager
def locked():
    """Two at once would take one address."""
    top = os.open(TOP, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(top, fcntl.LOCK_EX)
        yield
    finally:
        os.close(top)


def device_of(one, other):
    """The same in both, and of at most 15 letters."""
    return f"peer{zlib.crc32(' '.join(sorted((one, other))).encode()):08x}"


def link(places, chosen, way):
    """Links two instances, or changes how they are linked. chosen: the node of each, or None. Returns what is known of each."""
    for place in places:
        place.layout()  # Refuses an instance that is not there.
    with locked():
        known = [read(place) for place in places]
        for place, mine, node in zip(places, known, chosen):
            layout = place.layout()
            if not layout.nodes:
                raise Refusal(f"instance {place.name} has no real nodes")
            if node and mine["node"] and node != mine["node"]:
                raise Refusal(f"{place.name} is linked by {mine['node']}; one node links with all others")
            mine["node"] = mine["node"] or node or layout.nodes[-1].name
            place.namespaces_of(mine["node"])  # Refuses a node that is not there.
        for mine in known:
            mine["address"] = mine["address"] or free_address(known)
        for i in (0, 1):
            known[i]["peers"][places[1 - i].name] = known[1 - i]["address"]
        carrier(places, known, way)
        for place, mine in zip(places, known):
            write(place, mine)
        return known


def free_address(known):
    taken = {mine["address"] for mine in known} | {read(Instance(name))["address"] for name in names()}
    for number in range(1, 255):
        if f"{NETWORK}.{number}" not in taken:
            return f"{NETWORK}.{number}"
    raise Refusal("254 instances are linked already")


def carrier(places, known, way):
    """Starts what carries packets, or tells it how it now is."""
    one, other = places
    device = device_of(one.name, other.name)
    pids, spaces = zip(*(place.namespaces_of(mine["node"]) for place, mine in zip(places, known)))
    table = [f"device {device}"]
    for place, mine, pid, space in zip(places, known, pids, spaces):
        table += [f"while {pid}", f"site {place.name} /proc/{pid}/{space['net']} {mine['address']}/32"]
    for a, b in ((one, other), (other, one)):
        if way.cut:
            table.append(f"cut {a.name} {b.name}")
        elif way != links.Link():
            table.append(f"link {a.name} {b.name} {way.delay_ns} {way.jitter_ns} {way.loss_ppm} {way.rate_bps}")
    file = one.folder / f"{device}.table"
    running = running_carrier(file) or running_carrier(other.folder / file.name)
    if running:
        running_table, pid = running
        running_table.write_text("\n".join(table) + "\n", encoding="utf-8")
        os.kill(pid, signal.SIGHUP)
        return
    for mine, theirs, pid, space in zip(known, reversed(known), pids, spaces):
        make_device(device, mine["address"], theirs["address"], f"/proc/{pid}/{space['net']}")
    file.write_text("\n".join(table) + "\n", encoding="utf-8")
    start(one, file, f"{one.name} and {other.name}")


def make_device(device, own, peer, namespace):
    # The link of a former instance of that name may have left it.
    subprocess.run(["nsenter", f"--net={namespace}", "ip", "link", "del", device], capture_output=True, check=False)
    for words in (("tuntap", "add", "dev", device, "mode", "tun"), ("address", "replace", f"{own}/32", "dev", device),
                  ("link", "set", device, "mtu", "1500", "txqueuelen", "1000", "up"),
                  ("route", "replace", f"{peer}/32", "dev", device, "src", own)):
        done = subprocess.run(["nsenter", f"--net={namespace}", "ip", *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Refusal(f"ip {' '.join(words)}: {(done.stderr.strip() or 'failed').splitlines()[-1]}")


def start(place, file, whose):
    program = pathlib.Path(place.layout().programs["native"]) / "wan"
    with open(place.logs / f"{file.stem}.log", "wb") as log:
        # pylint: disable-next=consider-using-with
        process = subprocess.Popen([program, file], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, env=ENVIRONMENT,
                                   cwd="/", start_new_session=True, text=True, preexec_fn=lambda: cgroups.join(place.name))
    said = process.stdout.readline()
    if "ready" not in said:
        raise Refusal(f"cannot link {whose}: {(place.logs / f'{file.stem}.log').read_text(errors='replace').strip()}")
    file.with_suffix(".pid").write_text(str(process.pid), encoding="utf-8")


def running_carrier(table):
    """The table and the process, if it lives."""
    with contextlib.suppress(OSError, ValueError):
        pid = int(table.with_suffix(".pid").read_text())
        if table.name.encode() in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
            return table, pid
    return None


def way_of(options):
    """How a link is, of what the command line says."""
    words = []
    for key in ("delay", "jitter", "loss", "rate"):
        if getattr(options, key) is not None:
            words += [key, getattr(options, key)]
    if options.cut:
        if words or options.round_trip:
            raise ValueError("--cut: nothing else goes with it")
        return links.Link(cut=True)
    if options.round_trip:
        if options.delay is not None:
            raise ValueError("--round-trip: not with --delay, which is half of it")
        words += ["delay", f"{links.quantity(options.round_trip, links.TIMES_NS) / 2000}us"]
    return links.parse_link(words)
