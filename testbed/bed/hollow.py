# SPDX-License-Identifier: Apache-2.0
"""Hollow nodes: objects that KWOK keeps alive. Pods on them become Running and nothing runs; usage is what the pods'
annotations kwok.x-k8s.io/usage-cpu and -memory say, served as a kubelet would serve it."""
import concurrent.futures
import threading
import time

from .api import Api, ApiError
from .layout import CONTROL_PLANE_ADDRESS, HOLLOW_LABEL, LAYER_LABEL, ZONE_LABEL

KWOK_PORT = 10247
FEW = 500
CAPACITY = {"cpu": "32", "memory": "128Gi", "ephemeral-storage": "512Gi", "pods": "110"}
CONDITIONS = (("Ready", "True", "KubeletReady"),
              ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
              ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
              ("PIDPressure", "False", "KubeletHasSufficientPID"))
ZONES = 3
CONNECTIONS = 8


def lease_s(count):
    """Of a node's lease: a quarter passes between renewals, and thousands of them load the API server."""
    return 40 if count <= FEW else 200


def grace_period_s(count):
    """After which a silent node is NotReady: Kubernetes' own 50 s, where there are not so many hollow ones."""
    return 50 if count <= FEW else 5 * lease_s(count) // 4


def api_server_flags(count):
    """Thousands of nodes that are born ready need not be tainted as newcomers, which takes the node controller half a
    minute to undo."""
    return ["--disable-admission-plugins=TaintNodesByCondition"] if count > FEW else []


def node_object(number, layers, version):
    """Ready from the start: thousands of first heartbeats would take KWOK a minute."""
    name = f"hollow-{number}"
    zone = layers[(number - 1) % len(layers)] if layers else f"zone-{(number - 1) % ZONES + 1}"
    labels = {HOLLOW_LABEL: "true", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
              "kubernetes.io/arch": "amd64", ZONE_LABEL: zone}
    if layers:
        labels[LAYER_LABEL] = zone
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    conditions = [{"type": kind, "status": status, "reason": reason, "message": "hollow", "lastHeartbeatTime": now,
                   "lastTransitionTime": now} for kind, status, reason in CONDITIONS]
    software = {"kubeletVersion": version, "kubeProxyVersion": "", "containerRuntimeVersion": "kwok://",
                "machineID": "", "osImage": "", "kernelVersion": "", "systemUUID": "", "bootID": "",
                "architecture": "amd64", "operatingSystem": "linux"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
            # Who wants to run must not land here unasked.
            "spec": {"taints": [{"key": HOLLOW_LABEL, "value": "true", "effect": "NoSchedule"}]},
            "status": {"capacity": CAPACITY, "allocatable": CAPACITY, "conditions": conditions, "phase": "Running",
                       "addresses": [{"type": "InternalIP", "address": CONTROL_PLANE_ADDRESS},
                                     {"type": "Hostname", "address": name}],
                       "daemonEndpoints": {"kubeletEndpoint": {"Port": KWOK_PORT}}, "nodeInfo": software}}


def kwok_config():
    return """apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  nodePlayStageParallelism: 16
  podPlayStageParallelism: 16
  nodeLeaseParallelism: 16
  podsOnNodeSyncParallelism: 16
"""


def create(layout, authority, stopped):
    """stopped() is asked on the way, and raises where the cluster has failed meanwhile."""
    local = threading.local()

    def create_one(number):
        stopped()
        if not hasattr(local, "api"):
            local.api = Api(layout.port, authority)
        for _ in range(3):
            try:
                local.api.request("POST", "/api/v1/nodes", node_object(number, layout.layers, layout.version))
                return
            except ApiError as error:
                if error.status == 409:  # The first try succeeded, and its answer was lost.
                    return
                failure = error
            except OSError as error:
                failure = error
        raise failure

    with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
        for _ in pool.map(create_one, range(1, layout.hollow + 1)):
            pass
