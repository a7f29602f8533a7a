#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The controller as its users run it, on the simulated cluster: run, decisions, explain, status, pause, resume.

RUDDERFISH names the program; default: build/release/rudderfish.
"""
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

TOP = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = pathlib.Path(os.environ.get("RUDDERFISH", TOP / "build/release/rudderfish")).resolve()
SCENARIO = TOP / "scenarios/continuum-7x21.yaml"
EXAMPLE = TOP / "examples/continuum"
KILLS = int(os.environ.get("RUDDERFISH_KILLS", "5"))

CONFIG = """rudderfish: config/v1
cluster: {{scenario: {scenario}, seed: 7{cluster}}}
decisions: {{migration: {{policy: greedy, baseline: stay, interval: 50ms, rest: 10min{migration}}}}}
{more}"""


class Run(unittest.TestCase):
    def setUp(self):
        self.maxDiff = None
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.configure()

    def configure(self, cluster="", more="", migration=""):
        (self.folder / "rudderfish.yaml").write_text(
            CONFIG.format(scenario=SCENARIO, cluster=cluster, more=more, migration=migration), encoding="utf-8")

    def ask(self, *arguments, status=0):
        done = subprocess.run([PROGRAM, *arguments], cwd=self.folder, stdin=subprocess.DEVNULL, timeout=60, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, status, f"{arguments}\n{done.stdout}\n{done.stderr}")
        if status:
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
            return done.stderr
        return done.stdout

    def rows(self):
        return json.loads(self.ask("decisions", "--limit", "1000000", "-o", "json"))["decisions"]

    @contextlib.contextmanager
    def running(self, *arguments):
        with open(self.folder / "log", "ab") as log, subprocess.Popen(
                [PROGRAM, "run", *arguments], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process:
            try:
                self.wait_for(lambda: self.status(fine=False) is not None, process)
                yield process
            finally:
                process.kill()
                process.wait()

    def status(self, fine=True):
        done = subprocess.run([PROGRAM, "status", "-o", "json"], cwd=self.folder, stdout=subprocess.PIPE, check=False,
                              stderr=subprocess.DEVNULL, timeout=60)
        if done.returncode != 0 or not done.stdout:
            self.assertFalse(fine, "no status")
            return None
        answer = json.loads(done.stdout)
        return answer if answer["running"] else None

    def wait_for(self, condition, process=None):
        end = time.monotonic() + 30
        while not condition():
            if process is not None:
                self.assertIsNone(process.poll(), (self.folder / "log").read_text(encoding="utf-8"))
            self.assertLess(time.monotonic(), end, (self.folder / "log").read_text(encoding="utf-8"))
            time.sleep(0.02)

    def plan_ended(self):
        return self.status()["decisions"]["migration"]["applications"][0]["plans"] > 0

    def test_a_plan_is_recorded_and_read_live_and_afterwards(self):
        with self.running() as process:
            self.wait_for(self.plan_ended)
            live = self.rows()
            self.assertGreater(len(live), 1)
            self.assertRegex(self.ask("status"), r"(?m)^continuum-7x21 .* [0-9]+ planned +0$")
            process.send_signal(signal.SIGTERM)
            began = time.monotonic()
            self.assertEqual(process.wait(timeout=10), 0)
            self.assertLess(time.monotonic() - began, 5)
        self.assertEqual(self.rows(), live)
        self.assertRegex(self.ask("status"), r"(?m)^migration  shadow when it stopped, since \S+: as configured$")
        self.assertEqual(json.loads(self.ask("status", "-o", "json"))["modes"]["migration"]["mode"], "shadow")
        self.assertEqual([row["fate"] for row in live], ["recorded"] * (len(live) - 1) + ["stayed"])
        self.assertEqual({row["mode"] for row in live}, {"shadow"})
        first = live[0]
        for terms in [first["seen"], first["predicted"], *(one["predicted"] for one in first["considered"])]:
            parts = sum(value for name, value in terms.items() if name != "latency_ms")
            self.assertAlmostEqual(terms["latency_ms"], parts, places=6)
        self.assertTrue(any("accepts no pods that are moved" in one["reason"] for one in first["refused"]))
        self.assertFalse((self.folder / "rudderfish.sock").exists())

    def test_enforce_moves_the_pods_of_a_simulated_cluster(self):
        self.configure(migration=", mode: enforce")
        with self.running():
            self.wait_for(self.plan_ended)
            application = self.status()["decisions"]["migration"]["applications"][0]
            self.assertIn(f"{application['moved']} made", self.ask("status"))
        rows = self.rows()
        self.assertEqual([row["fate"] for row in rows], ["done"] * application["moved"] + ["stayed"])
        self.assertEqual({row["mode"] for row in rows}, {"enforce"})
        self.assertEqual(application["seen"]["latency_ms"], rows[-1]["seen"]["latency_ms"])
        self.assertLess(rows[-1]["seen"]["latency_ms"], rows[0]["seen"]["latency_ms"])
        self.assertNotIn("nothing was touched", self.ask("explain", f"pod/{rows[0]['chosen'][0]['pod']}"))

    def test_explain_tells_alternatives_terms_and_refusals(self):
        with self.running():
            self.wait_for(self.plan_ended)
        moved = self.rows()[0]["chosen"][0]
        story = self.ask("explain", f"pod/{moved['pod']}")
        for word in (moved["to"], "nothing was touched", "NETWORK", "Not allowed:", "stay would choose: stay"):
            self.assertIn(word, story)
        answer = json.loads(self.ask("explain", moved["pod"], "-o", "json"))
        self.assertEqual(answer["chosen"][0]["pod"], moved["pod"])
        self.assertIn("client-1", self.ask("explain", "pod/client-1") + "client-1")
        self.assertIn("no recorded decision about pod default/nobody", self.ask("explain", "pod/nobody", status=2))
        self.assertIn("expected pod/NAME", self.ask("explain", "node/edge-1", status=2))
        self.assertIn("a name is missing", self.ask("explain", "move/", status=2))
        workload = next(one["workload"] for one in self.rows()[0]["considered"] if one["move"])
        story = self.ask("explain", f"deployment/{workload}")
        self.assertIn("Considered, the best of", story)
        self.assertIn("no recorded decision about workload default/nobody", self.ask("explain", "deploy/nobody", status=2))

    def test_decisions_of_a_time_and_wide(self):
        with self.running():
            self.wait_for(self.plan_ended)
        self.assertIn("NUMBER", self.ask("decisions", "--since", "1h"))
        self.assertIn("REASON", self.ask("decisions", "-o", "wide"))
        self.assertEqual(len(self.ask("decisions", "--limit", "1").splitlines()), 2)
        self.assertEqual(self.ask("decisions", "--application", "other"), "")
        for words, said in ((("--application", "other"), "no decision of other yet"),
                            (("--since", "1ns"), "no decision in that time")):
            done = subprocess.run([PROGRAM, "decisions", *words], cwd=self.folder, stdin=subprocess.DEVNULL, timeout=60,
                                  check=True, capture_output=True, text=True)
            self.assertEqual(done.stderr.strip(), said)

    def test_pause_holds_and_resume_goes_on(self):
        self.configure(cluster=", drift: 100ms")
        with self.running():
            self.wait_for(self.plan_ended)
            self.ask("pause")
            self.assertTrue(self.status()["paused"])
            held = len(self.rows())
            changes = self.status()["decisions"]["migration"]["applications"][0]["changes_seen"]
            self.wait_for(lambda: self.status()["decisions"]["migration"]["applications"][0]["changes_seen"] > changes + 2)
            self.assertEqual(len(self.rows()), held, "it looks on, but decides nothing")
            self.ask("resume")
            self.wait_for(lambda: len(self.rows()) > held)

    def test_a_mistake_in_the_file_does_not_keep_people_from_pausing(self):
        self.configure(more="server: {socket: s.sock}\n")
        path = self.folder / "rudderfish.yaml"
        good = path.read_text(encoding="utf-8")

        def tried(*words):
            return subprocess.run([PROGRAM, *words], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=60, check=False)

        with self.running():
            self.wait_for(self.plan_ended)
            for bad, says in ((good.replace("policy: greedy", "policy: gredy"), "gredy"), (good + "moves: 3\n", "unknown key `moves`")):
                self.assertNotEqual(bad, good)
                path.write_text(bad, encoding="utf-8")
                done = tried("pause")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(says, done.stderr)
                self.assertIn("socket s.sock", done.stderr)
                self.assertTrue(self.rows())
                self.assertEqual(tried("resume").returncode, 0)
            path.write_text("a: [", encoding="utf-8")  # Nothing can be read of it: where it listens by default.
            self.assertIn("socket rudderfish.sock", tried("pause").stderr)
            self.assertEqual(tried("pause", "--socket", "s.sock").returncode, 0)
        path.unlink()
        self.assertIn("rudderfish.yaml: not found; name the configuration with -c FILE", tried("pause").stderr)

    def test_paused_stays_paused_over_a_restart(self):
        with self.running():
            self.wait_for(self.plan_ended)
            self.ask("pause")
        with self.running():
            self.assertEqual(self.status()["decisions"]["migration"]["mode"], "off")
            self.assertRegex(self.ask("status"), r"paused     \S+ ago, by the command line; `resume` ends it")
            time.sleep(0.5)  # Ten turns.
            self.assertFalse(self.plan_ended())
            self.ask("resume")
            self.wait_for(self.plan_ended)

    def test_promotions_of_migration_outlive_the_process(self):
        with self.running() as process:
            self.wait_for(self.plan_ended)
            refused = self.ask("promote", "migration", status=2)
            self.assertIn("migration stays in shadow; missing for advise: continuum-7x21: ", refused)
            self.assertIn("a measured error of the Model: no change of the cluster has been measured yet", refused)
            self.assertIn("for advise missing: continuum-7x21: ", self.ask("status"))
            self.ask("promote", "migration", "--force")
            process.kill()
        reviewed = self.ask("run", "--dry-run")  # The mode in which it would begin, not that of the file alone.
        self.assertRegex(reviewed, r"mode +migration: advise since \S+, as the journal keeps it")
        self.assertIn("in advise moves are recorded", reviewed)
        self.configure(cluster=", drift: 50ms")
        with self.running() as process:
            migration = self.status()["decisions"]["migration"]
            self.assertEqual((migration["configured_mode"], migration["mode"]), ("shadow", "advise"))
            self.assertEqual(migration["standing"]["why"], "promoted from shadow by the command line, without evidence")
            self.wait_for(lambda: self.status()["decisions"]["migration"]["standing"]["evidence"]["applications"][0]["plans"] > 3)
            self.assertEqual(self.rows()[-1]["mode"], "advise")
            # The newest may be under way; a pod may move while the policy is asked about it.
            self.assertLessEqual({row["fate"] for row in self.rows()[:-1]}, {"recorded", "stayed", "refused"})
            self.ask("demote", "migration")
            self.assertEqual(self.status()["decisions"]["migration"]["mode"], "shadow")
            self.configure(cluster=", drift: 50ms", migration=", mode: advise")
            process.send_signal(signal.SIGHUP)
            self.wait_for(lambda: self.status()["decisions"]["migration"]["mode"] == "advise")

    def test_a_new_file_is_read_at_sighup_and_a_wrong_one_changes_nothing(self):
        with self.running() as process:
            self.wait_for(self.plan_ended)
            self.configure(migration=", mode: enforced")
            process.send_signal(signal.SIGHUP)
            log = self.folder / "log"
            self.wait_for(lambda: "configuration not reloaded" in log.read_text(encoding="utf-8"))
            self.assertIn("did you mean `enforce`", log.read_text(encoding="utf-8"))
            self.configure(more="journal: {path: other.db}\nserver: {socket: rudderfish.sock}\n")
            process.send_signal(signal.SIGHUP)
            self.wait_for(lambda: "journal cannot change at run time; restart to apply it" in log.read_text(encoding="utf-8"))
            self.configure(migration=", mode: off")
            process.send_signal(signal.SIGHUP)
            self.wait_for(lambda: "rudderfish.yaml reloaded" in log.read_text(encoding="utf-8"))
            self.assertEqual(self.status()["decisions"]["migration"]["mode"], "off")

    def test_a_file_that_is_empty_or_broken_at_sighup_is_a_line_and_changes_nothing(self):
        log = self.folder / "log"
        with self.running() as process:
            self.wait_for(self.plan_ended)
            before = self.status()
            for number, (text, says) in enumerate([
                    (b"", "is empty"), (b"rudderfish: [", "rudderfish.yaml:1:1: cannot be read as YAML: end of sequence"), (b"\0\xff\xfe", "rudderfish.yaml"),
                    (b"- a\n", "expected"), (b"rudderfish: config/v1\ncluster: {scenario: gone.yaml}\ndecisions: {migration: {}}\n", "gone.yaml")], 1):
                (self.folder / "rudderfish.yaml").write_bytes(text)
                process.send_signal(signal.SIGHUP)
                self.wait_for(lambda n=number: log.read_text(encoding="utf-8").count("configuration not reloaded") == n, process)
                self.assertIn(says, log.read_text(encoding="utf-8").splitlines()[-1])
            lines = log.read_text(encoding="utf-8").splitlines()
            self.assertEqual(sum(line.startswith("error: ") for line in lines), number, lines)
            self.configure()
            after = self.status()
            for key in ("pid", "cluster"):
                self.assertEqual(after[key], before[key])
            for key in ("mode", "policy", "configured_mode"):
                self.assertEqual(after["decisions"]["migration"][key], before["decisions"]["migration"][key])

    def live(self, server="https://127.0.0.1:1", user="{token: s3cret}", more=""):
        """The configuration of a cluster that is not there."""
        shutil.copy(EXAMPLE / "application.yaml", self.folder)
        (self.folder / "kube.conf").write_text(
            f"apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
            f"clusters: [{{name: c, cluster: {{server: '{server}'}}}}]\nusers: [{{name: u, user: {user}}}]\n", encoding="utf-8")
        (self.folder / "rudderfish.yaml").write_text(
            f"rudderfish: config/v1\ncluster: {{kubeconfig: kube.conf}}\napplications: [application.yaml]\ndecisions: {{migration: {{}}}}\n{more}",
            encoding="utf-8")

    def test_a_cluster_that_is_not_there_is_a_line(self):
        self.live()
        line = self.ask("run", status=1)
        self.assertIn("https://127.0.0.1:1", line)
        self.assertNotIn("s3cret", line)
        text = self.ask("run", "--dry-run")
        self.assertIn("reached       no, so rights were not looked at: https://127.0.0.1:1", text)
        (self.folder / "rudderfish.yaml").write_text("rudderfish: config/v1\ncluster: {kubeconfig: kube.conf}\ndecisions: {placement: {}}\n",
                                                     encoding="utf-8")
        self.assertIn("https://127.0.0.1:1", self.ask("run", status=1))
        text = self.ask("run", "--dry-run")
        self.assertIn("reached       no, so rights were not looked at: https://127.0.0.1:1", text)
        (self.folder / "kube.conf").write_text("kind: Pod\n", encoding="utf-8")
        for words in (("run",), ("run", "--dry-run")):
            self.assertIn("no kubeconfig", self.ask(*words, status=2))

    def test_an_exec_plugin_that_hangs_is_killed_and_named(self):
        self.live(user="{exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sleep, args: ['987'], "
                       "interactiveMode: Never}}")
        began = time.monotonic()
        line = self.ask("run", status=1)
        self.assertLess(time.monotonic() - began, 30)
        self.assertIn("exec plugin /bin/sleep: it gave no answer in time and was killed; run it by hand", line)
        self.assertEqual(subprocess.run(["pgrep", "-f", "^/bin/sleep 987$"], check=False, capture_output=True).stdout, b"")

    def test_what_signals_need_is_looked_at_before_anything_runs(self):
        signals = "signals: {{prometheus: ['https://127.0.0.1:1'], headers_file: {}, ca_file: {}}}\n"
        self.live(more=signals.format("door", "ca.pem"))
        self.assertIn("door: No such file", self.ask("run", "--dry-run", status=2))
        (self.folder / "door").write_text("# Who we are.\ns3cret\n", encoding="utf-8")
        line = self.ask("run", status=2)
        self.assertIn("door:2: expected `Name: value`", line)
        self.assertNotIn("s3cret", line)
        (self.folder / "door").write_text("Authorization: Bearer s3cret\n", encoding="utf-8")
        self.assertIn("ca.pem: No such file", self.ask("run", status=2))
        (self.folder / "ca.pem").write_text("s3cret\n", encoding="utf-8")
        self.assertIn("ca.pem: expected certificates in PEM", self.ask("run", status=2))
        self.live(more=signals.format("door", "''"))
        self.assertIn("`signals.ca_file`: expected a path", self.ask("run", status=2))
        self.live(more="signals: {prometheus: ['http://127.0.0.1:1'], headers_file: door}\n")
        text = self.ask("run", "--dry-run")
        self.assertIn("with headers from a file", text)
        self.assertNotIn("s3cret", text)

    def test_a_policy_of_other_features_or_of_no_network_is_refused(self):
        whole = (TOP / "policies/continuum.safetensors").read_bytes()
        at = whole.index(b'"features":"') + len(b'"features":"')
        other = bytearray(whole)
        other[at:at + 4] = b"0000" if whole[at:at + 4] != b"0000" else b"1111"
        for content, says in [(bytes(other), "trained on other features"), (whole[:-100], "other.safetensors"),
                              (b"", "other.safetensors")]:
            (self.folder / "other.safetensors").write_bytes(content)
            for words in ((), ("--dry-run",)):
                self.assertIn(says, self.ask("run", "--policy", "other.safetensors", *words, status=2))
        file = self.folder / "rudderfish.yaml"
        file.write_text(file.read_text(encoding="utf-8").replace("greedy", "gredy"), encoding="utf-8")
        self.assertRegex(self.ask("run", status=2), r"rudderfish\.yaml:3:33: .*did you mean `greedy`")
        self.assertFalse((self.folder / "rudderfish.db").exists(), "nothing is begun")

    @unittest.skipUnless(os.geteuid() == 0, "only root can mount a disk")
    def test_a_disk_that_is_full_at_the_start_is_said_and_decisions_begin_once_there_is_room(self):
        """A disk of 16 KiB, which no other process sees."""
        disk = self.folder / "disk"
        disk.mkdir()
        self.configure(more=f"journal: {{path: disk/r.db}}\nserver: {{socket: {self.folder}/rudderfish.sock}}\n")
        script = f"mount -t tmpfs -o size=16k none '{disk}' && exec '{PROGRAM}' run"
        log = self.folder / "log"
        with open(log, "wb") as output, subprocess.Popen(["unshare", "-m", "sh", "-c", script], cwd=self.folder, stdout=output,
                                                         stderr=output, stdin=subprocess.DEVNULL) as process:
            try:
                self.wait_for(lambda: self.status(fine=False) is not None, process)
                self.assertRegex(self.status()["journal_problem"], r"disk/r\.db: (the disk is full|No space left)")
                self.assertEqual(self.status()["decisions"]["migration"]["applications"][0]["decisions"], 0)
                subprocess.run(["nsenter", "-t", str(process.pid), "-m", "mount", "-o", "remount,size=8m", disk], check=True)
                self.wait_for(self.plan_ended, process)
                self.wait_for(lambda: "the journal can be written again" in log.read_text(encoding="utf-8"), process)
                self.assertEqual(self.status()["journal_problem"], "")
            finally:
                process.kill()

    @unittest.skipUnless(os.geteuid() == 0, "only root can mount a disk")
    def test_a_disk_that_fills_and_is_cleared_goes_on_where_it_was(self):
        disk = self.folder / "disk"
        disk.mkdir()
        self.configure(cluster=", drift: 1ms",
                       more=f"journal: {{path: disk/r.db}}\nserver: {{socket: {self.folder}/rudderfish.sock}}\n")
        script = f"mount -t tmpfs -o size=2m none '{disk}' && head -c 1m /dev/zero >'{disk}/other'; exec '{PROGRAM}' run"
        log = self.folder / "log"
        with open(log, "wb") as output, subprocess.Popen(["unshare", "-m", "sh", "-c", script], cwd=self.folder, stdout=output,
                                                         stderr=output, stdin=subprocess.DEVNULL) as process:
            try:
                self.wait_for(lambda: self.status(fine=False) is not None, process)
                self.wait_for(lambda: "no move is decided until" in log.read_text(encoding="utf-8"), process)
                held = self.status()["decisions"]["migration"]["applications"][0]["decisions"]
                pathlib.Path(f"/proc/{process.pid}/root{disk}/other").unlink()
                self.wait_for(lambda: self.status()["decisions"]["migration"]["applications"][0]["decisions"] > held, process)
                self.wait_for(lambda: "decides again" in log.read_text(encoding="utf-8"), process)
            finally:
                process.kill()

    def test_logs_are_json_if_asked_for(self):
        with self.running("--log-format", "json") as process:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=10)
        for line in (self.folder / "log").read_text(encoding="utf-8").splitlines():
            self.assertEqual(set(json.loads(line)), {"time", "level", "message"})
        last = json.loads(self.ask("run", "--log-format", "json", "-c", "nothing.yaml", status=2))
        self.assertEqual(last["level"], "error")
        self.assertIn("nothing.yaml", last["message"])

    def serve(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        return f'server: {{listen: "127.0.0.1:{self.port}"}}\n'

    def fetch(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metrics(self):
        status, text = self.fetch("/metrics")
        self.assertEqual(status, 200)
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines}, text

    def test_probes_and_metrics_tell_what_it_does(self):
        self.configure(cluster=", drift: 200ms", more=self.serve())
        with self.running():
            self.wait_for(lambda: self.fetch("/readyz") == (200, "ok"))
            self.assertEqual(self.fetch("/livez"), (200, "ok"))
            for check in ("loop", "cluster", "journal", "leader"):
                self.assertIn(f"[+]{check} ok", self.fetch("/readyz?verbose")[1])
            self.wait_for(lambda: self.metrics()[0].get('rudderfish_plans_total{application="continuum-7x21"}', 0) > 1)
            self.ask("pause")
            self.wait_for(lambda: self.metrics()[0]["rudderfish_paused"] == 1)
            rows = self.rows()
            told, text = self.metrics()
            for fate in {row["fate"] for row in rows}:
                name = f'rudderfish_decisions_total{{application="continuum-7x21",fate="{fate}",kind="migration"}}'
                self.assertEqual(told[name], sum(row["fate"] == fate for row in rows), name)
            self.assertEqual(told['rudderfish_mode{kind="migration",mode="off"}'], 1)
            self.assertEqual(told["rudderfish_leader"], 1)
            self.assertGreater(told["rudderfish_journal_bytes"], 0)
            self.assertGreater(told["rudderfish_turn_duration_seconds_count"], 1)
            self.assertLess(told['rudderfish_state_age_seconds{application="continuum-7x21"}'], 10)
            self.assertTrue(any(name.startswith("rudderfish_build_info") for name in told))
            if shutil.which("promtool") is None:
                self.skipTest("promtool is not installed (./setup installs it)")
            done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False, text=True)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_it_is_not_ready_while_the_journal_cannot_be_written(self):
        self.configure(cluster=", drift: 1ms", more=self.serve())
        command = f"trap '' XFSZ; ulimit -f 400; exec '{PROGRAM}' run"
        with open(self.folder / "log", "wb") as log, subprocess.Popen(
                ["bash", "-c", command], cwd=self.folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL) as process:
            try:
                self.wait_for(lambda: self.status(fine=False) is not None, process)
                self.wait_for(lambda: self.fetch("/readyz")[0] == 503 and "[-]journal failed" in self.fetch("/readyz")[1])
                self.assertEqual(self.fetch("/livez")[0], 200)
            finally:
                process.kill()

    def test_an_address_that_is_taken_is_one_line(self):
        self.configure(more=self.serve())
        with socket.create_server(("127.0.0.1", self.port)):
            self.assertIn("`server.listen`", self.ask("run", status=1))

    def test_dry_run_says_what_it_would_do_and_leaves_nothing(self):
        text = self.ask("run", "--dry-run")
        for word in ("greedy decides", "baseline for comparison: stay", "rudderfish.db", "shadow"):
            self.assertIn(word, text)
        self.assertIn("lookahead decides", self.ask("run", "--dry-run", "--policy", "lookahead"))
        self.assertEqual([path.name for path in self.folder.iterdir()], ["rudderfish.yaml"])

    def test_two_controllers_do_not_share_a_journal(self):
        with self.running():
            self.assertIn("another rudderfish listens there", self.ask("run", status=1))
            self.configure(more="server: {socket: other.sock}\n")
            self.assertIn("another rudderfish is writing it", self.ask("run", status=1))

    def test_kill_loses_no_decision_that_was_reported(self):
        """At random moments while it decides as fast as it can; what `decisions` showed before must be there."""
        # Hundreds of decisions a second: room for all, lest the oldest should make place for new ones.
        self.configure(cluster=", drift: 1ms", more="journal: {path: rudderfish.db, size: 8Gi}\n")
        chance = random.Random(7)
        seen = {}
        for _ in range(KILLS):
            with self.running() as process:
                time.sleep(chance.uniform(0, 0.3))
                shown = self.chosen(newest=1000)
                process.send_signal(signal.SIGKILL)
                process.wait()
            seen.update(shown)
            self.assertLessEqual(shown.items(), self.chosen(newest=5000).items())
        self.assertTrue(seen)
        self.assertLessEqual(seen.items(), self.chosen(newest=1_000_000).items())

    def chosen(self, newest):
        """What was decided, as text, by number; each number once."""
        rows = json.loads(self.ask("decisions", "--limit", str(newest), "-o", "json"))["decisions"]
        by_number = {row["number"]: json.dumps(row["chosen"]) for row in rows}
        self.assertEqual(len(by_number), len(rows))
        return by_number

    def test_a_client_that_says_nothing_does_not_hold_it_up(self):
        self.configure(cluster=", drift: 100ms")
        with self.running(), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as mute:
            mute.connect(str(self.folder / "rudderfish.sock"))
            before = len(self.rows())
            self.wait_for(lambda: len(self.rows()) > before)
            self.assertIsNotNone(self.status())

    def test_a_full_disk_is_said_and_nothing_is_decided(self):
        """A file that cannot grow: 400 KB."""
        self.configure(cluster=", drift: 1ms")
        command = f"trap '' XFSZ; ulimit -f 400; exec '{PROGRAM}' run"
        with open(self.folder / "log", "wb") as log, subprocess.Popen(
                ["bash", "-c", command], cwd=self.folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL) as process:
            try:
                self.wait_for(lambda: "no move is decided until" in (self.folder / "log").read_text(encoding="utf-8"), process)
                self.assertIn("no move is decided until", self.status()["decisions"]["migration"]["applications"][0]["problem"])
                kept = self.rows()
                self.assertTrue(kept)
                time.sleep(0.5)
                self.assertLessEqual(len(self.rows()), len(kept) + 1)
                lines = (self.folder / "log").read_text(encoding="utf-8").splitlines()
                self.assertLess(sum("no move is decided until" in line for line in lines), 5, "said once, not each turn")
            finally:
                process.kill()

    def test_bad_files_are_refused_in_a_line(self):
        self.assertIn("no controller is running", self.ask("pause", status=1))
        self.assertIn("there is no journal", self.ask("decisions", status=2))
        self.assertIn("nothing.yaml", self.ask("run", "-c", "nothing.yaml", status=2))
        self.assertIn("apply to a live cluster", self.ask("run", "--context", "elsewhere", status=2))
        self.assertIn("no such checkpoint or run folder", self.ask("run", "--policy", "runs/none", status=2))
        self.configure(more="scopes: {}\n")
        self.assertIn("did you mean `scope`", self.ask("run", status=2))
        self.configure(migration=", mode: canari")
        self.assertIn("`decisions.migration.mode`: no mode is called \"canari\"; did you mean `canary`", self.ask("run", status=2))
        (self.folder / "journal.db").write_bytes(b"x" * 5000)
        self.assertIn("damaged or no journal", self.ask("decisions", "--journal", "journal.db", status=2))


if __name__ == "__main__":
    if not PROGRAM.exists():
        sys.exit(f"{PROGRAM} is not there; build it or set RUDDERFISH")
    unittest.main()
