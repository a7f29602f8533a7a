#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps the pods behind a gateway (gateway.sh, which starts this) up to date: HAProxy's slots `local/pod1`, `local/pod2`, ... get the
addresses of the pods that are ready and stay. A pod that goes gets no new request.

    follow.py NAME          the cluster's, as `testbed up --name` calls it
"""
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

SLOTS = 16
TESTBED = pathlib.Path(__file__).resolve().parents[2] / "testbed/testbed"


def addresses(name):
    """Of pods that are ready and do not go."""
    said = subprocess.run([TESTBED, "kubectl", "--name", name, "--", "get", "pods", "-n", "shop", "-l", "app=web", "-o", "json"],
                          capture_output=True, check=True, timeout=20).stdout
    ready = []
    for pod in json.loads(said)["items"]:
        conditions = {one["type"]: one["status"] for one in pod["status"].get("conditions", [])}
        if "deletionTimestamp" not in pod["metadata"] and conditions.get("Ready") == "True":
            ready.append(pod["status"]["podIP"])
    return ready


def tell(name, *commands):
    with socket.socket(socket.AF_UNIX) as gateway:
        gateway.settimeout(5)
        gateway.connect(f"/tmp/gateway-{name}.sock")
        gateway.sendall((";".join(commands) + "\n").encode())
        while gateway.recv(4096):
            pass


def socket_number(name):
    """Another one is that of another gateway, which has its own follower."""
    try:
        return os.stat(f"/tmp/gateway-{name}.sock").st_ino
    except FileNotFoundError:
        return None


def follow(name):
    slots, own = dict.fromkeys(range(1, SLOTS + 1)), socket_number(name)
    while own is not None and socket_number(name) == own:
        try:
            ready = addresses(name)
            for slot, address in slots.items():
                if address is not None and address not in ready:
                    tell(name, f"set server local/pod{slot} state maint")
                    slots[slot] = None
            for address in set(ready) - set(slots.values()):
                slot = next((one for one, taken in slots.items() if taken is None), None)
                if slot is None:
                    break
                tell(name, f"set server local/pod{slot} addr {address} port 8080", f"set server local/pod{slot} state ready")
                slots[slot] = address
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            print(f"gateway of {name}: {error}", file=sys.stderr)
        time.sleep(1)


if __name__ == "__main__":
    follow(sys.argv[1])
