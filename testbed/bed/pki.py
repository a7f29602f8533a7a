# SPDX-License-Identifier: Apache-2.0
"""Certificates of a testbed: one authority, one certificate for each server and client, as a real cluster has them, so
that node authorisation, RBAC and aggregated API servers work as they do there. Each `up` makes new ones."""
import base64
import concurrent.futures
import json
import subprocess

from .errors import Refusal
from .layout import API_SERVICE_ADDRESS, CONTROL_PLANE_ADDRESS

DAYS = "3650"
KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc"]  # Made in a millisecond.
SERVICE_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")

# Name of the file -> subject. Groups (O) are what Kubernetes' own roles are bound to.
CLIENTS = {
    "admin": "/O=system:masters/CN=admin",
    "kubelet-client": "/O=system:masters/CN=kube-apiserver-kubelet-client",
    "kube-controller-manager": "/CN=system:kube-controller-manager",
    "kube-scheduler": "/CN=system:kube-scheduler",
    "kube-proxy": "/CN=system:kube-proxy",
}


class Authority:
    def __init__(self, folder):
        self.folder = folder

    def make(self, nodes):
        """All keys and certificates; some twenty short commands, side by side."""
        self.folder.mkdir(mode=0o700)
        for name, subject in (("ca", "/CN=testbed"), ("front-proxy-ca", "/CN=testbed-front-proxy")):
            self.openssl("req", "-x509", *KEY, "-days", DAYS, "-subj", subject, "-keyout", self.key(name),
                         "-out", self.certificate(name))
        names = ",".join([f"IP:127.0.0.1,IP:{CONTROL_PLANE_ADDRESS},IP:{API_SERVICE_ADDRESS},DNS:localhost",
                          *(f"DNS:{name}" for name in SERVICE_NAMES)])
        wanted = [("kube-apiserver", "/CN=kube-apiserver", "serverAuth", names, "ca"),
                  ("front-proxy", "/CN=front-proxy", "clientAuth", "", "front-proxy-ca")]
        wanted += [(name, subject, "clientAuth", "", "ca") for name, subject in CLIENTS.items()]
        # A kubelet is a client of the API server and a server to it.
        wanted += [(node.name, f"/O=system:nodes/CN=system:node:{node.name}", "clientAuth,serverAuth",
                    f"IP:{node.address},DNS:{node.name}", "ca") for node in nodes]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            tokens = pool.submit(self.make_token_key)
            list(pool.map(lambda what: self.issue(*what), wanted))
            tokens.result()

    def issue(self, name, subject, usage, names, issuer):
        extensions = ["-addext", f"extendedKeyUsage={usage}", "-addext", "basicConstraints=critical,CA:false"]
        if names:
            extensions += ["-addext", f"subjectAltName={names}"]
        self.openssl("req", "-x509", *KEY, "-days", DAYS, "-subj", subject, *extensions, "-CA",
                     self.certificate(issuer), "-CAkey", self.key(issuer), "-keyout", self.key(name), "-out",
                     self.certificate(name))

    def make_token_key(self):
        """What signs the tokens of ServiceAccounts."""
        self.openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out",
                     self.key("tokens"))
        self.openssl("pkey", "-in", self.key("tokens"), "-pubout", "-out", str(self.folder / "tokens.pub"))

    def key(self, name):
        return str(self.folder / f"{name}.key")

    def certificate(self, name):
        return str(self.folder / f"{name}.crt")

    def openssl(self, *arguments):
        done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Refusal(f"openssl {arguments[0]}: {(done.stderr.strip() or 'failed').splitlines()[-1]}")

    def kubeconfig_file(self, client):
        return str(self.folder / f"{client}.kubeconfig")

    def write_kubeconfig(self, client, server):
        with open(self.kubeconfig_file(client), "w", encoding="utf-8") as file:
            file.write(self.kubeconfig(client, server))

    def kubeconfig(self, client, server):
        """With everything inside, so that it is right wherever it is read. JSON is YAML."""

        def content(path):
            with open(path, "rb") as file:
                return base64.b64encode(file.read()).decode()

        return json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "testbed",
            "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": client}}],
            "clusters": [{"name": "testbed", "cluster": {
                "server": server, "certificate-authority-data": content(self.certificate("ca"))}}],
            "users": [{"name": client, "user": {
                "client-certificate-data": content(self.certificate(client)),
                "client-key-data": content(self.key(client))}}],
        }, indent=1) + "\n"
