# SPDX-License-Identifier: Apache-2.0
"""An instance from outside: its folder, its processes, the words one can have with its supervisor, and its end.

Everything that an instance makes is either in its folder, or a control group under its name, or lives in namespaces
that vanish with its processes: mounts, links, addresses, routes, rules, sockets. So its end needs no list of what was
made, and works after any crash, and twice.
"""
import contextlib
import json
import os
import pathlib
import shutil
import socket

from . import cgroups
from .errors import Refusal
from .layout import CONTROL_PLANE, Layout

TOP = pathlib.Path("/var/lib/rudderfish-testbed")
ANSWER_S = 600  # A large image on many nodes takes long.


def names():
    """All instances of which anything is there."""
    folders = {folder.name for folder in TOP.iterdir() if folder.is_dir()} if TOP.is_dir() else set()
    return sorted(folders | cgroups.names())


class Instance:
    def __init__(self, name):
        self.name = name
        self.folder = TOP / name
        self.kubeconfig = self.folder / "kubeconfig"
        self.logs = self.folder / "logs"
        self.control = self.folder / "control"

    def exists(self):
        return self.folder.exists() or cgroups.exists(self.name)

    def create(self):
        """Takes the name. Only one of several can."""
        try:
            TOP.mkdir(mode=0o755, exist_ok=True)
            if cgroups.exists(self.name):
                raise FileExistsError
            self.folder.mkdir(mode=0o700)
            self.logs.mkdir()
            (self.folder / "nodes").mkdir(mode=0o700)
        except FileExistsError:
            raise Refusal(f"an instance {self.name} is there already; testbed down --name {self.name} ends it"
                          ) from None
        except OSError as error:
            raise Refusal(f"cannot make {self.folder}: {error.strerror}") from None

    def hand_over(self):
        """Who called sudo may use the cluster: the kubeconfig is theirs, and of the folder only that is readable."""
        shutil.copyfile(self.folder / "pki" / "admin.kubeconfig", self.kubeconfig)
        self.kubeconfig.chmod(0o600)
        os.chown(self.kubeconfig, int(os.environ.get("SUDO_UID", os.getuid())), -1)
        self.logs.chmod(0o700)
        self.folder.chmod(0o711)

    def layout(self):
        try:
            return Layout.load(self.folder / "layout.json")
        except (OSError, ValueError, TypeError, KeyError):
            raise Refusal(f"no instance {self.name}"
                          + (", only what is left of one" if self.exists() else "")
                          + (f"; there are {', '.join(names())}" if names() else "")) from None

    def ask(self, request):
        """A word with the supervisor: JSON there, JSON back."""
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                connection.settimeout(ANSWER_S)
                connection.connect(str(self.control))
                connection.sendall(json.dumps(request).encode() + b"\n")
                with connection.makefile("r", encoding="utf-8") as stream:
                    answer = json.loads(stream.readline())
            except (OSError, ValueError):
                self.layout()  # Says that there is no such instance, where there is none.
                if cgroups.processes(self.name):
                    raise Refusal(f"instance {self.name} does not answer; it is starting or dying") from None
                raise Refusal(f"instance {self.name} is dead; testbed down --name {self.name} removes what is left"
                              ) from None
        if "refused" in answer:
            raise Refusal(answer["refused"])
        return answer

    def namespaces_of(self, where):
        """The process that holds the namespaces of a node or of the control plane open, by its number here, and where
        below /proc/PID they are."""
        layout = self.layout()
        if where != CONTROL_PLANE and layout.node(where) is None:
            known = ", ".join([*(node.name for node in layout.nodes), CONTROL_PLANE])
            raise Refusal(f"no node {where}; there are {known}")
        holder = self.ask({"do": "holder", "of": where})
        for pid in cgroups.processes(self.name):
            with contextlib.suppress(OSError):
                status = pathlib.Path(f"/proc/{pid}/status").read_text()
                numbers = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[1:]
                # The last is the number in the innermost PID namespace, which pods have of their own.
                if len(numbers) == len(own_pid_namespaces()) + 1 and int(numbers[-1]) == holder["pid"]:
                    return pid, holder
        raise Refusal(f"{where} of instance {self.name} is gone")

    def remove(self):
        """Ends everything and removes what is left. Nothing there: nothing done."""
        if cgroups.exists(self.name):
            cgroups.kill(self.name)
            cgroups.remove(self.name)
        if self.folder.exists():
            shutil.rmtree(self.folder, onerror=raise_refusal)
        with contextlib.suppress(OSError):
            TOP.rmdir()  # Unless other instances live in it.


def own_pid_namespaces():
    status = pathlib.Path("/proc/self/status").read_text()
    return next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[1:]


def raise_refusal(_, path, failure):
    if not isinstance(failure[1], FileNotFoundError):
        raise Refusal(f"cannot remove {path}: {os.strerror(failure[1].errno)}")
