# SPDX-License-Identifier: Apache-2.0
"""What the servers of an OpenStack are told: their configuration files and command lines. Pure data.

All listen on loopback, on ports that were free. Nova's pages are short, so that clients meet several. Nova's computes have its fake driver: everything but the hypervisor is
real. MariaDB, because Nova's live migration fails on SQLite ("database is locked").
"""
import dataclasses
import os

PYTHON = "/usr/bin/python3"  # Debian's, which has the packages.
PASSWORD_OF_SERVICES = "services"
REGION = "RegionOne"
DATABASES = ("keystone", "placement", "nova", "nova_api", "nova_cell0")
SERVERS = ("database", "rabbit", "keystone", "placement", "nova", "images")
MARK = "RUDDERFISH_OPENSTACK"  # The environment variable by which processes are found.

NOVA_PASTE = """[composite:osapi_compute]
use = call:nova.api.openstack.urlmap:urlmap_factory
/: oscomputeversions
/v2.1: openstack_compute_api_v21

[composite:openstack_compute_api_v21]
use = call:nova.api.auth:pipeline_factory_v21
keystone = http_proxy_to_wsgi compute_req_id faultwrap request_log sizelimit authtoken keystonecontext osapi_compute_app_v21

[pipeline:oscomputeversions]
pipeline = faultwrap request_log http_proxy_to_wsgi oscomputeversionapp

[app:osapi_compute_app_v21]
paste.app_factory = nova.api.openstack.compute:APIRouterV21.factory
[app:oscomputeversionapp]
paste.app_factory = nova.api.openstack.compute.versions:Versions.factory
[filter:http_proxy_to_wsgi]
paste.filter_factory = oslo_middleware.http_proxy_to_wsgi:HTTPProxyToWSGI.factory
[filter:compute_req_id]
paste.filter_factory = nova.api.compute_req_id:ComputeReqIdMiddleware.factory
[filter:faultwrap]
paste.filter_factory = nova.api.openstack:FaultWrapper.factory
[filter:request_log]
paste.filter_factory = nova.api.openstack.requestlog:RequestLog.factory
[filter:sizelimit]
paste.filter_factory = oslo_middleware:RequestBodySizeLimiter.factory
[filter:keystonecontext]
paste.filter_factory = nova.api.auth:NovaKeystoneContext.factory
[filter:authtoken]
paste.filter_factory = keystonemiddleware.auth_token:filter_factory
"""


@dataclasses.dataclass
class Plan:
    name: str
    folder: str
    ports: dict  # Server -> port; `rabbit_peers` and `epmd` beside.
    hosts: list  # [zone, host]
    password: str  # Of the user admin.

    def url(self, server, path=""):
        return f"http://127.0.0.1:{self.ports[server]}{path}"

    def database(self, name):
        return f"mysql+pymysql://openstack:{PASSWORD_OF_SERVICES}@127.0.0.1:{self.ports['database']}/{name}?charset=utf8"

    def environment(self):
        at = self.folder
        return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": at, "LANG": "C.UTF-8",
                MARK: self.name, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore",
                "OS_KEYSTONE_CONFIG_DIR": f"{at}/keystone", "OS_PLACEMENT_CONFIG_DIR": f"{at}/placement",
                "RABBITMQ_NODENAME": f"{self.name}@localhost", "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
                "RABBITMQ_NODE_PORT": str(self.ports["rabbit"]), "RABBITMQ_DIST_PORT": str(self.ports["rabbit_peers"]),
                "ERL_EPMD_PORT": str(self.ports["epmd"]), "ERL_EPMD_ADDRESS": "127.0.0.1",
                "RABBITMQ_MNESIA_BASE": f"{at}/rabbit", "RABBITMQ_LOG_BASE": f"{at}/rabbit",
                "RABBITMQ_ENABLED_PLUGINS_FILE": f"{at}/rabbit/plugins", "RABBITMQ_CONFIG_FILE": f"{at}/rabbit/none",
                "RABBITMQ_CONF_ENV_FILE": os.devnull, "RABBITMQ_PID_FILE": f"{at}/rabbit/pid"}

    def authtoken(self, user):
        return f"""[keystone_authtoken]
www_authenticate_uri = {self.url("keystone")}
{self.service_login(user)}"""

    def service_login(self, user):
        return f"""auth_url = {self.url("keystone")}
auth_type = password
project_domain_name = Default
user_domain_name = Default
project_name = service
username = {user}
password = {PASSWORD_OF_SERVICES}
region_name = {REGION}
"""

    def files(self):
        """Path below the folder -> text."""
        at = self.folder
        bus = f"rabbit://guest:guest@127.0.0.1:{self.ports['rabbit']}/"
        nova = f"""[DEFAULT]
transport_url = {bus}
my_ip = 127.0.0.1
state_path = {at}/nova
osapi_compute_listen = 127.0.0.1
osapi_compute_listen_port = {self.ports["nova"]}
osapi_compute_workers = 1
enabled_apis = osapi_compute
compute_driver = fake.MediumFakeDriver
max_concurrent_live_migrations = 4
[api]
auth_strategy = keystone
max_limit = 40
[api_database]
connection = {self.database("nova_api")}
[database]
connection = {self.database("nova")}
[quota]
instances = -1
cores = -1
ram = -1
[conductor]
workers = 1
[scheduler]
workers = 1
discover_hosts_in_cells_interval = 10
[wsgi]
api_paste_config = {at}/nova/paste.ini
[oslo_concurrency]
lock_path = {at}/nova/locks
[glance]
api_servers = {self.url("images")}
[cinder]
catalog_info = volumev3::publicURL
[placement]
{self.service_login("placement")}
[neutron]
{self.service_login("nova")}
[service_user]
send_service_user_token = false
{self.authtoken("nova")}
"""
        texts = {
            "keystone/keystone.conf": f"""[DEFAULT]
log_file =
use_stderr = true
[database]
connection = {self.database("keystone")}
[token]
provider = fernet
[fernet_tokens]
key_repository = {at}/keystone/fernet
[credential]
key_repository = {at}/keystone/credential
""",
            "placement/placement.conf": f"""[DEFAULT]
use_stderr = true
[placement_database]
connection = {self.database("placement")}
[api]
auth_strategy = keystone
{self.authtoken("placement")}
""",
            "nova/nova.conf": nova,
            "nova/paste.ini": NOVA_PASTE,
        }
        for _, host in self.hosts:
            texts[f"nova/{host}.conf"] = f"[DEFAULT]\nhost = {host}\nstate_path = {at}/nova/{host}\n"
        return texts

    def nova(self, program, *extra):
        return [PYTHON, "-c", f"from nova.cmd.{program} import main; main()", "--config-file", f"{self.folder}/nova/nova.conf",
                *extra]

    def commands(self):
        """Name of a server -> its command line, in the order in which they start."""
        at = self.folder
        listen = ["--host", "127.0.0.1", "--port"]
        commands = {
            "database": ["mariadbd", "--no-defaults", f"--datadir={at}/database", "--user=root",
                         f"--socket={at}/database.sock", f"--port={self.ports['database']}", "--bind-address=127.0.0.1",
                         "--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0", "--max-connections=1000",
                         f"--pid-file={at}/database.pid"],
            "rabbit": ["/usr/lib/rabbitmq/bin/rabbitmq-server"],
            "keystone": ["keystone-wsgi-public", *listen, str(self.ports["keystone"])],
            "placement": ["placement-api", *listen, str(self.ports["placement"])],
            "images": [PYTHON, str(__file__).replace("_config.py", "_images.py"), str(self.ports["images"])],
            "nova-conductor": self.nova("conductor"),
            "nova-scheduler": self.nova("scheduler"),
            "nova-api": self.nova("api_os_compute"),
        }
        for _, host in self.hosts:
            commands[f"nova-compute@{host}"] = self.nova("compute", "--config-file", f"{at}/nova/{host}.conf")
        return commands
