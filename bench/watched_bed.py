# SPDX-License-Identifier: Apache-2.0
"""`rudderfish run` on the testbed of bench/moving, and a Prometheus that measures what the users' device waits."""
import json
import subprocess

from live_bed import free_port
from moving_bed import CLIENT_PORT, PROGRAM, end

WINDOW_S = 20  # Over which Prometheus takes the mean.
LATENCY = ('1000 * sum(rate(app_request_seconds_sum{call="0"}[%ds])) / sum(rate(app_request_seconds_count{call="0"}[%ds]))'
           % (WINDOW_S, WINDOW_S))


class Watched:
    """`migration` is what its decisions say; `application` is a file, that of what is played if none is named."""

    def __init__(self, bed, folder, migration, application=None):
        self.folder, self.started = folder, []
        relay, page, prometheus = folder / "users.sock", free_port(), free_port()
        for name, lines, around in (
                ("there", (f"bind unix@{relay} mode 666", f"server users 127.0.0.1:{CLIENT_PORT}"), True),
                ("here", (f"bind 127.0.0.1:{page}", f"server users unix@{relay}"), False)):
            file = folder / f"{name}.cfg"
            file.write_text("defaults\n  mode http\n  timeout connect 2s\n  timeout client 1m\n  timeout server 1m\nlisten users\n  " +
                            "\n  ".join(lines) + "\n", encoding="utf-8")
            words = ("haproxy", "-db", "-f", str(file))
            self.started.append(bed.started_on("client-1", *words, log=subprocess.DEVNULL) if around else self.start(*words))
        (folder / "prometheus.yaml").write_text(json.dumps({"global": {"scrape_interval": "2s"}, "scrape_configs": [
            {"job_name": "users", "static_configs": [{"targets": [f"127.0.0.1:{page}"]}]}]}), encoding="utf-8")
        self.start_kept("prometheus", f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/data",
                        f"--web.listen-address=127.0.0.1:{prometheus}")
        signals = {"prometheus": [f"http://127.0.0.1:{prometheus}"], "period": "5s",
                   "queries": {"users_latency_ms": {"per": "cluster", "query": LATENCY}},
                   "latency": {"users_latency_ms": {"application": bed.played.space, "window": f"{WINDOW_S}s"}}}
        (folder / "rudderfish.yaml").write_text(json.dumps({
            "rudderfish": "config/v1", "cluster": {"kubeconfig": str(bed.kubeconfig)}, "scope": {"namespaces": [bed.played.space]},
            "applications": [str((application or bed.played.file).resolve())], "signals": signals, "decisions": {"migration": migration},
            "journal": {"path": "j.db"}, "server": {"socket": "s.sock"}}), encoding="utf-8")
        with (folder / "log").open("w", encoding="utf-8") as log:
            self.started.append(subprocess.Popen([PROGRAM, "run"], cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                 start_new_session=True))

    def start(self, *words):
        return subprocess.Popen(words, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                start_new_session=True)

    def start_kept(self, *words):
        self.started.append(self.start(*words))

    def status(self):
        done = subprocess.run([PROGRAM, "status", "-o", "json"], cwd=self.folder, capture_output=True, text=True, check=False, timeout=60)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def application(self):
        status = self.status()
        return status["decisions"]["migration"]["applications"][0] if status else None

    def correction(self):
        found = (self.status() or {}).get("corrections") or []
        return found[0] if found else None

    def end(self):
        for process in reversed(self.started):
            end(process)
