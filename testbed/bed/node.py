# SPDX-License-Identifier: Apache-2.0
"""A real node: kubelet, containerd and kube-proxy in a network and a mount namespace of their own. What this writes
was learnt the hard way; each odd line says why."""
import json
import os
import pathlib
import subprocess

from . import cgroups, images, sandbox
from .errors import Refusal
from .layout import DNS_ADDRESS, LAYER_LABEL, NETWORK, POD_CIDR, ZONE_LABEL

CNI_FOLDERS = ("/usr/lib/cni", "/opt/cni/bin")
CNI_PLUGINS = ("ptp", "host-local", "loopback", "tuning")
KUBELET_FOLDER = "/var/lib/kubelet"  # In the node's own mount namespace.


class NodeNamespaces:
    """Held open by descriptors of the supervisor: they outlive whatever runs in them."""

    def __init__(self, name, address, folder):
        script = pathlib.Path(__file__).with_name("node.sh")
        setup = subprocess.Popen(["unshare", "--mount", "--net", "--uts", "--", "/bin/sh", str(script), name, address,
                                  NETWORK, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        ready = setup.stdout.readline()
        if ready.strip() == "ready":
            self.mount, self.net, self.uts = (os.open(f"/proc/{setup.pid}/ns/{kind}", os.O_RDONLY)
                                              for kind in ("mnt", "net", "uts"))
        _, errors = setup.communicate()
        if ready.strip() != "ready":
            reason = (errors.strip() or "no reason given").splitlines()[-1]
            raise Refusal(f"cannot make the namespaces of {name}: {reason}")

    def enter(self):
        """To be put before a command. Not `ip netns exec`, which remounts /sys: the kubelet would find no control
        groups."""
        held = f"/proc/{os.getpid()}/fd"
        return ["nsenter", f"--mount={held}/{self.mount}", f"--net={held}/{self.net}", f"--uts={held}/{self.uts}", "--"]


def cni_folder():
    for folder in CNI_FOLDERS:
        if all(os.access(os.path.join(folder, plugin), os.X_OK) for plugin in CNI_PLUGINS):
            return folder
    raise Refusal(f"missing: the CNI plugins {', '.join(CNI_PLUGINS)} in {' or '.join(CNI_FOLDERS)};"
                  " run ./setup --testbed (package containernetworking-plugins)")


def write_files(layout, node, folder, authority):
    """The configuration of the three servers. `folder` is the node's, as it is named inside."""
    (folder / "cni").mkdir(parents=True)
    (folder / "containerd.toml").write_text(containerd_config(folder), encoding="utf-8")
    (folder / "cni" / "10-pods.conflist").write_text(cni_config(node), encoding="utf-8")
    (folder / "kubelet.yaml").write_text(kubelet_config(layout, node, folder, authority), encoding="utf-8")
    (folder / "proxy.yaml").write_text(proxy_config(node, authority), encoding="utf-8")


def containerd_config(folder):
    # The opt plugin would make /opt/containerd on the machine; the others only log that they cannot work.
    unused = ["internal.v1.opt", "snapshotter.v1.aufs", "snapshotter.v1.btrfs", "snapshotter.v1.devmapper",
              "snapshotter.v1.zfs"]
    return f"""version = 2
root = "/var/lib/containerd"
state = "{folder}/containerd"
disabled_plugins = {json.dumps([f"io.containerd.{name}" for name in unused])}
[grpc]
  address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{images.PAUSE}"
  # Where we may not lower the score (no CAP_SYS_RESOURCE) runc would fail with "can't get final child's PID".
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni_folder()}"
    conf_dir = "{folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter(folder)}"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
"""


def snapshotter(folder):
    """overlayfs cannot lie upon overlayfs, which is what containers and some live systems have."""
    kind = subprocess.run(["stat", "--file-system", "--format=%T", str(folder)], capture_output=True, text=True,
                          check=True).stdout.strip()
    return "native" if kind in ("overlayfs", "overlay") else "overlayfs"


def cni_config(node):
    # Routed, not bridged: with a bridge an answer from a pod on the same node would bypass the node's NAT, and services
    # would only work with br_netfilter. A kept connection that was idle for 200 ms sends as before, not a few packets a
    # round trip (as in node.sh): over a continuum's delays a payload of 100 kB would else take three round trips more.
    return json.dumps({"cniVersion": "0.4.0", "name": "pods", "plugins": [{
        "type": "ptp", "mtu": 1500,
        "ipam": {"type": "host-local", "dataDir": "/var/lib/cni/networks",
                 "ranges": [[{"subnet": node.pod_cidr}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }, {"type": "tuning", "sysctl": {"net.ipv4.tcp_slow_start_after_idle": "0"}}]})


def kubelet_config(layout, node, folder, authority):
    # Block style: a file that begins with { is taken for JSON, in which it is an error to say what YAML may.
    return f"""apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: {node.address}
cgroupDriver: cgroupfs
cgroupRoot: {cgroups.kubelet_root(layout.name, node.name)}
failCgroupV1: false
failSwapOn: false
authentication:
  anonymous: {{enabled: false}}
  x509: {{clientCAFile: {authority.certificate("ca")}}}
tlsCertFile: {authority.certificate(node.name)}
tlsPrivateKeyFile: {authority.key(node.name)}
clusterDNS: [{DNS_ADDRESS}]
clusterDomain: cluster.local
resolvConf: ""
containerRuntimeEndpoint: unix://{folder}/containerd.sock
enforceNodeAllocatable: []
makeIPTablesUtilChains: false
volumePluginDir: {KUBELET_FOLDER}/volume-plugins
# All nodes share one disk and one memory: its fullness is no reason to evict.
imageGCHighThresholdPercent: 100
evictionHard: {{memory.available: "0%", nodefs.available: "0%", imagefs.available: "0%", nodefs.inodesFree: "0%"}}
"""


def proxy_config(node, authority):
    return f"""apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {{kubeconfig: {authority.kubeconfig_file("kube-proxy")}}}
hostnameOverride: {node.name}
clusterCIDR: {POD_CIDR}
# Of the whole machine, and not ours to change.
conntrack: {{maxPerCore: 0, min: 0, tcpCloseWaitTimeout: 0s, tcpEstablishedTimeout: 0s}}
"""


def commands(node, folder, namespaces, programs, authority):
    """Name of the component -> command."""
    labels = [f"{LAYER_LABEL}={node.layer}", f"{ZONE_LABEL}={node.layer}"] if node.layer else []
    kubelet = [programs / "kubelet", f"--config={folder}/kubelet.yaml", f"--kubeconfig={authority.kubeconfig_file(node.name)}",
               f"--root-dir={KUBELET_FOLDER}", f"--hostname-override={node.name}", f"--node-ip={node.address}"]
    if labels:
        kubelet.append(f"--node-labels={','.join(labels)}")
    enter = namespaces.enter()
    return {
        f"containerd@{node.name}": [*enter, "containerd", "--config", folder / "containerd.toml"],
        f"kubelet@{node.name}": [*enter, *kubelet],
        f"kube-proxy@{node.name}": [*enter, programs / "kube-proxy", f"--config={folder}/proxy.yaml"],
    }


def import_command(folder, namespaces, archive):
    return [*namespaces.enter(), "ctr", "--address", str(folder / "containerd.sock"), "--namespace", "k8s.io",
            "images", "import", "--snapshotter", snapshotter(folder), str(archive)]
