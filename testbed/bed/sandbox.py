# SPDX-License-Identifier: Apache-2.0
"""The world inside an instance: a mount, a PID and a network namespace, and the same paths in every instance:

    /run/testbed/              the instance's folder
    /run/testbed-programs/SET  the programs of the cache
"""
import ctypes
import os
import pathlib
import subprocess

from .errors import Refusal
from .layout import CONTROL_PLANE_ADDRESS, NETWORK

FOLDER = pathlib.Path("/run/testbed")
PROGRAMS = pathlib.Path("/run/testbed-programs")

MS_BIND = 4096
LIBC = ctypes.CDLL(None, use_errno=True)


def api_address(layout):
    """Of the API server, for nodes and pods."""
    return f"{CONTROL_PLANE_ADDRESS}:{layout.port}"


def enter(instance_folder, programs):
    """Called by the first program of the instance, in fresh namespaces. programs: name of the set -> folder."""
    places = {FOLDER: instance_folder, **{PROGRAMS / name: folder for name, folder in programs.items()}}
    opened = {place: os.open(source, os.O_PATH) for place, source in places.items()}
    command("mount", "--make-rshared", "/")
    run = os.path.realpath("/run")
    command("mount", "-t", "tmpfs", "-o", "mode=755", "testbed", run)
    for place, descriptor in opened.items():
        place.mkdir(parents=True)
        # By descriptor, as the source may lie below /run, which is now covered; mount(8) would look it up by name.
        bind(f"/proc/self/fd/{descriptor}", place)
        os.close(descriptor)
    if os.path.realpath("/var/run") != run:
        command("mount", "--bind", run, "/var/run")
    command("ip", "link", "set", "lo", "up")
    command("ip", "tuntap", "add", "dev", "wan0", "mode", "tun")
    command("ip", "address", "add", f"{CONTROL_PLANE_ADDRESS}/32", "dev", "wan0")
    command("ip", "link", "set", "wan0", "mtu", "1500", "txqueuelen", "1000", "up")
    command("ip", "route", "add", NETWORK, "dev", "wan0", "src", CONTROL_PLANE_ADDRESS)


def bind(source, place):
    if LIBC.mount(source.encode(), str(place).encode(), None, MS_BIND, None) != 0:
        raise Refusal(f"cannot mount {place}: {os.strerror(ctypes.get_errno())}")


def command(*words, what=None):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refusal(f"{what or ' '.join(words)}: {(done.stderr.strip() or 'failed').splitlines()[-1]}")
