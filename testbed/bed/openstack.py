# SPDX-License-Identifier: Apache-2.0
"""Keystone, Placement and Nova of Debian, with Nova's fake driver in the place of hypervisors: `testbed/openstack`.

Exit status: 0 done, 1 refused or failed (one line on stderr says why), 2 used wrongly. All processes carry the name of
the instance in their environment, so that `down` finds them whatever has become of the one that started them.
"""
import argparse
import contextlib
import json
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

from .component import Component
from .errors import Misuse, Refusal, exit_status
from .layout import check_name
from .openstack_config import DATABASES, MARK, PASSWORD_OF_SERVICES, PYTHON, REGION, SERVERS, Plan

TOP = pathlib.Path("/var/lib/rudderfish-openstack")
START_S = 180
HOSTS_MAX = 20  # Of one zone: each is a process of 100 MB.
FLAVORS = [{"name": "tiny", "vcpus": 1, "ram": 64, "disk": 1}, {"name": "small", "vcpus": 2, "ram": 512, "disk": 5}]


def parser():
    top = argparse.ArgumentParser(prog="openstack", allow_abbrev=False,
                                  description="A real OpenStack without hypervisors on one machine.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name, text):
        command = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        command.add_argument("--name", default="default", help="of the instance; several live side by side")
        return command

    add("up", "starts an OpenStack; prints the path of its clouds.yaml once all hosts are there").add_argument(
        "--zones", default="eu:2,us:2", metavar="ZONE:N,...", help="hosts by availability zone (default eu:2,us:2)")
    add("down", "ends an OpenStack and removes all of it")
    add("status", "its servers")
    for name, text in (("stop", "kills a server and leaves it dead"), ("start", "starts a stopped server again")):
        add(name, text).add_argument("server", metavar="SERVER", help="as `status` names it, for instance nova-compute@eu-1")
    return top


def main(arguments):
    options = parser().parse_args(arguments)
    commands = {"up": up, "down": down, "status": status, "stop": tell, "start": tell}

    def act():
        check_name(options.name)
        return commands[options.command](options)

    return exit_status("openstack", act)


def zones_of(text):
    hosts = []
    for part in text.split(","):
        zone, _, count = part.partition(":")
        check_name(zone)
        if not count.isdigit() or not 1 <= int(count) <= HOSTS_MAX:
            raise Misuse(f"--zones {text}: wants ZONE:N,..., N from 1 to {HOSTS_MAX}")
        hosts += [[zone, f"{zone}-{number}"] for number in range(1, int(count) + 1)]
    if len({host for _, host in hosts}) < len(hosts):
        raise Misuse(f"--zones {text}: a zone is there twice")
    return hosts


def require_packages():
    for program in ("mariadbd", "mariadb-install-db", "keystone-manage", "placement-api"):
        if shutil.which(program) is None:
            raise Refusal(f"{program} is missing; ./setup --openstack installs what is needed")
    found = subprocess.run([PYTHON, "-c", "import nova, keystone, placement, pymysql"], capture_output=True, check=False)
    if found.returncode or not os.path.exists("/usr/lib/rabbitmq/bin/rabbitmq-server"):
        raise Refusal("packages of OpenStack are missing; ./setup --openstack installs them")


def up(options):
    hosts = zones_of(options.zones)
    if os.geteuid() != 0:
        raise Refusal("needs root; run it with sudo")
    require_packages()
    folder = TOP / options.name
    try:
        folder.mkdir(mode=0o711, parents=True)
    except FileExistsError:
        raise Refusal(f"an instance {options.name} is there already; openstack down --name {options.name} ends it") from None
    plan = Plan(options.name, str(folder), free_ports(), hosts, secrets.token_hex(8))
    (folder / "plan.json").write_text(json.dumps(plan.__dict__), encoding="utf-8")
    (folder / "plan.json").chmod(0o600)
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.close(reader)
        supervise(plan, folder, writer)
    os.wait()
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as stream:
        last = ""
        for line in stream:
            said = json.loads(line)
            last = said.get("failed", "")
            if "say" in said:
                print(said["say"], file=sys.stderr)
            if "ready" in said:
                print(folder / "clouds.yaml")
                return 0
    with contextlib.suppress(Refusal):
        down(options)
    raise Refusal(last or "the supervisor ended before it was up")


def free_ports():
    with contextlib.ExitStack() as stack:
        ports = {}
        for name in (*SERVERS, "rabbit_peers", "epmd"):
            one = stack.enter_context(socket.socket())
            one.bind(("127.0.0.1", 0))
            ports[name] = one.getsockname()[1]
        return ports


def down(options):
    deadline = time.monotonic() + 30
    while processes(options.name):
        for pid in processes(options.name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise Refusal("some processes do not end; run it as the user who ran `up`")
        time.sleep(0.05)
    shutil.rmtree(TOP / options.name, ignore_errors=True)
    with contextlib.suppress(OSError):
        TOP.rmdir()


def processes(name):
    """Those of the instance, the supervisor included."""
    mark, found = f"{MARK}={name}".encode(), []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def ask(name, request):
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(TOP / name / "control"))
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("r", encoding="utf-8") as stream:
                answer = json.loads(stream.readline())
        except (OSError, ValueError):
            raise Refusal(f"no instance {name} that answers") from None
    if "refused" in answer:
        raise Refusal(answer["refused"])
    return answer


def status(options):
    rows = ask(options.name, {"do": "status"})["servers"]
    width = max(len(row["name"]) for row in rows)
    print(f"{'SERVER':<{width}}  STATE       RESTARTS")
    for row in rows:
        print(f"{row['name']:<{width}}  {row['state']:<10}  {row['restarts']:>8}")


def tell(options):
    ask(options.name, {"do": options.command, "server": options.server})


# The other half of `up`: starts all servers, and keeps them running.


def supervise(plan, folder, report):
    for name in (0, 1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), name)
    stream = os.fdopen(report, "w", buffering=1, encoding="utf-8")
    if os.environ.get(MARK) != plan.name:  # Only what a process began with is seen in /proc.
        os.set_inheritable(stream.fileno(), True)
        environment = {**plan.environment(), "SUDO_UID": os.environ.get("SUDO_UID", str(os.getuid()))}
        os.execve(sys.executable, [sys.executable, "-B", "-c",
                                   f"import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parents[1])!r}); "
                                   "from bed import openstack; openstack.resume(sys.argv[1], int(sys.argv[2]))",
                                   str(folder), str(stream.fileno())], environment)
    try:
        Supervisor(plan, folder, stream).run()
    except BaseException as error:  # Said before everything goes down.
        with contextlib.suppress(OSError):
            stream.write(json.dumps({"failed": str(error) or type(error).__name__}) + "\n")
        os._exit(1)


def resume(folder, report):
    supervise(Plan(**json.loads((pathlib.Path(folder) / "plan.json").read_text(encoding="utf-8"))), pathlib.Path(folder), report)


class Supervisor:
    def __init__(self, plan, folder, stream):
        self.plan, self.folder, self.stream = plan, folder, stream
        (folder / "logs").mkdir()
        environment = plan.environment()
        self.servers = {name: Component(name, argv, folder / "logs" / f"{name}.log", lambda _: None, environment=environment)
                        for name, argv in plan.commands().items()}

    def say(self, text):
        self.stream.write(json.dumps({"say": text}) + "\n")

    def run(self):
        for path, text in self.plan.files().items():
            (self.folder / path).parent.mkdir(exist_ok=True)
            (self.folder / path).write_text(text, encoding="utf-8")
            (self.folder / path).chmod(0o600)
        self.say("starting MariaDB and RabbitMQ")
        self.start_database()
        self.say("filling databases")
        self.fill_databases()
        self.say("starting Keystone, Placement and Nova")
        for name in ("keystone", "placement", "images", "nova-conductor", "nova-scheduler", "nova-api"):
            self.servers[name].start()
        admin = self.register()
        for name, server in self.servers.items():
            if name.startswith("nova-compute@"):
                server.start()
        self.make_zones(admin)
        self.hand_over()
        threading.Thread(target=self.serve, daemon=True).start()
        self.stream.write(json.dumps({"ready": True}) + "\n")
        self.stream.close()
        threading.Event().wait()

    def start_database(self):
        (self.folder / "database").mkdir()
        (self.folder / "rabbit").mkdir()
        self.command("database-install", ["mariadb-install-db", "--no-defaults", f"--datadir={self.folder}/database",
                                          "--user=root", "--auth-root-authentication-method=normal", "--skip-test-db"])
        self.servers["database"].start()
        self.servers["rabbit"].start()
        statements = [f"create database {name} character set utf8" for name in DATABASES]
        statements += [f"create user openstack@'127.0.0.1' identified by '{PASSWORD_OF_SERVICES}'",
                       "grant all on *.* to openstack@'127.0.0.1'"]
        fill = ("import pymysql\n"
                f"c = pymysql.connect(unix_socket='{self.folder}/database.sock', user='root').cursor()\n"
                f"for s in {statements!r}: c.execute(s)\n")
        self.wait_for("MariaDB", lambda: (self.folder / "database.sock").exists())
        self.command("database-fill", [PYTHON, "-c", fill])

    def fill_databases(self):
        plan = self.plan
        url = plan.url("keystone", "/v3/")
        keystone = ["keystone-manage", "--config-file", f"{self.folder}/keystone/keystone.conf"]
        manage = plan.nova("manage")
        first = [
            [*keystone, "fernet_setup", "--keystone-user", "root", "--keystone-group", "root"],
            [*keystone, "credential_setup", "--keystone-user", "root", "--keystone-group", "root"],
            [*keystone, "db_sync"],
            [*keystone, "bootstrap", "--bootstrap-password", plan.password, "--bootstrap-admin-url", url,
             "--bootstrap-internal-url", url, "--bootstrap-public-url", url, "--bootstrap-region-id", REGION]]
        second = [["placement-manage", "--config-file", f"{self.folder}/placement/placement.conf", "db", "sync"]]
        third = [[*manage, "api_db", "sync"], [*manage, "cell_v2", "map_cell0"], [*manage, "db", "sync"],
                 [*manage, "cell_v2", "create_cell", "--name", "cell1"]]
        failures = []

        def run(name, commands):
            try:
                for command in commands:
                    self.command(name, command)
            except Refusal as refusal:
                failures.append(refusal)

        threads = [threading.Thread(target=run, args=each)
                   for each in (("keystone-manage", first), ("placement-manage", second), ("nova-manage", third))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        self.wait_for("RabbitMQ", lambda: listens(plan.ports["rabbit"]))

    def command(self, name, argv):
        log = self.folder / "logs" / f"{name}.log"
        with open(log, "ab") as file:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, cwd="/",
                                  env=self.plan.environment(), check=False)
        if done.returncode:
            lines = log.read_text(errors="replace").strip().splitlines() or ["it logged nothing"]
            raise Refusal(f"{name}: {lines[-1]}")

    def wait_for(self, what, is_there):
        deadline = time.monotonic() + START_S
        while not is_there():
            for server in self.servers.values():
                if server.restarts > 3:
                    raise Refusal(f"{server.name} {server.ended}")
            if time.monotonic() > deadline:
                raise Refusal(f"{what} is not there after {START_S} s; logs are in {self.folder}/logs")
            time.sleep(0.2)

    def register(self):
        """Users, services and endpoints that Nova and Placement are told of. Returns a session of the user admin."""
        plan = self.plan
        self.wait_for("Keystone", lambda: listens(plan.ports["keystone"]))
        admin = Session(plan)
        domain = {"domain_id": "default"}
        project = admin.post("keystone", "/v3/projects", {"project": {"name": "service", **domain}})["project"]["id"]
        roles = {role["name"]: role["id"] for role in admin.get("keystone", "/v3/roles")["roles"]}
        for name in ("nova", "placement"):
            user = admin.post("keystone", "/v3/users", {"user": {"name": name, "password": PASSWORD_OF_SERVICES, **domain}})
            admin.call("PUT", "keystone", f"/v3/projects/{project}/users/{user['user']['id']}/roles/{roles['admin']}")
        for name, kind, server, path in (("nova", "compute", "nova", "/v2.1"), ("placement", "placement", "placement", ""),
                                         ("glance", "image", "images", ""), ("neutron", "network", "images", "")):
            service = admin.post("keystone", "/v3/services", {"service": {"name": name, "type": kind}})["service"]["id"]
            for interface in ("public", "internal"):
                admin.post("keystone", "/v3/endpoints", {"endpoint": {
                    "service_id": service, "interface": interface, "region_id": REGION, "url": plan.url(server, path)}})
        self.wait_for("Nova", lambda: listens(plan.ports["nova"]))
        for flavor in FLAVORS:
            admin.post("nova", "/v2.1/flavors", {"flavor": flavor})
        return admin

    def make_zones(self, admin):
        wanted = {host for _, host in self.plan.hosts}
        discover = self.plan.nova("manage", "cell_v2", "discover_hosts")

        def are_there():
            services = admin.get("nova", "/v2.1/os-services?binary=nova-compute")["services"]
            up = {one["host"] for one in services if one["state"] == "up"}
            return wanted <= up

        self.wait_for("a host", are_there)
        self.command("nova-manage", discover)
        for zone in dict.fromkeys(zone for zone, _ in self.plan.hosts):
            aggregate = admin.post("nova", "/v2.1/os-aggregates", {"aggregate": {"name": zone, "availability_zone": zone}})
            for _, host in (one for one in self.plan.hosts if one[0] == zone):
                admin.post("nova", f"/v2.1/os-aggregates/{aggregate['aggregate']['id']}/action", {"add_host": {"host": host}})
        providers = lambda: admin.get("placement", "/resource_providers")["resource_providers"]  # noqa: E731
        self.wait_for("a resource provider", lambda: len(providers()) >= len(wanted))

    def hand_over(self):
        path = self.folder / "clouds.yaml"
        path.write_text(f"""# As python-openstackclient and `rudderfish vms` read it.
clouds:
  {self.plan.name}:
    auth:
      auth_url: {self.plan.url("keystone", "/v3")}
      username: admin
      password: {self.plan.password}
      project_name: admin
      user_domain_name: Default
      project_domain_name: Default
    region_name: {REGION}
""", encoding="utf-8")
        path.chmod(0o600)
        os.chown(path, int(os.environ.get("SUDO_UID", os.getuid())), -1)

    def serve(self):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.folder / "control"))
            listener.listen()
            while True:
                connection, _ = listener.accept()
                with connection, connection.makefile("rw", encoding="utf-8") as stream, contextlib.suppress(OSError, ValueError):
                    stream.write(json.dumps(self.answer(json.loads(stream.readline()))) + "\n")
                    stream.flush()

    def answer(self, request):
        if request["do"] == "status":
            return {"servers": [{"name": one.name, "state": one.state, "restarts": one.restarts}
                                for one in self.servers.values()]}
        server = self.servers.get(request["server"])
        if server is None:
            return {"refused": f"no server {request['server']}; there are {', '.join(self.servers)}"}
        (server.stop if request["do"] == "stop" else server.start)()
        return {}


class Session:
    """REST as the user admin."""

    def __init__(self, plan):
        self.plan, self.token = plan, None
        user = {"name": "admin", "domain": {"id": "default"}, "password": plan.password}
        with self.open("POST", "keystone", "/v3/auth/tokens", {"auth": {
                "identity": {"methods": ["password"], "password": {"user": user}},
                "scope": {"project": {"name": "admin", "domain": {"id": "default"}}}}}) as response:
            self.token = response.headers["X-Subject-Token"]

    def open(self, method, server, path, body=None):
        headers = {"Content-Type": "application/json", "OpenStack-API-Version": "compute 2.93"}
        if self.token:
            headers["X-Auth-Token"] = self.token
        request = urllib.request.Request(self.plan.url(server, path), method=method, headers=headers,
                                         data=None if body is None else json.dumps(body).encode())
        try:
            return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60)
        except urllib.error.HTTPError as error:
            raise Refusal(f"{method} {path}: {error.code} {error.read().decode(errors='replace')[:300]}") from None
        except OSError as error:
            raise Refusal(f"{method} {path}: {error}") from None

    def call(self, method, server, path, body=None):
        with self.open(method, server, path, body) as response:
            text = response.read()
        return json.loads(text) if text else {}

    def get(self, server, path):
        return self.call("GET", server, path)

    def post(self, server, path, body):
        return self.call("POST", server, path, body)


def listens(port):
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0
