# SPDX-License-Identifier: Apache-2.0
"""The command line. Exit status: 0 done, 1 refused or failed (one line on stderr says why), 2 used wrongly."""
import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys

from . import cache, cgroups, control_plane, images, instance, layout, links, node, peers, supervisor
from .api import Api
from .component import ENVIRONMENT
from .errors import Misuse, Refusal, exit_status
from .layout import Layout
from .pki import Authority

TOOLS = {"containerd": "containerd", "ctr": "containerd", "runc": "runc", "nft": "nftables", "ip": "iproute2",
         "nsenter": "util-linux", "unshare": "util-linux", "openssl": "openssl", "mount": "mount"}

INOTIFY_PER_NODE, INOTIFY_OTHERS = 10, 20


def parser():
    top = argparse.ArgumentParser(prog="testbed", allow_abbrev=False,
                                  description="A real Kubernetes cluster on one machine.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name, text, named=True):
        command = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        if named:
            command.add_argument("--name", default="default", help="of the instance; several live side by side")
        return command

    def add_version(command):
        command.add_argument("--version", default=cache.DEFAULT_VERSION, metavar="VERSION",
                             help=f"of Kubernetes: {', '.join(cache.versions())} (default {cache.DEFAULT_VERSION})")

    made = add("build", "builds the servers; takes minutes once, and no time when they are there", named=False)
    add_version(made)
    made.add_argument("--check", action="store_true", help="only say what is missing for `up`")
    up = add("up", "starts a cluster; prints the path of its kubeconfig once all nodes are ready")
    add_version(up)
    shape = up.add_mutually_exclusive_group()
    shape.add_argument("--nodes", type=int, metavar="N", help="real nodes, node-1 ... node-N (default 3)")
    shape.add_argument("--layers", metavar="LAYER:N,...", help="real nodes in layers, for instance cloud:2,edge:4")
    up.add_argument("--delays", metavar="FILE", help="the network between nodes: delay, jitter, loss, rate, cuts")
    up.add_argument("--audit", metavar="FILE", help="the API server's audit policy; it then writes audit.log")
    up.add_argument("--hollow", type=int, default=0, metavar="N", help="further nodes, kept alive by KWOK")
    add("down", "ends a cluster and removes all of it, whatever has become of it")
    add("list", "the instances there are", named=False)
    status = add("status", "the nodes and servers of a cluster")
    status.add_argument("-o", "--output", choices=("table", "json"), default="table")
    logs = add("logs", "the log of a server")
    logs.add_argument("component", metavar="COMPONENT", help="as `status` names it, for instance kubelet@node-1")
    logs.add_argument("-f", "--follow", action="store_true")
    execute = add("exec", "runs a command on a node, or beside the control plane")
    execute.add_argument("node", metavar="NODE", help=f"its name, or {layout.CONTROL_PLANE}")
    execute.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND...")
    network = add("network", "changes the network between nodes while the cluster runs; without FILE, shows it")
    network.add_argument("file", nargs="?", metavar="FILE", help="as for --delays; - reads standard input")
    linked = add("link", "joins two clusters by a wide-area network, between one node of each, or changes that", named=False)
    for which in ("one", "other"):
        linked.add_argument(which, metavar=which.upper(), help="name of an instance")
    linked.add_argument("--delay", metavar="TIME", help="one way, as in a table of delays; for instance 38ms")
    linked.add_argument("--round-trip", metavar="TIME", help="there and back, in the place of --delay")
    linked.add_argument("--jitter", metavar="TIME")
    linked.add_argument("--loss", metavar="PERCENT", help="for instance 0.1%%")
    linked.add_argument("--rate", metavar="RATE", help="for instance 100mbit")
    linked.add_argument("--cut", action="store_true", help="nothing passes, until it is linked again")
    linked.add_argument("--nodes", metavar="NODE,NODE", help="the node of each; default: the last one")
    load = add("load", "imports a container image on all nodes")
    load.add_argument("archive", metavar="ARCHIVE", help="what `docker save` writes, or an OCI archive")
    image = add("image", "makes a container image of a static binary, for `load`; needs no registry", named=False)
    image.add_argument("tag", metavar="NAME:TAG", help="for instance localhost/tool:1")
    image.add_argument("binary", metavar="BINARY", help="what the container runs, statically linked")
    image.add_argument("files", nargs="*", metavar="SOURCE=TARGET", help="further files, for instance conf=/etc/conf")
    image.add_argument("--user", default="", help="number of the user it runs as")
    image.add_argument("-o", "--output", required=True, metavar="ARCHIVE")
    for name, text in (("stop", "kills a server and leaves it dead"), ("start", "starts a stopped server again")):
        add(name, text).add_argument("component", metavar="COMPONENT")
    kubectl = add("kubectl", "runs the kubectl that was built, on this cluster")
    kubectl.add_argument("words", nargs=argparse.REMAINDER, metavar="-- ARGUMENT...")
    scheduler = add("scheduler", "runs a further kube-scheduler on this cluster, as it was built, until it is ended")
    scheduler.add_argument("config", metavar="CONFIG", help="its KubeSchedulerConfiguration; how it reaches the cluster is added")
    scheduler.add_argument("--serves", required=True, metavar="SCHEDULER", help="the schedulerName of the pods it is for")
    scheduler.add_argument("words", nargs=argparse.REMAINDER, metavar="-- ARGUMENT...")
    return top


def main(arguments):
    if arguments[:1] == ["supervise"]:  # The other half of `up`; not for people.
        folder, listener, report = pathlib.Path(arguments[1]), int(arguments[2]), int(arguments[3])
        return supervisor.main(folder, Layout.load(folder / "layout.json"), listener, report)
    options = parser().parse_args(arguments)
    return exit_status("testbed", lambda: COMMANDS[options.command](options))


def named(options):
    return instance.Instance(layout.check_name(options.name))


def require_root():
    if os.geteuid() != 0:
        raise Refusal("needs root, for namespaces and control groups; run it with sudo")


def build(options):
    if options.check:
        programs_for(options.version)
    else:
        cache.build(options.version)


def programs_for(version):
    """The folders of the servers. Refuses where they, or what of the system they need, are missing."""
    cache.require_tools(TOOLS)
    node.cni_folder()
    if not os.path.exists("/dev/net/tun"):
        raise Refusal("no /dev/net/tun; the kernel needs the module tun")
    return {name: str(folder) for name, folder in cache.built(version).items()}


def up(options):
    wanted = layout_of(options)
    place = named(options)
    require_root()
    wanted.programs = programs_for(options.version)
    require_inotify(len(wanted.nodes))
    place.create()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: sys.exit(128 + received))
    try:
        start(place, wanted)
    except BaseException:
        with contextlib.suppress(Refusal):
            place.remove()
        raise
    place.hand_over()
    print(place.kubeconfig)


def require_inotify(nodes):
    """What a machine with many nodes runs out of first; kubelets would say "too many open files"."""
    setting = pathlib.Path("/proc/sys/fs/inotify/max_user_instances")
    limit, wanted = int(setting.read_text()), INOTIFY_OTHERS + INOTIFY_PER_NODE * nodes
    if limit < wanted:
        raise Refusal(f"{nodes} nodes may need {wanted} inotify instances, and fs.inotify.max_user_instances is {limit};"
                      f" sysctl -w fs.inotify.max_user_instances={2 * wanted} allows them")


def layout_of(options):
    if options.nodes is not None and options.nodes < 0:
        raise Misuse(f"--nodes {options.nodes}: cannot be negative")
    if not 0 <= options.hollow <= layout.HOLLOW_MAX:
        raise Misuse(f"--hollow {options.hollow}: at least 0, at most {layout.HOLLOW_MAX}")
    members = (layout.layered_nodes(options.layers) if options.layers
               else layout.plain_nodes(3 if options.nodes is None else options.nodes))
    wanted = Layout(layout.check_name(options.name), options.version, members, options.hollow)
    if options.delays:
        wanted.links = read_table(options.delays)
        links.parse(wanted.links, wanted, options.delays)
    if options.audit:
        wanted.audit = read_table(options.audit)
    return wanted


def read_table(file):
    try:
        return sys.stdin.read() if file == "-" else pathlib.Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Misuse(f"cannot read {file}: {getattr(error, 'strerror', None) or error}") from None


def start(place, wanted):
    cgroups.make(place.name, [member.name for member in wanted.nodes])
    # Held from here on, so that no other process can take the port; and it stays in this network namespace.
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1024)
        wanted.port = listener.getsockname()[1]
        wanted.save(place.folder / "layout.json")
        report, told = os.pipe()
        first = pathlib.Path(wanted.programs["native"]) / "pause"
        program = pathlib.Path(__file__).resolve().parents[1] / "testbed"
        with open(place.logs / "supervisor.log", "ab") as log:
            spawn(
                ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--propagation", "private", "--",
                 str(first), sys.executable, str(program), "supervise", str(place.folder), str(listener.fileno()),
                 str(told)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=ENVIRONMENT, cwd="/",
                pass_fds=(listener.fileno(), told), start_new_session=True,
                preexec_fn=lambda: cgroups.join(place.name))
        os.close(told)
    log = ["it logged nothing"]
    with os.fdopen(report, encoding="utf-8") as lines:
        for line in lines:
            said = json.loads(line)
            if "say" in said:
                cache.say(said["say"])
            elif "failed" in said:
                raise Refusal(said["failed"])
            elif "ready" in said:
                if not Api(wanted.port, Authority(place.folder / "pki")).succeeds("/readyz"):
                    raise Refusal(f"the API server does not answer at 127.0.0.1:{wanted.port}")
                return
    with contextlib.suppress(OSError):  # Gone where somebody else called `down`.
        said = (place.logs / "supervisor.log").read_text(errors="replace").strip().splitlines()
        log = said or log
    raise Refusal(f"the supervisor died: {log[-1]}")


def spawn(*arguments, **options):
    try:
        subprocess.Popen(*arguments, **options)
    except (OSError, subprocess.SubprocessError) as error:
        raise Refusal(f"cannot start the supervisor in its control groups: {error}") from None


def down(options):
    place = named(options)
    require_root()
    place.remove()


def list_instances(_):
    require_root()
    for name in instance.names():
        print(name)


def status(options):
    require_root()
    place = named(options)
    known = place.layout()
    answer = {"name": place.name, "version": known.version, "kubeconfig": str(place.kubeconfig),
              "server": f"https://127.0.0.1:{known.port}", "hollow": known.hollow, "linked": peers.read(place),
              **place.ask({"do": "status"})}
    if options.output == "json":
        print(json.dumps(answer, indent=1))
        return
    print(f"{answer['name']}: Kubernetes {answer['version']} at {answer['server']}"
          + ("" if answer["ready"] else ", starting"))
    print(f"kubeconfig: {answer['kubeconfig']}")
    rows = [("NODE", "LAYER", "ADDRESS", "READY")]
    rows += [(n["name"], n["layer"] or "-", n["address"], "yes" if n["ready"] else "no") for n in answer["nodes"]]
    if known.hollow:
        rows.append((f"hollow-1 ... hollow-{known.hollow}", "", "", ""))
    print_table(rows)
    if answer["linked"]["peers"]:
        others = ", ".join(f"{name} at {address}" for name, address in answer["linked"]["peers"].items())
        print(f"\nlinked by {answer['linked']['node']} ({answer['linked']['address']}) with {others}")
    rows = [("COMPONENT", "STATE", "RESTARTS", "UP", "LAST END")]
    rows += [(c["name"], c["state"], str(c["restarts"]), f"{c['uptimeSeconds']}s", c["lastEnd"][:100])
             for c in answer["components"]]
    print_table(rows)


def print_table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    print()
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def logs(options):
    require_root()
    place = named(options)
    place.layout()
    file = place.logs / f"{options.component}.log"
    if "/" in options.component or not file.exists():
        known = sorted(path.stem for path in place.logs.glob("*.log"))
        raise Refusal(f"no log of {options.component}; there are {', '.join(known)}")
    if options.follow:
        os.execvp("tail", ["tail", "-n", "+1", "-F", str(file)])
    with open(file, "rb") as stream:
        sys.stdout.flush()
        shutil.copyfileobj(stream, sys.stdout.buffer)


def execute(options):
    words = without_dashes(options.words)
    if not words:
        raise Misuse("exec: no command; testbed exec NODE -- COMMAND...")
    require_root()
    place = named(options)
    pid, spaces = place.namespaces_of(options.node)
    environment = dict(os.environ)
    if options.node == layout.CONTROL_PLANE:  # Its server is on loopback there, too.
        environment["KUBECONFIG"] = "/run/testbed/kubeconfig"
    os.execvpe("nsenter", ["nsenter", f"--pid=/proc/{pid}/ns/pid", f"--mount=/proc/{pid}/{spaces['mount']}",
                           f"--net=/proc/{pid}/{spaces['net']}", f"--uts=/proc/{pid}/{spaces['uts']}", "--", *words],
               environment)


def network(options):
    require_root()
    place = named(options)
    known = place.layout()
    if options.file is None:
        print(known.links, end="")
        return
    text = read_table(options.file)
    links.parse(text, known, options.file)  # Misuse is told here, as such.
    place.ask({"do": "links", "text": text, "source": options.file})


def link(options):
    for name in (options.one, options.other):
        layout.check_name(name)
    if options.one == options.other:
        raise Misuse(f"link: {options.one} is one instance")
    try:
        way = peers.way_of(options)
    except ValueError as error:
        raise Misuse(f"link: {error}") from None
    nodes = (options.nodes or ",").split(",")
    if len(nodes) != 2:
        raise Misuse(f"--nodes {options.nodes}: wants one of each instance, for instance edge-1,edge-1")
    require_root()
    places = [instance.Instance(name) for name in (options.one, options.other)]
    for place, known in zip(places, peers.link(places, [node or None for node in nodes], way)):
        print(f"{place.name}  {known['node']}  {known['address']}")


def load(options):
    require_root()
    place = named(options)
    source = pathlib.Path(options.archive)
    if not source.is_file():
        raise Misuse(f"no file {source}")
    copied = place.folder / "load.tar"  # Where the nodes see it, whatever they see of this machine.
    place.layout()
    try:
        shutil.copyfile(source, copied)
        place.ask({"do": "load", "archive": "/run/testbed/load.tar", "shown": str(source)})
    finally:
        copied.unlink(missing_ok=True)


def image(options):
    name, colon, tag = options.tag.rpartition(":")
    if not name or not colon or not tag or "/" in tag:
        raise Misuse(f"{options.tag}: wants NAME:TAG, for instance localhost/tool:1")
    program = f"/bin/{pathlib.Path(options.binary).name}"
    files = [(options.binary, program)]
    for word in options.files:
        source, equals, target = word.partition("=")
        if not equals or not target.startswith("/"):
            raise Misuse(f"{word}: wants SOURCE=/TARGET")
        files.append((source, target))
    try:
        images.write(options.output, [images.Image(options.tag, files, entrypoint=[program], user=options.user)])
    except OSError as error:
        raise Refusal(f"{error.filename}: {error.strerror}") from None


def switch(options):
    require_root()
    named(options).ask({"do": options.command, "component": options.component})


def kubectl(options):
    require_root()
    place = named(options)
    program = pathlib.Path(place.layout().programs["kubernetes"]) / "kubectl"
    # What it has learnt of this API server goes with it.
    os.execve(program, [str(program), "--kubeconfig", str(place.kubeconfig), *without_dashes(options.words)],
              os.environ | {"KUBECACHEDIR": str(place.folder / "kubectl-cache")})


def scheduler(options):
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", options.serves):
        raise Misuse(f"--serves {options.serves}: wants a name as pods have it in spec.schedulerName")
    require_root()
    place = named(options)
    program = pathlib.Path(place.layout().programs["kubernetes"]) / "kube-scheduler"
    table = read_table(options.config)
    if found := re.search(r"^(profiles|leaderElection|clientConnection):", table, re.MULTILINE):
        raise Misuse(f"{options.config}: leave {found[1]} out, it is added")
    text = control_plane.further_scheduler(table, place.kubeconfig, options.serves)
    config = place.folder / f"scheduler-{options.serves}.yaml"
    config.write_text(text, encoding="utf-8")
    os.execv(program, [str(program), f"--config={config}", "--secure-port=0", *without_dashes(options.words)])


def without_dashes(words):
    return words[1:] if words[:1] == ["--"] else words


COMMANDS = {"build": build, "up": up, "down": down, "list": list_instances, "status": status, "logs": logs,
            "exec": execute, "network": network, "link": link, "load": load, "image": image, "stop": switch, "start": switch, "kubectl": kubectl,
            "scheduler": scheduler}
