# SPDX-License-Identifier: Apache-2.0
"""The programs a testbed is made of: pinned sources in, a folder of binaries out.

A set of programs is cached as NAME-DIGEST, the digest being of everything that decides its bytes (go.mod and go.sum,
or our own sources, and the flags below). A folder appears under its name only when it is complete, so an interrupted
build leaves nothing that looks finished.
"""
import contextlib
import fcntl
import hashlib
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import time

from . import images
from .errors import Misuse, Refusal

HERE = pathlib.Path(__file__).resolve().parents[1]
MODULES = HERE / "modules"
NATIVE = HERE / "native"
DEFAULT_VERSION = "v1.36.3"

# What KWOK's nodes and pods do, and the usage they report: files of its own source, of the same version.
KWOK_BEHAVIOUR = (
    "stage/node/fast/node-initialize.yaml", "stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "stage/pod/fast/pod-ready.yaml", "stage/pod/fast/pod-complete.yaml", "stage/pod/fast/pod-delete.yaml",
    "metrics/resource/metrics-resource.yaml", "metrics/usage/usage-from-annotation.yaml")

GO_FLAGS = ["-mod=readonly", "-buildvcs=false", "-trimpath", "-p", str(os.cpu_count() or 1)]
CXX_FLAGS = ["-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread"]
C_FLAGS = ["-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread"]
BUSYBOX = pathlib.Path("/bin/busybox")


def versions():
    """The versions of Kubernetes that are pinned, newest first."""
    names = [folder.name.removeprefix("kubernetes-") for folder in MODULES.glob("kubernetes-v*")]
    return sorted(names, key=lambda name: [int(part) for part in name[1:].split(".")], reverse=True)


def root():
    """Where this user's builds go."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "rudderfish" / "testbed"


def roots():
    """Where to look for builds: those of the current user, then those of the user who called sudo."""
    places = [root()]
    caller = os.environ.get("SUDO_USER")
    if caller and "XDG_CACHE_HOME" not in os.environ:
        with contextlib.suppress(KeyError):
            places.append(pathlib.Path(pwd.getpwnam(caller).pw_dir) / ".cache" / "rudderfish" / "testbed")
    return places


class ProgramSet:
    """Programs that are built together."""

    def __init__(self, name, inputs, flags):
        digest = hashlib.sha256(" ".join(flags).encode())
        for path in inputs:
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
        self.name = name
        self.folder_name = f"{name}-{digest.hexdigest()[:12]}"

    def find(self):
        """The folder of binaries, or None where it is not built."""
        for place in roots():
            if (place / self.folder_name).is_dir():
                return place / self.folder_name
        return None

    def build(self, folder):
        raise NotImplementedError


class GoPrograms(ProgramSet):
    def __init__(self, module, packages, version=None, flags=()):
        self.module = MODULES / module
        self.packages = packages  # Name of the binary -> package.
        self.link_flags = "-s -w"
        if version:
            # A server that is not told its version believes it is v0.0.0 and refuses its own feature gates.
            major, minor = re.match(r"v(\d+)\.(\d+)", version).groups()
            variable = "k8s.io/component-base/version"
            self.link_flags += (f" -X {variable}.gitVersion={version} -X {variable}.gitMajor={major}"
                                f" -X {variable}.gitMinor={minor}")
        # The number of jobs decides nothing but the time.
        super().__init__(module, [self.module / "go.mod", self.module / "go.sum"],
                         [*GO_FLAGS[:-2], self.link_flags, *flags])

    def build(self, folder):
        go = go_program(self.module)
        environment = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": ""}
        for binary, package in self.packages.items():
            say(f"building {binary} of {self.name}")
            run([go, "build", *GO_FLAGS, "-ldflags", self.link_flags, "-o", str(folder / binary), package],
                f"cannot build {binary}", cwd=self.module, env=environment)


class KwokPrograms(GoPrograms):
    def __init__(self):
        super().__init__("kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"}, flags=KWOK_BEHAVIOUR)

    def build(self, folder):
        super().build(folder)
        source = subprocess.run([go_program(self.module), "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"],
                                cwd=self.module, capture_output=True, text=True, check=True).stdout.strip()
        for file in KWOK_BEHAVIOUR:
            shutil.copyfile(pathlib.Path(source) / "kustomize" / file, folder / pathlib.Path(file).name)


class NativePrograms(ProgramSet):
    """Our own: the emulated network, the door to the API server, the first process, and the images made with it."""

    def __init__(self):
        inputs = [*sorted(NATIVE.iterdir()), pathlib.Path(images.__file__)]
        # The image of busybox is as old as the binary in it.
        stamp = str(BUSYBOX.stat().st_size) if BUSYBOX.exists() else ""
        super().__init__("native", inputs, [*CXX_FLAGS, *C_FLAGS, stamp])

    def build(self, folder):
        require_tools({"g++": "g++", "gcc": "gcc", str(BUSYBOX): "busybox-static"})
        for source in sorted(NATIVE.glob("*.cc")):
            say(f"building {source.stem}")
            run(["g++", *CXX_FLAGS, str(source), "-o", str(folder / source.stem)], f"cannot build {source.stem}")
        say("building pause and the images")
        run(["gcc", *C_FLAGS, str(NATIVE / "pause.c"), "-o", str(folder / "pause")], "cannot build pause")
        run(["gcc", *C_FLAGS, *map(str, sorted(NATIVE.glob("app*.c"))), "-o", str(folder / "app"), "-lm"], "cannot build app")
        images.write(folder / "images.tar", [
            images.Image(images.PAUSE, [(folder / "pause", "/pause")], entrypoint=["/pause"]),
            images.Image(images.APP, [(folder / "app", "/app")], entrypoint=["/app"]),
            images.busybox(BUSYBOX),
        ])


def program_sets(version):
    if version not in versions():
        raise Misuse(f"--version {version}: not pinned; there are {', '.join(versions())}"
                     " (docs/testbed.md says how to add one)")
    commands = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl")
    return {
        "native": NativePrograms(),
        "etcd": GoPrograms("etcd", {"etcd": "go.etcd.io/etcd/server/v3"}),
        "kwok": KwokPrograms(),
        "kubernetes": GoPrograms(f"kubernetes-{version}", {c: f"k8s.io/kubernetes/cmd/{c}" for c in commands}, version),
    }


def build(version):
    """Builds what is missing. Returns the folders by name."""
    sets = program_sets(version)
    missing = [item for item in sets.values() if item.find() is None]
    if missing:
        place = root()
        try:
            place.mkdir(parents=True, exist_ok=True)
            lock = open(place / "lock", "w", encoding="utf-8")
        except OSError as error:
            raise Refusal(f"cannot write to the cache {place}: {error.strerror}; set XDG_CACHE_HOME to a folder that"
                          " can be written") from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("waits for another build")
                fcntl.flock(lock, fcntl.LOCK_EX)  # And then finds its work done.
            for item in missing:
                if item.find() is None:
                    build_set(item, place)
    return {name: item.find() for name, item in sets.items()}


def build_set(item, place):
    began = time.monotonic()
    partial = place / f"{item.folder_name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir()
        item.build(partial)
        partial.rename(place / item.folder_name)
    except OSError as error:
        raise Refusal(f"cannot write to the cache {place}: {error.strerror}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    say(f"built {item.name} in {time.monotonic() - began:.0f} s")


def built(version):
    """The folders by name; refuses where something is not built."""
    sets = program_sets(version)
    folders = {name: item.find() for name, item in sets.items()}
    missing = [name for name, folder in folders.items() if folder is None]
    if missing:
        flag = "" if version == DEFAULT_VERSION else f" --version {version}"
        raise Refusal(f"not built: {', '.join(missing)}; run testbed/testbed build{flag}")
    return folders


def go_program(module):
    wanted = re.search(r"^go (\d+)\.(\d+)", (module / "go.mod").read_text(), re.M).groups()
    found = "none"
    for go in (shutil.which("go"), "/usr/local/go/bin/go"):
        if go and os.access(go, os.X_OK):
            text = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False,
                                  env=os.environ | {"GOTOOLCHAIN": "local"}).stdout
            match = re.match(r"go(\d+)\.(\d+)", text)
            if match and [int(n) for n in match.groups()] >= [int(n) for n in wanted]:
                return go
            found = text.strip() or found
    raise Refusal(f"needs Go {'.'.join(wanted)} or later on PATH or in /usr/local/go, found {found}; Debian 12's own is"
                  " too old")


def require_tools(packages):
    """packages: program -> Debian package."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [program for program in packages if not shutil.which(program, path=path)]
    if missing:
        raise Refusal(f"missing: {', '.join(missing)}; run ./setup --testbed"
                      f" (packages {', '.join(sorted({packages[program] for program in missing}))})")


def run(command, what, **options):
    """Runs a step of the build; its output matters only where it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          errors="replace", **options)
    if done.returncode != 0:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        for line in lines[-20:-1]:
            print(line, file=sys.stderr)
        raise Refusal(f"{what}: {lines[-1] if lines else f'exit status {done.returncode}'}")


def say(text):
    print(f"testbed: {text}", file=sys.stderr, flush=True)
