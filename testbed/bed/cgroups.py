# SPDX-License-Identifier: Apache-2.0
"""The control groups of an instance: /rudderfish-testbed/NAME in every hierarchy, with `system` for the servers and one
root for each node's pods, so that no kubelet takes another's pods for orphans.

They are also how every process of an instance is found again, whatever was killed before: a process cannot leave its
group by dying parents.
"""
import contextlib
import os
import pathlib
import signal
import time

from .errors import Refusal

TOP = "rudderfish-testbed"
CONTROLLERS = ("cpuset", "cpu", "io", "memory", "pids")  # Of the unified hierarchy, as the kubelet wants them.


def hierarchies():
    """Mount points under /sys/fs/cgroup, those of version 1 and the unified one."""
    found = []
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        for line in mounts:
            before, after = line.split(" - ")
            place, kind = pathlib.Path(before.split()[4]), after.split()[0]
            if kind in ("cgroup", "cgroup2") and (place == pathlib.Path("/sys/fs/cgroup")
                                                  or place.parent == pathlib.Path("/sys/fs/cgroup")):
                found.append(place)
    if not found:
        raise Refusal("no control groups under /sys/fs/cgroup")
    return found


def is_unified(hierarchy):
    return (hierarchy / "cgroup.controllers").exists()


def kubelet_root(instance, node):
    """As the kubelet and runc name it."""
    return f"/{TOP}/{instance}/{node}"


def make(instance, node_names):
    for hierarchy in hierarchies():
        try:
            for group in (hierarchy / TOP, hierarchy / TOP / instance):
                group.mkdir(exist_ok=True)
                open_group(hierarchy, group)
            for name in ("system", *node_names):
                group = hierarchy / TOP / instance / name
                group.mkdir(exist_ok=True)
                fill_cpuset(group)
        except OSError as error:
            raise Refusal(f"cannot make control groups in {hierarchy}: {error.strerror}") from None


def open_group(hierarchy, group):
    """Lets the groups below use the controllers."""
    fill_cpuset(group)
    if not is_unified(hierarchy):
        return
    for parent in (hierarchy, group):
        here = (parent / "cgroup.controllers").read_text().split()
        for controller in CONTROLLERS:
            if controller in here:
                with contextlib.suppress(OSError):  # The root of a container may not; its kubelet will say so.
                    (parent / "cgroup.subtree_control").write_text(f"+{controller}")


def fill_cpuset(group):
    """A new cpuset of version 1 is empty, and nothing can run in it."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        file = group / name
        if file.exists() and not is_unified(group) and not file.read_text().strip():
            file.write_text((group.parent / name).read_text())


def join(instance):
    """Puts this process among the servers of the instance."""
    for hierarchy in hierarchies():
        (hierarchy / TOP / instance / "system" / "cgroup.procs").write_text(str(os.getpid()))


def exists(instance):
    return any((hierarchy / TOP / instance).exists() for hierarchy in hierarchies())


def names():
    """Instances that have control groups."""
    return {group.name for hierarchy in hierarchies() for group in (hierarchy / TOP).glob("*/")}


def processes(instance):
    pids = set()
    for hierarchy in hierarchies():
        for folder, _, _ in os.walk(hierarchy / TOP / instance):
            with contextlib.suppress(OSError), open(os.path.join(folder, "cgroup.procs"), encoding="utf-8") as file:
                pids.update(int(line) for line in file)
    pids.discard(0)  # A process that this PID namespace cannot see.
    return pids


def kill(instance, deadline_s=20):
    """Ends every process of the instance. The first process of its PID namespace takes all others with it; what is
    left are those outside, and frozen ones."""
    deadline = time.monotonic() + deadline_s
    while pids := processes(instance):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        thaw(instance)
        if time.monotonic() > deadline:
            raise Refusal(f"{len(pids)} processes do not end, among them {min(pids)} ({command_of(min(pids))})")
        time.sleep(0.02)


def thaw(instance):
    for hierarchy in hierarchies():
        for folder, _, files in os.walk(hierarchy / TOP / instance):
            for name, word in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
                if name in files:
                    with contextlib.suppress(OSError), open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                        file.write(word)


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "gone"


def remove(instance, deadline_s=10):
    """Once its processes are gone. A group stays busy for a moment after its last process."""
    deadline = time.monotonic() + deadline_s
    for hierarchy in hierarchies():
        top = hierarchy / TOP
        for folder, _, _ in os.walk(top / instance, topdown=False):
            while True:
                try:
                    os.rmdir(folder)
                    break
                except FileNotFoundError:
                    break
                except OSError as error:
                    if time.monotonic() > deadline:
                        raise Refusal(f"cannot remove control group {folder}: {error.strerror}") from None
                    time.sleep(0.02)
        with contextlib.suppress(OSError):
            top.rmdir()  # Unless other instances live in it.
