# SPDX-License-Identifier: Apache-2.0
"""The servers that are not a node's: etcd, API server, controller manager, scheduler, and KWOK where there are hollow
nodes. All listen on loopback of the testbed's own network namespace but the API server, which nodes and pods reach."""
from . import hollow, sandbox
from .layout import CONTROL_PLANE_ADDRESS, HOLLOW_LABEL, HOLLOW_POD_CIDR, SERVICE_CIDR

ETCD = "http://127.0.0.1:2379"
ETCD_PEER = "http://127.0.0.1:2380"
# The testbed's own limits should not be what is measured: in a real cluster each of these has a machine.
CLIENT_QPS, CLIENT_BURST = 5000, 10000


def etcd(programs):
    # Without fsync: the data is thrown away with the testbed, and the disk is shared.
    return [programs["etcd"] / "etcd", f"--data-dir={sandbox.FOLDER}/etcd", "--unsafe-no-fsync",
            f"--listen-client-urls={ETCD}", f"--advertise-client-urls={ETCD}", f"--listen-peer-urls={ETCD_PEER}",
            f"--initial-advertise-peer-urls={ETCD_PEER}", f"--initial-cluster=default={ETCD_PEER}",
            f"--quota-backend-bytes={4 << 30}", "--log-level=warn"]


def api_server(layout, programs, authority):
    key, certificate = authority.key, authority.certificate
    return [programs["kubernetes"] / "kube-apiserver", f"--etcd-servers={ETCD}",
            "--bind-address=0.0.0.0", f"--secure-port={layout.port}",
            f"--advertise-address={CONTROL_PLANE_ADDRESS}", f"--service-cluster-ip-range={SERVICE_CIDR}",
            f"--tls-cert-file={certificate('kube-apiserver')}", f"--tls-private-key-file={key('kube-apiserver')}",
            f"--client-ca-file={certificate('ca')}",
            "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
            f"--service-account-key-file={authority.folder}/tokens.pub",
            f"--service-account-signing-key-file={key('tokens')}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--kubelet-certificate-authority={certificate('ca')}",
            f"--kubelet-client-certificate={certificate('kubelet-client')}",
            f"--kubelet-client-key={key('kubelet-client')}",
            # Aggregated API servers and webhooks: reached at their pods, as there is no proxy beside the API server.
            "--enable-aggregator-routing=true",
            f"--requestheader-client-ca-file={certificate('front-proxy-ca')}",
            "--requestheader-allowed-names=front-proxy", "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={certificate('front-proxy')}", f"--proxy-client-key-file={key('front-proxy')}",
            # Names of nodes resolve nowhere.
            "--kubelet-preferred-address-types=InternalIP", "--allow-privileged=true",
            *audit_flags(layout), *hollow.api_server_flags(layout.hollow)]


def audit_flags(layout):
    if not layout.audit:
        return []
    return [f"--audit-policy-file={sandbox.FOLDER}/audit-policy.yaml", f"--audit-log-path={sandbox.FOLDER}/audit.log"]


def controller_manager(layout, programs, authority):
    credentials = authority.kubeconfig_file("kube-controller-manager")
    return [programs["kubernetes"] / "kube-controller-manager", f"--kubeconfig={credentials}",
            f"--authentication-kubeconfig={credentials}", f"--authorization-kubeconfig={credentials}",
            "--leader-elect=false", "--bind-address=127.0.0.1", "--use-service-account-credentials=true",
            # It makes the folder where it is missing, and by default that is one of the machine's.
            f"--flex-volume-plugin-dir={sandbox.FOLDER}/volume-plugins",
            f"--service-account-private-key-file={authority.key('tokens')}",
            f"--root-ca-file={authority.certificate('ca')}",
            f"--cluster-signing-cert-file={authority.certificate('ca')}",
            f"--cluster-signing-key-file={authority.key('ca')}",
            f"--kube-api-qps={CLIENT_QPS}", f"--kube-api-burst={CLIENT_BURST}",
            f"--node-monitor-grace-period={hollow.grace_period_s(layout.hollow)}s"]


def scheduler(programs, authority):
    credentials = authority.kubeconfig_file("kube-scheduler")
    return [programs["kubernetes"] / "kube-scheduler", f"--config={sandbox.FOLDER}/scheduler.yaml",
            f"--authentication-kubeconfig={credentials}", f"--authorization-kubeconfig={credentials}",
            "--bind-address=127.0.0.1"]


def scheduler_config(authority):
    return f"""apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {{leaderElect: false}}
clientConnection:
  kubeconfig: {authority.kubeconfig_file("kube-scheduler")}
  qps: {CLIENT_QPS}
  burst: {CLIENT_BURST}
"""


def further_scheduler(config, kubeconfig, serves):
    """A configuration of somebody's with what lets it run beside the cluster's own scheduler."""
    return (f"{config.rstrip()}\nleaderElection: {{leaderElect: false}}\nclientConnection: {{kubeconfig: {kubeconfig}, "
            f"qps: {CLIENT_QPS}, burst: {CLIENT_BURST}}}\nprofiles: [{{schedulerName: {serves}}}]\n")


def kwok(layout, programs, authority):
    files = sorted(programs["kwok"].glob("*.yaml"))
    return [programs["kwok"] / "kwok", f"--kubeconfig={authority.kubeconfig_file('admin')}",
            f"--config={sandbox.FOLDER}/kwok.yaml", *(f"--config={file}" for file in files), "--v=WARN",
            "--manage-all-nodes=false", f"--manage-nodes-with-label-selector={HOLLOW_LABEL}=true",
            f"--cidr={HOLLOW_POD_CIDR}", f"--node-ip={CONTROL_PLANE_ADDRESS}", f"--node-port={hollow.KWOK_PORT}",
            f"--server-address={CONTROL_PLANE_ADDRESS}:{hollow.KWOK_PORT}",
            f"--node-lease-duration-seconds={hollow.lease_s(layout.hollow)}"]


def write_files(layout, authority):
    server = f"https://127.0.0.1:{layout.port}"
    for client in ("admin", "kube-controller-manager", "kube-scheduler"):
        authority.write_kubeconfig(client, server)
    if layout.audit:
        (sandbox.FOLDER / "audit-policy.yaml").write_text(layout.audit, encoding="utf-8")
    (sandbox.FOLDER / "kwok.yaml").write_text(hollow.kwok_config(), encoding="utf-8")
    (sandbox.FOLDER / "scheduler.yaml").write_text(scheduler_config(authority), encoding="utf-8")
