#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program as its users run it: every command, and every bad input with its one line, exit status and no debris.

RUDDERFISH names the program; default: build/release/rudderfish.
"""
import csv
import http.server
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import xml.etree.ElementTree as ElementTree

TOP = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = pathlib.Path(os.environ.get("RUDDERFISH", TOP / "build/release/rudderfish")).resolve()
SCENARIO = TOP / "scenarios/continuum-7x21.yaml"
IS_SANITIZED = bool(os.environ.get("RUDDERFISH_SANITIZED"))
PATIENCE = 6 if IS_SANITIZED else 1  # What is long in a release build is minutes under a sanitizer.
REACH = TOP / "tests/data/reach-like"
DUMP = TOP / "tests/data/kube-dump/shop.json"
APPLICATION = TOP / "tests/data/kube-dump/shop-application.yaml"
STEPS = "16384"


class Cli(unittest.TestCase):
    def setUp(self):
        self.maxDiff = None
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def run_cli(self, *arguments, stdin=None, **environment):
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, input=stdin,
                              stdin=subprocess.DEVNULL if stdin is None else None, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env={**os.environ, **environment}, timeout=300 * PATIENCE, check=False,
                              text=True)

    def succeed(self, *arguments, status=0):
        done = self.run_cli(*arguments)
        self.assertEqual(done.returncode, status, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def refuse(self, *arguments, says=(), status=2):
        """One line on stderr that says what; nothing on stdout; no file that was not there."""
        before = self.listing()
        done = self.run_cli(*arguments)
        self.assertEqual(done.returncode, status, f"{arguments}\n{done.stdout}\n{done.stderr}")
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertEqual(done.stdout, "")
        for word in [says] if isinstance(says, str) else says:
            self.assertIn(word, done.stderr)
        self.assertEqual(self.listing(), before, "debris was left behind")
        return done.stderr

    def listing(self):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*"))

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def short_redis(self):
        shutil.copytree(TOP / "scenarios/traces", self.folder / "traces")
        text = (TOP / "scenarios/redis.yaml").read_text(encoding="utf-8")
        return self.write("short.yaml", re.sub(r"duration: 1h", "duration: 6m", text))

    def changed_scenario(self, old, new, name="bad.yaml", count=1):
        text = SCENARIO.read_text(encoding="utf-8")
        self.assertIn(old, text)
        return self.write(name, text.replace(old, new, count))

    def train(self, folder="run", scenario=SCENARIO, *more):
        self.succeed("train", scenario, "-d", folder, "--steps", STEPS, "--threads", "2", "--seed", "3", "-q", *more)
        return folder

    def start_training(self, folder, steps, *more):
        process = subprocess.Popen([PROGRAM, "train", SCENARIO, "-d", folder, "--steps", steps, "--threads", "2", *more],
                                   cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            if list((self.folder / folder).rglob("config.yaml")):
                time.sleep(0.7)  # In the middle: all of it takes some seconds.
                break
            time.sleep(0.01)
        return process

    def reach_starts(self):
        return REACH / "start_states.jsonl"

    def reach_scenario(self, patterns="line,fan"):
        self.succeed("import", "reach", REACH, "--config", "6-17", "--pattern", patterns, "-o", "reach.yaml")
        return "reach.yaml"

    def change_start(self, change):
        """The first start state, changed, as a file."""
        start = json.loads(self.reach_starts().read_text(encoding="utf-8").splitlines()[0])
        change(start)
        return self.write("starts.jsonl", json.dumps(start) + "\n")


class Commands(Cli):
    def test_version_is_one_line(self):
        self.assertRegex(self.succeed("version"), r"\Arudderfish \d+\.\d+\.\d+[^\n]*\n\Z")

    def test_help_lists_the_commands_and_each_has_its_own(self):
        text = self.succeed("help")
        for command in ("import", "train", "evaluate", "simulate", "inspect", "bench", "completion", "version", "help"):
            self.assertRegex(text, rf"(?m)^\s+{command}\b")
            self.assertTrue(self.succeed(command, "--help").strip())
        self.assertIn("--policy", self.succeed("help", "evaluate"))

    def test_policies_lists_names_with_their_options(self):
        text = self.succeed("policies")
        for line in (r"MOVE +DESCRIPTION", r"PLACE +DESCRIPTION", r"SCALE +DESCRIPTION", r"greedy +the single move that reduces latency most",
                     r"hpa +the HorizontalPodAutoscaler of Kubernetes", r"  cpu=80 +target CPU utilization.*\(a percentage from 1 to 1000\)"):
            self.assertRegex(text, rf"(?m)^{line}")
        self.assertNotIn("hpa", self.succeed("policies", "--task", "move"))
        listed = json.loads(self.succeed("policies", "-o", "json"))["policies"]
        self.assertEqual({policy["task"] for policy in listed}, {"move", "place", "scale", "route"})
        by_name = {(policy["task"], policy["name"]): policy for policy in listed}
        self.assertEqual(len(by_name), len(listed))
        self.assertIn(("place", "kube-default"), by_name)
        options = {option["key"]: option for option in by_name["scale", "hpa"]["options"]}
        self.assertEqual(options["down"] | {"description": ""},
                         {"key": "down", "type": "duration", "default": "300s", "accepts": "a duration from 0s to 24h",
                          "minimum": 0, "maximum": 86400000, "description": ""})
        self.assertEqual(options["policies"]["values"], ["default", "fast", "gentle"])
        self.assertEqual([policy["name"] for policy in json.loads(self.succeed("policies", "--task", "scale", "-o", "json"))["policies"]],
                         [name for task, name in by_name if task == "scale"])
        # Each is one that commands take.
        for (task, name), policy in by_name.items():
            if task == "move" and policy["example"] == name and name != "exact":
                self.succeed("simulate", SCENARIO, "--policy", name, "-o", "json")
        self.refuse("policies", "--task", "mov", says="did you mean `move`")

    def test_completion_scripts_parse_in_their_shells(self):
        missing = []
        for shell in ("bash", "zsh", "fish"):
            script = self.write(f"completion.{shell}", self.succeed("completion", shell))
            if shutil.which(shell) is None:
                missing.append(shell)
                continue
            done = subprocess.run([shell, "-n", self.folder / script], stderr=subprocess.PIPE, check=False, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), shell)
        if missing:
            self.skipTest(f"not installed: {', '.join(missing)}; the other scripts parse")

    def complete(self, *words):
        """What bash offers for the last word."""
        script = "source <(\"$0\" completion bash); COMP_WORDS=(rudderfish \"$@\"); COMP_CWORD=$#; _rudderfish; " \
                 "printf '%s\\n' \"${COMPREPLY[@]}\""
        done = subprocess.run(["bash", "-c", script, PROGRAM, *words], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False, text=True)
        self.assertEqual(done.stderr, "")
        return set(done.stdout.split())

    def test_completion_in_bash_offers_what_fits(self):
        self.write("scenario.yaml", "")
        self.assertEqual(self.complete("eva"), {"evaluate"})
        self.assertEqual(self.complete("evaluate", "--po"), {"--policy"})
        self.assertEqual(self.complete("train", "--algorithm", ""), {"ppo", "dqn", "a2c", "recurrent-ppo", "es"})
        self.assertEqual(self.complete("train", "--encoder", "g"), {"gcn", "gatv2"})
        self.assertEqual(self.complete("train", "--preset", "drs"), {"drs-code", "drs-paper"})
        self.assertEqual(self.complete("train", "--preset", "gym"), {"gym-hpa-cost", "gym-hpa-latency"})
        self.assertEqual(self.complete("evaluate", "-o", "j"), {"json"})
        self.assertEqual(self.complete("evaluate", "--policy", "gr"), {"greedy", "greenest"})
        (self.folder / "runs").mkdir()
        self.assertEqual(self.complete("evaluate", "--policy", "r"), {"random", "round-robin", "runs"})
        self.assertEqual(self.complete("help", "com"), {"completion"})
        self.assertEqual(self.complete("serve", "re"), {"reach"})
        self.assertEqual(self.complete("import", "re"), {"reach"})
        self.assertEqual(self.complete("bench", "ker"), {"kernel"})
        self.assertEqual(self.complete("inspect", "sc"), {"scenario.yaml"})
        self.assertEqual(self.complete("completion", ""), {"bash", "zsh", "fish"}, "no files")
        self.assertEqual(self.complete("evaluate", "--policy", "stay,gr"), {"stay,greedy", "stay,greenest"})
        self.assertEqual(self.complete("import", "reach", "ru"), {"runs"})

    def test_import_writes_a_scenario_that_inspect_describes(self):
        scenario = self.reach_scenario()
        text = self.succeed("inspect", scenario)
        self.assertIn("6-17", text)
        self.assertIn("fraud", text)

    def test_import_of_one_pattern_holds_only_that(self):
        one = self.reach_scenario("fan")
        self.assertNotIn("line:", (self.folder / one).read_text(encoding="utf-8"))

    def test_inspect_refuses_start_states_that_are_wrong_in_themselves(self):
        lines = (REACH / "start_states.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        self.write("ghost.jsonl", lines[0] + re.sub(r'("pods".*?"node": ?")[^"]*', r"\1ghost", lines[1], count=1))
        self.refuse("inspect", "ghost.jsonl", says='ghost.jsonl:2: pods[0].node: no node of the line is called "ghost"')
        self.write("full.jsonl", lines[0] + re.sub(r'"cpu_free": ?[0-9.]+', '"cpu_free": -0.5', lines[1], count=1))
        self.refuse("inspect", "full.jsonl", says="full.jsonl:2: nodes[0].cpu_free: below 0: the pods there request more than")
        self.write("cut.jsonl", lines[0] + lines[1][:100])
        self.assertRegex(self.refuse("inspect", "cut.jsonl"), r"cut\.jsonl:2:\d+: ")
        self.write("empty.yaml", "\n")
        self.refuse("inspect", "empty.yaml", says="is empty; expected a scenario, a checkpoint or start states")

    def test_inspect_knows_every_kind_of_file(self):
        run = self.train()
        for path in (SCENARIO, run, f"{run}/best.safetensors", f"{run}/last.safetensors", self.reach_starts()):
            self.assertTrue(self.succeed("inspect", path).strip(), path)

    def test_lists_are_printed_as_yaml_and_as_names_too(self):
        self.assertEqual(self.succeed("policies", "--task", "scale", "-o", "name").splitlines(),
                         [policy["name"] for policy in
                          json.loads(self.succeed("policies", "--task", "scale", "-o", "json"))["policies"]])
        self.assertIn("continuum-7x21", self.succeed("scenario", "list", "-o", "name").splitlines())
        self.assertRegex(self.succeed("scenario", "list", "-o", "yaml"), r"(?m)^schema_version: 1\nscenarios:\n  - name: ")
        names = self.succeed("snapshot", "-A", "--from", DUMP, "-o", "name").splitlines()
        self.assertIn("node/cloud-a", names)
        self.assertIn("deployment/web", names)
        self.assertRegex(self.succeed("snapshot", "--from", DUMP, "-o", "yaml"), r"(?m)^  - name: cloud-a$")
        self.refuse("snapshot", "-A", "-n", "shop", "--from", DUMP, says=("--namespace", "--all-namespaces"))

    def test_an_evaluation_that_is_stopped_prints_what_is_complete(self):
        process = subprocess.Popen([PROGRAM, "evaluate", SCENARIO, "--policy", "greedy,lookahead:time=20ms", "--episodes", "2000",
                                    "--threads", "2", "-o", "json"], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        time.sleep(3 * PATIENCE)
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=100 * PATIENCE)
        if process.returncode == 1:  # Not one episode was complete by then.
            self.assertIn("stopped before an episode was complete", said)
            return
        self.assertEqual(process.returncode, 130, said)
        first, second = json.loads(out)["policies"]
        self.assertEqual(len(first["episodes"]), len(second["episodes"]))
        self.assertLess(len(first["episodes"]), 2000)
        self.assertIn(f"Stopped; the result is that of the first {len(first['episodes'])} of 2000 episodes", said)

    def test_snapshot_of_a_dump_says_what_it_holds(self):
        seen = json.loads(self.succeed("snapshot", "--from", DUMP, "-o", "json"))
        nodes = {node["name"]: node for node in seen["nodes"]}
        self.assertEqual(nodes["cloud-a"]["free"], {"cpu_millis": 6750, "memory_bytes": 29.75 * 2**30})
        self.assertEqual(nodes["edge-c"]["closed_because"], "cordoned")
        self.assertEqual(len(seen["pods"]), 6)
        workloads = {workload["name"]: workload for workload in seen["workloads"]}
        self.assertEqual((workloads["web"]["kind"], workloads["web"]["replicas"], workloads["web"]["ready"]),
                         ("Deployment", 3, 3))
        self.assertTrue(workloads["web"]["movable"])
        self.assertIn("StatefulSet", workloads["db"]["not_movable_because"][0])
        self.assertIn("DaemonSet", seen["not_seen"])
        self.assertTrue(all(source["age_s"] >= 0 for source in seen["sources"]))
        table = self.succeed("snapshot", "--from", DUMP)
        self.assertIn("Deployment/web", table)
        self.assertNotIn("BECAUSE", table)
        wide = self.succeed("snapshot", "--from", DUMP, "-o", "wide", "--application", APPLICATION)
        self.assertIn("cordoned", wide)
        self.assertIn("Application shop: complete", wide)
        self.assertEqual(wide.splitlines()[-1], f"Seen in {DUMP}")

    def test_snapshot_names_what_the_application_holds(self):
        held = APPLICATION.read_text(encoding="utf-8").replace("web: {object", "web: {movable: false, object")
        self.write("held.yaml", held)
        seen = json.loads(self.succeed("snapshot", "--from", DUMP, "--application", "held.yaml", "-o", "json"))
        because = {workload["name"]: workload["not_movable_because"] for workload in seen["workloads"]}
        self.assertEqual(because["web"], ["the application file says so"])
        self.assertEqual(because["cart"], [])

    def test_init_writes_a_first_configuration_that_runs_and_loads(self):
        self.succeed("init", "-d", "new", "-n", "shop", "--from", DUMP)
        wide = self.succeed("snapshot", "--from", DUMP, "-o", "wide", "--application", "new/application.yaml")
        self.assertIn("Application cluster: complete", wide)
        self.succeed("profile", "--from", DUMP, "--application", "new/application.yaml", "-o", "shop.yaml")
        described = self.succeed("run", "--config", "new/rudderfish.yaml", "--dry-run", "--kubeconfig", "none")
        self.assertIn("shadow", described)
        # What it names in comments, once the application is completed.
        config = (self.folder / "new/rudderfish.yaml").read_text(encoding="utf-8")
        for line in ("migration: {", "applications: [", "scope: {"):
            self.assertIn("# " + line, config)
            config = config.replace("# " + line, line)
        self.write("new/both.yaml", config)
        self.assertRegex(self.succeed("run", "--config", "new/both.yaml", "--dry-run", "--kubeconfig", "none"), r"application +cluster: 4 workloads")
        self.refuse("init", "-d", "new", "--from", DUMP, says="new/rudderfish.yaml exists; use --force to overwrite it")
        self.succeed("init", "-d", "new", "--from", DUMP, "--force")

    def test_manifests_play_the_calls_of_an_application(self):
        continuum = TOP / "examples/continuum/application.yaml"
        text = self.succeed("manifests", continuum, "--replicas", "1,detection=4", "--cpu", "db=250m", "--app", "dies")
        for part in ("call 1 aggregator 100000 cloud=2 edge=3 device=3", "group 1 2", "node edge- edge", "shared",
                     "minAvailable: 4", "cpu: 250m", '"--term", "0"'):
            self.assertIn(part, text)
        self.assertEqual(text.count("kind: Deployment"), 4)
        self.succeed("manifests", continuum, "-d", "new", "--node-names", "cloud=c,edge=e,device=d")
        self.assertIn("node e edge", (self.folder / "new/manifests.yaml").read_text(encoding="utf-8"))
        self.refuse("manifests", continuum, "--replicas", "detecton=4", says="did you mean `detection`")
        self.refuse("manifests", continuum, "--replicas", "0", says="--replicas: expected a number from 1")
        self.refuse("manifests", continuum, "--cpu", "fast", says="--cpu")
        self.refuse("manifests", continuum, "--node-names", "egde=e", says="did you mean `edge`")
        self.refuse("manifests", continuum, "--seed", "2", says="--seed")

    def test_manifests_of_a_scenario_are_those_of_its_episode(self):
        self.succeed("manifests", SCENARIO, "-d", "episode", "--cpu", "100m")
        written = (self.folder / "episode/manifests.yaml").read_text(encoding="utf-8")
        self.assertEqual(written, self.succeed("manifests", SCENARIO, "--cpu", "100m"))
        self.assertIn("node edge-3 tb-edge-vm-4", written)
        self.assertIn("edge -> client delay ", (self.folder / "episode/network.links").read_text(encoding="utf-8"))
        # The file of the application gives the same calls.
        again = self.succeed("manifests", "episode/application.yaml")
        calls = re.compile(r"^  calls: \|\n((?:    .*\n)+)", re.M)
        self.assertEqual(sorted(calls.search(again)[1].splitlines()), sorted(calls.search(written)[1].splitlines()))
        self.assertNotEqual(written, self.succeed("manifests", SCENARIO, "--cpu", "100m", "--seed", "7"))
        self.succeed("manifests", SCENARIO, "-d", "chain", "--pattern", "chain")
        self.assertNotIn("parallel", (self.folder / "chain/application.yaml").read_text(encoding="utf-8"))
        self.refuse("manifests", SCENARIO, "--pattern", "chian", says="did you mean `chain`")
        self.refuse("manifests", "chain/application.yaml", "--pattern", "chain", says="--pattern: nothing is drawn")
        self.refuse("manifests", TOP / "scenarios/drs-even.yaml", says="pods come and go")

    def test_load_reports_latencies_in_all_and_by_part_of_the_run(self):
        class Answers(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(500 if self.path == "/fails" else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            target = f"http://127.0.0.1:{server.server_port}"
            report = json.loads(self.succeed("load", "--target", target, "--rate", "40", "--for", "1s", "--every", "500ms", "-o", "json"))
            random = json.loads(self.succeed("load", "--target", target, "--rate", "200", "--for", "2s", "--arrivals", "poisson", "-o", "json"))
            again = json.loads(self.succeed("load", "--target", target, "--rate", "200", "--for", "2s", "--arrivals", "poisson", "-o", "json"))
            failed = self.run_cli("load", "--target", f"{target}/fails", "--rate", "10", "--for", "1s", "-o", "json")
            server.shutdown()
        self.assertEqual((report["sent"], report["answered"], report["failed"]), (40, 40, 0))
        self.assertEqual([(window["from_s"], window["answered"]) for window in report["windows"]], [(0, 20), (0.5, 20)])
        # So many as come at random, the same each time: 400, give or take five standard deviations.
        self.assertEqual((report["arrivals"], random["arrivals"], random["sent"]), ("even", "poisson", again["sent"]))
        self.assertTrue(300 < random["sent"] < 500 and random["sent"] != 400, random["sent"])
        self.assertLessEqual(report["latency_ms"]["mean"], report["latency_ms"]["max"])
        self.assertEqual(failed.returncode, 1)
        self.assertEqual(json.loads(failed.stdout)["failures"], {"HTTP 500": 10})
        self.assertIsNone(json.loads(failed.stdout)["latency_ms"])

    def test_a_namespace_that_is_not_there_is_named_with_the_nearest(self):
        self.write("namespaces.json", '{"kind": "NamespaceList", "items": [{"metadata": {"name": "shop"}}]}')
        self.assertIn("Deployment/web", self.succeed("snapshot", "-n", "shop", "--from", DUMP, "namespaces.json"))
        self.refuse("snapshot", "-n", "shpo", "--from", DUMP, "namespaces.json",
                    says="no namespace is called `shpo`; did you mean `shop`?")

    def test_profile_of_a_dump_loads_trains_and_evaluates(self):
        self.succeed("profile", "--from", DUMP, "--application", APPLICATION, "-o", "shop.yaml", "--starts", "seen.jsonl")
        start = json.loads((self.folder / "seen.jsonl").read_text(encoding="utf-8"))
        self.assertEqual([node["name"] for node in start["nodes"]],
                         ["cloud-a", "cloud-b", "edge-a", "edge-b", "edge-c", "external-client"])
        self.assertEqual(start["nodes"][3]["cpu_free"], 1.68)
        self.train("shop", "shop.yaml")
        answer = json.loads(self.succeed("evaluate", "shop.yaml", "--policy", "greedy", "--starts", "seen.jsonl",
                                         "-o", "json"))
        self.assertTrue(answer)
        self.succeed("simulate", "shop.yaml", "--policy", "greedy", "--starts", "seen.jsonl")

    def test_profile_without_an_application_still_makes_a_scenario(self):
        done = self.run_cli("profile", "--from", DUMP, "-n", "shop", "-o", "shop.yaml", "--anonymize")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Not known: who calls whom", done.stderr)
        text = (self.folder / "shop.yaml").read_text(encoding="utf-8")
        for name in ("cloud", "edge", "web", "cart", "shop"):
            self.assertNotIn(name, text)
        self.train("blind", "shop.yaml")
        self.succeed("evaluate", "shop.yaml", "--policy", "greedy", "--episodes", "2")

    def test_train_fills_a_run_folder(self):
        run = self.folder / self.train()
        for name in ("config.yaml", "metrics.csv", "timing.csv", "best.safetensors", "last.safetensors", "train.log"):
            self.assertGreater((run / name).stat().st_size, 0, name)
        self.assertTrue(list(run.glob("events.out.tfevents.*")))
        rows = list(csv.DictReader(io.StringIO((run / "metrics.csv").read_text(encoding="utf-8"))))
        self.assertGreater(len(rows), 1)

    def test_train_by_dqn_fills_a_run_folder(self):
        run = self.folder / self.train("dqn", SCENARIO, "--algorithm", "dqn")
        self.assertTrue((run / "last.safetensors").exists())
        self.succeed("evaluate", SCENARIO, "--policy", "dqn", "--episodes", "5")

    def test_train_by_a2c_and_another_encoder(self):
        run = self.train("gcn", SCENARIO, "--algorithm", "a2c", "--encoder", "gcn")
        self.assertIn("encoder gcn", self.succeed("inspect", run))
        self.assertIn("encoder gcn", self.succeed("inspect", f"{run}/last.safetensors"))
        self.succeed("evaluate", SCENARIO, "--policy", run, "--episodes", "5")
        self.refuse("train", "--resume", "-d", run, "--encoder", "mlp", says=["encoder: gcn", "encoder: mlp"])

    def test_train_as_an_earlier_system_is_recorded_and_evaluated_for_any_objective(self):
        test2 = TOP / "scenarios/thesis-test2.yaml"
        self.succeed("train", test2, "--preset", "thesis-ee", "-d", "ee", "--steps", "400", "-q",
                     "--set", "dqn.gamma=0.95,network.hidden=32")
        config = (self.folder / "ee/config.yaml").read_text(encoding="utf-8")
        for line in ("preset: thesis-ee", "gamma: 0.95", "hidden: 32", "warm_up_samples: 300", "steps: 400"):
            self.assertIn(line, config)
        self.assertIn("thesis-ee", self.succeed("inspect", "ee/best.safetensors"))
        self.succeed("evaluate", test2, "--objective", "balance", "--policy", "learned=ee", "--episodes", "2")
        self.refuse("train", "--resume", "-d", "ee", "--preset", "thesis-lb", says="--preset")
        self.write("live.yaml", "rudderfish: config/v1\ndecisions: {placement: {mode: shadow, policy: ./ee}}\n")
        self.refuse("run", "--config", "live.yaml", "--dry-run", says=["live.yaml:2:", "--preset thesis-ee"])
        self.succeed("train", test2, "--preset", "thesis-el-rl", "-d", "el-rl", "--steps", "400", "-q")
        self.refuse("evaluate", TOP / "scenarios/drs-even.yaml", "--policy", "el-rl", "--episodes", "2", says="arrivals.users")

    def test_presets_that_do_not_suit_are_refused(self):
        drs = TOP / "scenarios/drs-even.yaml"
        self.refuse("train", drs, "-d", "x", "--preset", "drs-cod", says="did you mean `drs-code`")
        self.refuse("train", drs, "-d", "x", "--preset", "thesis-el-rl", says="arrivals.users")
        self.refuse("train", drs, "-d", "x", "--preset", "thesis-lc", says="measured: {connections: N}")
        self.refuse("train", drs, drs, "-d", "x", "--preset", "drs-code", says="train them apart")
        self.refuse("train", SCENARIO, "-d", "x", "--preset", "drs-code", says="places pods that come and go")
        self.refuse("train", TOP / "scenarios/redis.yaml", "--task", "scale", "-d", "x", "--preset", "drs-code", says="--task scale")
        self.refuse("train", drs, "-d", "x", "--preset", "drs-code", "--set", "dqn.gama=1", says="did you mean `gamma`")
        self.refuse("train", drs, "-d", "x", "--set", "dqn", says="KEY=VALUE")

    def test_scaling_as_an_earlier_system_is_trained_and_evaluated_beside_ours(self):
        short = self.short_redis()
        train = ("train", short, "--task", "scale", "--load", "ramp", "-q")
        for preset, more in (("gym-hpa-cost", ()), ("gym-hpa-latency", ("--algorithm", "a2c")),
                             ("graph-gym-hpa-slo", ("--algorithm", "recurrent-ppo"))):
            self.succeed(*train, "--preset", preset, "-d", preset, "--steps", "1024", *more)
            self.assertIn(f"preset: {preset}", (self.folder / preset / "config.yaml").read_text(encoding="utf-8"))
            self.assertIn(f"trained as {preset}", self.succeed("inspect", preset))
            shown = self.succeed("inspect", f"{preset}/best.safetensors")
            self.assertIn("as an earlier system saw it", shown)
            self.assertIn(preset, shown)
        done = self.run_cli("evaluate", short, "--task", "scale", "--load", "ramp", "--episodes", "2", "-o", "json", "--policy",
                            "hold,hpa:cpu=60,cost=./gym-hpa-cost,latency=./gym-hpa-latency,graph=./graph-gym-hpa-slo")
        self.assertIn(done.returncode, (0, 3), done.stderr)
        self.assertIn("trained as gym-hpa-cost", done.stderr)
        for name in ("cost", "latency", "graph"):
            self.assertIn(f'"{name}"', done.stdout)
        # It goes on as it was, and is for no other task.
        self.refuse("train", "--resume", "-d", "gym-hpa-cost", "--preset", "gym-hpa-latency", says="--preset")
        self.refuse("evaluate", SCENARIO, "--policy", "./gym-hpa-cost", "--episodes", "2", says="task scaling")
        for preset, more, says in (("gym-hpa-cst", (), "did you mean `gym-hpa-cost`"), ("thesis-ee", (), "preset for placement"),
                                   ("gym-hpa-cost", ("--violations", "1%"), "has no limit"),
                                   ("gym-hpa-cost", ("--load", "rmp"), "ramp")):
            self.refuse("train", short, "--task", "scale", "-d", "x", "--preset", preset, *more, says=says)
        self.refuse("train", SCENARIO, "-d", "x", "--preset", "gym-hpa-cost", says="--task scale")
        self.refuse("train", SCENARIO, "--task", "scale", "-d", "x", "--preset", "gym-hpa-cost", says="has no `load`")

    def test_train_of_several_seeds_groups_in_evaluate(self):
        self.succeed("train", SCENARIO, "-d", "seeds", "--steps", "8192", "--seeds", "2", "-q")
        answer = json.loads(self.succeed("evaluate", SCENARIO, "--policy", "learned=seeds/seed-1:seeds/seed-2",
                                         "--episodes", "4", "-o", "json"))
        self.assertEqual([policy["name"] for policy in answer["policies"]], ["learned"])

    def test_train_gives_the_same_bytes_for_any_number_of_threads(self):
        for threads in ("1", "2", "3"):
            self.succeed("train", SCENARIO, "-d", threads, "--steps", STEPS, "--seed", "5", "--threads", threads, "-q")
        for name in ("metrics.csv", "last.safetensors", "best.safetensors"):
            contents = {(self.folder / threads / name).read_bytes() for threads in ("1", "2", "3")}
            self.assertEqual(len(contents), 1, name)

    def test_interrupted_training_resumes_to_the_same_bytes(self):
        steps = "32768" if IS_SANITIZED else "196608"
        self.succeed("train", SCENARIO, "-d", "whole", "--steps", steps, "--seed", "9", "--threads", "1", "-q")
        for number, name in ((signal.SIGTERM, "term"), (signal.SIGINT, "int"), (signal.SIGKILL, "kill")):
            process = self.start_training(name, steps, "--seed", "9")
            process.send_signal(number)
            _, errors = process.communicate(timeout=60 * PATIENCE)
            if number != signal.SIGKILL:
                self.assertIn(b"--resume", errors)
                self.assertEqual(process.returncode, 0, "all is saved")
            if (self.folder / name / "last.safetensors").exists():
                self.succeed("inspect", f"{name}/last.safetensors")
            self.succeed("train", SCENARIO, "-d", name, "--resume", "--steps", steps, "-q")
            for file in ("metrics.csv", "last.safetensors", "best.safetensors"):
                self.assertEqual((self.folder / name / file).read_bytes(), (self.folder / "whole" / file).read_bytes(),
                                 f"{name}: {file}")

    def test_evaluate_prints_a_table_a_csv_and_json(self):
        arguments = ("evaluate", SCENARIO, "--policy", "stay,greedy", "--episodes", "20", "--seed", "4")
        table = self.succeed(*arguments)
        self.assertIn("greedy", table)
        rows = list(csv.reader(io.StringIO(self.succeed(*arguments, "-o", "csv"))))
        self.assertGreater(len(rows), 1)
        self.assertEqual({len(row) for row in rows}, {len(rows[0])})
        answer = json.loads(self.succeed(*arguments, "-o", "json"))
        self.assertEqual(answer["schema_version"], 1)
        self.assertEqual(answer["seed"], 4)
        self.assertEqual(answer["objective"]["unit"], "ms")
        self.assertEqual([policy["name"] for policy in answer["policies"]], ["stay", "greedy"])
        self.assertLessEqual({"better", "baseline", "candidate", "paired_difference", "paired_difference_ci95",
                              "probability_of_improvement", "text"}, set(answer["verdict"]))
        self.assertTrue(answer["verdict"]["better"])
        for policy in answer["policies"]:
            self.assertEqual(len(policy["episodes"]), 20)
            self.assertLessEqual({"p50", "p99"}, set(policy["decide_us"]))
            self.assertLessEqual({"mean_initial", "mean_final", "ci95", "worst", "moves"}, set(policy["summary"]))
            for number, episode in enumerate(policy["episodes"]):
                self.assertLessEqual({"start", "initial", "final", "terms", "allowed_actions", "return", "decisions"}, set(episode))
                self.assertEqual(episode["start"], number)
                for decision in episode["decisions"]:
                    self.assertLessEqual({"kind", "pod", "from", "to", "predicted"}, set(decision))
                    self.assertEqual(decision["kind"], "migrate")
        stay, greedy = answer["policies"]
        for one, other in zip(stay["episodes"], greedy["episodes"]):
            self.assertEqual(one["initial"], other["initial"], "the same starts for every policy")
            self.assertEqual(one["final"], one["initial"])
            self.assertLessEqual(other["final"], other["initial"])

    def test_evaluate_says_not_better_by_its_exit_status(self):
        answer = json.loads(self.succeed("evaluate", SCENARIO, "--policy", "greedy,stay", "--episodes", "20", "-o", "json",
                                         status=3))
        self.assertFalse(answer["verdict"]["better"])
        self.assertEqual(answer["verdict"]["baseline"], "greedy")
        self.assertEqual(answer["verdict"]["candidate"], "stay")

    def test_evaluate_of_one_policy_has_no_verdict(self):
        answer = json.loads(self.succeed("evaluate", SCENARIO, "--policy", "stay", "--episodes", "3", "-o", "json"))
        self.assertIsNone(answer.get("verdict"))

    def test_evaluate_runs_every_policy(self):
        run = self.train()
        policies = ["stay", "random", "kube-default", "least-allocated", "most-allocated", "greedy", "lookahead", run,
                    f"learned={run}", f"{run}/last.safetensors", f"lookahead:run={run}", f"best-of:samples=4,run={run}"]
        for policy in policies:
            self.succeed("evaluate", SCENARIO, "--policy", policy, "--episodes", "2", "-q")

    def test_commas_stand_between_policies_and_between_options(self):
        policies = "greedy,lookahead:width=8,patience=2,wide=lookahead:width=16,time=50ms"
        answer = json.loads(self.succeed("evaluate", SCENARIO, "--policy", policies, "--episodes", "3", "-o", "json",
                                         status=3))
        self.assertEqual([policy["name"] for policy in answer["policies"]],
                         ["greedy", "lookahead:width=8,patience=2", "wide"])
        self.succeed("simulate", SCENARIO, "--policy", "lookahead:width=8,patience=2", "--seed", "2")

    def test_evaluate_from_given_starts_reads_them_by_line(self):
        scenario = self.reach_scenario()
        answer = json.loads(self.succeed("evaluate", scenario, "--policy", "greedy", "--starts", self.reach_starts(), "-o", "json"))
        starts = [json.loads(line) for line in self.reach_starts().read_text(encoding="utf-8").splitlines()]
        episodes = answer["policies"][0]["episodes"]
        self.assertEqual([episode["start"] for episode in episodes], list(range(len(starts))))
        for episode, start in zip(episodes, starts):
            if "latency_ms" in start:
                self.assertAlmostEqual(episode["initial"], start["latency_ms"], delta=1e-9)
                self.assertEqual(episode["allowed_actions"], start["allowed_actions"])

    def test_evaluate_selects_the_starts_that_fit(self):
        scenario = self.reach_scenario("fan")
        self.refuse("evaluate", scenario, "--policy", "stay", "--starts", self.reach_starts(), says=["line", "--select"])
        answer = json.loads(self.succeed("evaluate", scenario, "--policy", "stay", "--starts", self.reach_starts(),
                                         "--select", "config=6-17,pattern=fan", "-o", "json"))
        lines = self.reach_starts().read_text(encoding="utf-8").splitlines()
        fitting = [i for i, line in enumerate(lines) if json.loads(line)["pattern"] == "fan"]
        self.assertEqual([episode["start"] for episode in answer["policies"][0]["episodes"]], fitting)

    def test_evaluate_writes_one_self_contained_page(self):
        self.succeed("evaluate", SCENARIO, "--policy", "stay,greedy", "--episodes", "10", "--report", "report.html", "-q")
        page = (self.folder / "report.html").read_text(encoding="utf-8")
        self.assertIn("<svg", page)
        self.assertNotRegex(page, r"(src|href)=\"(https?:)?//")

    def test_simulate_explains_every_move(self):
        text = self.succeed("simulate", SCENARIO, "--policy", "greedy", "--seed", "7")
        for word in ("execution", "network", "queueing"):
            self.assertIn(word, text)
        self.assertEqual(text, self.succeed("simulate", SCENARIO, "--policy", "greedy", "--seed", "7"))

    def test_simulate_selects_a_start_that_fits(self):
        arguments = ("simulate", self.reach_scenario("fan"), "--policy", "greedy", "--starts", self.reach_starts())
        lines = self.reach_starts().read_text(encoding="utf-8").splitlines()
        fitting = [i for i, line in enumerate(lines) if json.loads(line)["pattern"] == "fan"]
        other = next(i for i in range(len(lines)) if i not in fitting)
        self.refuse(*arguments, "--line", other, says=(f"{self.reach_starts()}:{other + 1}: pattern",
                                                       "`--select config=6-17,pattern=fan`"))
        select = ("--select", "config=6-17,pattern=fan")
        self.assertEqual(json.loads(self.succeed(*arguments, *select, "-o", "json"))["start"], fitting[0])
        self.assertEqual(self.succeed(*arguments, *select, "--line", fitting[1]),
                         self.succeed(*arguments, "--line", fitting[1]))
        self.refuse(*arguments, *select, "--line", other, says=[f"start {other} ", f"{fitting[0]}, {fitting[1]}"])
        self.refuse("simulate", SCENARIO, "--policy", "greedy", *select, says=["--select", "--starts"])

    def test_scenarios_are_listed_shown_and_checked(self):
        table = self.succeed("scenario", "list")
        self.assertEqual(len(table.splitlines()), 1 + len(list((TOP / "scenarios").glob("*.yaml"))))
        rows = {row["name"]: row for row in json.loads(self.succeed("scenario", "list", "-o", "json"))["scenarios"]}
        self.assertEqual(rows["continuum-7x21"]["nodes"], 7)
        self.assertEqual(rows["continuum-7x21"]["patterns"], 3)
        self.assertTrue(rows["thesis-test1"]["arrivals"])
        self.assertEqual(self.succeed("scenario", "show", "continuum-7x21"), self.succeed("inspect", SCENARIO))
        self.assertEqual(json.loads(self.succeed("scenario", "schema")),
                         json.loads((TOP / "scenarios/scenario.schema.json").read_text(encoding="utf-8")))
        bad = self.changed_scenario("seed:", "sead:")
        self.assertEqual(self.succeed("scenario", "validate", SCENARIO), f"{SCENARIO}: valid\n")
        self.refuse("scenario", "validate", bad, says=["bad.yaml:", "sead", "seed"])
        worse = self.changed_scenario("seed:", "sid:", "worse.yaml")
        done = self.run_cli("scenario", "validate", bad, SCENARIO, worse)
        self.assertEqual((done.returncode, done.stdout), (2, f"{SCENARIO}: valid\n"))
        self.assertEqual(["bad.yaml" in line or "worse.yaml" in line for line in done.stderr.splitlines()], [True, True])
        for arguments, says in ((("list", "x"), "takes no file"), (("show",), "one file"), (("validate",), "takes files"),
                                (("lst",), "list"), (("show", "continuum-7x22"), "continuum-7x22")):
            self.refuse("scenario", *arguments, says=says)

    def experiment(self):
        return self.write("small.yaml", f"""experiment: small
episodes: 8
scenarios: [{SCENARIO}]
policies: [stay, random, greedy]
variants:
  as-shipped: {{}}
  near: {{latency.edge.cloud: 10ms}}
""")

    def test_an_experiment_is_the_same_however_it_was_run(self):
        file = self.experiment()
        table = self.succeed("experiment", file, "-d", "one", "--threads", "1")
        self.assertEqual(len(table.splitlines()), 1 + 2 * 2)
        metrics = (self.folder / "one/metrics.csv").read_text(encoding="utf-8")
        rows = list(csv.DictReader(io.StringIO(metrics)))
        self.assertEqual(len(rows), 2 * 3 * 8)
        self.assertEqual({row["variant"] for row in rows}, {"as-shipped", "near"})
        # As if it had been killed while it filed the second cell.
        shutil.copytree(self.folder / "one", self.folder / "two")
        for gone in ("metrics.csv", "report.json"):
            (self.folder / "two" / gone).unlink()
        cell = self.folder / "two/cells/continuum-7x21.near"
        cell.rename(cell.with_name(cell.name + "+part"))
        (cell.with_name(cell.name + "+part") / "report.html").unlink()
        report = self.succeed("experiment", file, "-d", "two", "--threads", "2", "--resume", "-o", "json")
        for name in ("metrics.csv", "report.json"):
            self.assertEqual((self.folder / "two" / name).read_bytes(), (self.folder / "one" / name).read_bytes())
        self.assertEqual(report, (self.folder / "one/report.json").read_text(encoding="utf-8"))
        self.assertEqual(sorted(path.name for path in cell.parent.iterdir()),
                         ["continuum-7x21.as-shipped", "continuum-7x21.near"])
        pairs = json.loads(report)["comparisons"]
        self.assertEqual([(pair["variant"], pair["baseline"]) for pair in pairs],
                         [("as-shipped", "stay"), ("as-shipped", "random"), ("near", "stay"), ("near", "random")])

    def test_an_experiment_killed_at_any_moment_goes_on(self):
        file = self.experiment()
        self.succeed("experiment", file, "-d", "whole", "--set", "episodes=200")
        for wait in (0.02, 0.1, 0.3):
            process = subprocess.Popen([PROGRAM, "experiment", file, "-d", "killed", "--set", "episodes=200", "-q",
                                        *(["--resume"] if (self.folder / "killed/provenance.json").exists() else [])],
                                       cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            time.sleep(wait)
            process.kill()
            process.wait()
        resume = ["--resume"] if (self.folder / "killed/provenance.json").exists() else []
        self.succeed("experiment", file, "-d", "killed", "--set", "episodes=200", *resume)
        self.assertEqual((self.folder / "killed/metrics.csv").read_bytes(), (self.folder / "whole/metrics.csv").read_bytes())

    def test_an_experiment_that_has_changed_is_not_gone_on_with(self):
        file = self.experiment()
        self.succeed("experiment", file, "-d", "out")
        self.refuse("experiment", file, "-d", "out", says=["out", "--resume"])
        self.refuse("experiment", file, "-d", "out", "--resume", "--set", "seed=2", says="the experiment itself has changed")
        replays = self.short_redis()
        self.write("s.yaml", f"experiment: s\ntask: scale\nscenarios: [{replays}]\nloads: [replay]\nepisodes: 2\n"
                   "policies: [hold, hpa]\n")
        self.succeed("experiment", "s.yaml", "-d", "replayed")
        provenance = json.loads((self.folder / "replayed/provenance.json").read_text(encoding="utf-8"))
        self.assertEqual(provenance["seed"], 1)
        self.assertEqual(len(provenance["files"]), 2)
        trace = next((self.folder / "traces").glob("*.csv"))
        trace.write_text("".join(trace.read_text(encoding="utf-8").splitlines(keepends=True)[:-1]), encoding="utf-8")
        self.refuse("experiment", "s.yaml", "-d", "replayed", "--resume", says=[f"{trace.name} has changed"])
        self.refuse("experiment", file, "-d", "other", "--resume", says="no experiment in other")
        self.refuse("experiment", file, "-d", "other", "--set", "sed=2", says=["unknown key `sed`", "`seed`"])
        self.refuse("experiment", file, "-d", "other", "--set", "seed", says="KEY=VALUE")
        self.refuse("experiment", file, "-d", "other", "--set", "policies[2]=gredy", says="greedy")
        self.write("far.yaml", (self.folder / file).read_text(encoding="utf-8").replace("latency.edge.cloud", "latency.edge.clod"))
        self.refuse("experiment", "far.yaml", "-d", "other", says=["clod", "cloud"])

    def test_bench_reports_what_was_asked(self):
        parts = {"env": {"steps_per_second_per_core"}, "train": {"env_steps_per_second", "threads", "epochs", "mflop_per_sample"},
                 "decide": {"p50_us", "p99_us"}, "kernel": {"gflops", "peak_gflops"}}
        for part, fields in parts.items():
            answer = json.loads(self.succeed("bench", part, "--scenario", SCENARIO, "--time", "1s", "-o", "json"))
            self.assertLessEqual(fields, set(answer[part]), part)
            self.assertLessEqual({"cpu", "cores", "load"}, set(answer["machine"]))

    def test_output_to_a_file_has_no_colours_or_cursor_movements(self):
        done = self.run_cli("train", SCENARIO, "-d", "plain", "--steps", "8192")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotRegex(done.stdout + done.stderr, "[\x1b\r]")

    def test_quiet_training_says_nothing(self):
        done = self.run_cli("train", SCENARIO, "-d", "quiet", "--steps", "8192", "-q")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


class Placement(Cli):
    WORLD = TOP / "scenarios/drs-even.yaml"

    def test_pods_that_come_are_placed_by_what_was_learned(self):
        self.succeed("train", self.WORLD, "--objective", "energy", "-d", "run", "--steps", "8192", "--threads", "2", "-q")
        done = self.run_cli("evaluate", self.WORLD, "--objective", "energy", "--policy", "kube-default,greedy,learned=run",
                            "--episodes", "8", "-o", "json", "-q")
        self.assertIn(done.returncode, (0, 3), done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual([policy["name"] for policy in found["policies"]], ["kube-default", "greedy", "learned"])
        self.assertEqual(found["verdict"]["baseline"], "greedy")
        self.assertEqual(found["policies"][2]["metrics"]["completed"], 100)
        self.assertLessEqual(found["policies"][2]["objective_mean"], 1.01 * found["policies"][1]["objective_mean"])
        self.assertIn("objective", self.succeed("inspect", "run"))
        self.assertIn("placement", self.succeed("inspect", "run/best.safetensors"))
        self.refuse("evaluate", self.WORLD, "--policy", "run", says="trained for the objective energy")

    def test_the_best_of_placing_is_above_its_bound_and_below_greedy(self):
        found = json.loads(self.succeed("evaluate", self.WORLD, "--policy", "greedy", "--episodes", "1", "--optimum", "-o", "json"))
        self.assertLess(found["bound"], found["best_without_moving"])
        self.assertLess(found["best_without_moving"], found["policies"][0]["objective_mean"])

    def test_an_episode_tells_where_each_pod_went_and_why(self):
        text = self.succeed("simulate", self.WORLD, "--policy", "greedy")
        self.assertEqual(text.count(" -> "), 100)
        self.assertIn("the best by greedy", text)
        episode = json.loads(self.succeed("simulate", self.WORLD, "--policy", "greedy", "-o", "json"))
        self.assertEqual(len(episode["steps"]), 100)
        for step in episode["steps"]:
            chosen = [one for one in step["considered"] if one["chosen"]]
            self.assertEqual(chosen[0]["objective_after"], min(one["objective_after"] for one in step["considered"]))

    def test_who_knows_nothing_of_limits_is_told_among_all_nodes_with_room(self):
        world = TOP / "scenarios/thesis-test1.yaml"
        told = ("simulate", world, "--objective", "balance", "--policy", "least-allocated:limits=ignore", "--alternatives", "5")
        self.assertIn("beyond its hard limit of latency, which the policy ignores", self.succeed(*told))
        steps = json.loads(self.succeed(*told, "-o", "json"))["steps"]
        self.assertEqual(len(steps), 600)
        for step in steps:
            self.assertEqual([one["node"] for one in step["considered"] if one["chosen"]], [step["node"]])
        beyond = [step for step in steps if "beyond its hard limit" in step["reason"]]
        self.assertGreater(len(beyond), 100)
        kept = json.loads(self.succeed("simulate", world, "--policy", "least-allocated", "-o", "json"))["steps"]
        self.assertFalse([step for step in kept if "beyond" in step["reason"]])

    def test_a_preset_is_refused_where_the_world_does_not_say_what_it_looks_at(self):
        self.succeed("train", TOP / "scenarios/thesis-test1.yaml", "--preset", "thesis-lc", "-d", "lc", "--steps", "400", "-q")
        self.succeed("simulate", TOP / "scenarios/thesis-test2.yaml", "--policy", "lc")
        self.refuse("simulate", self.WORLD, "--policy", "lc", says=["thesis-lc", "connections"])
        self.refuse("evaluate", self.WORLD, "--policy", "lc", says=["thesis-lc", "connections"])

    def test_a_report_of_placing_is_one_page(self):
        done = self.run_cli("evaluate", self.WORLD, "--policy", "round-robin,greedy", "--episodes", "1", "--report", "page.html")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("can be shown on 1 episode: at least 6 are needed", done.stdout)
        self.assertNotIn("1 episodes", done.stdout)
        page = (self.folder / "page.html").read_text(encoding="utf-8")
        self.assertIn("No difference shown between greedy and round-robin", page)
        self.assertIn("<svg", page)

    def test_a_world_without_a_choice_is_nothing_to_learn(self):
        text = self.WORLD.read_text(encoding="utf-8")
        begin, end = text.index("nodes:"), text.index("workloads:")
        first = next(line for line in text[begin:end].splitlines() if "type:" in line)
        self.write("one.yaml", text[:begin] + "nodes:\n" + first + "\n" + text[end:])
        self.refuse("train", "one.yaml", "-d", "run", "--time", "1s", says="there is nothing to learn")

    def test_a_scenario_with_arrivals_is_inspected(self):
        self.assertIn("Task: placement; objective balance", self.succeed("inspect", self.WORLD))
        found = json.loads(self.succeed("inspect", self.WORLD, "-o", "json"))
        self.assertEqual(found["kube_default_episode"]["arrived"], 100)
        self.assertEqual(found["patterns"], [])

    def test_pods_are_placed_near_those_they_call(self):
        shop = TOP / "scenarios/edge-shop.yaml"
        self.assertIn("find, 2/s, target 400 ms: browser > front > (search > (store, store, store), catalog)", self.succeed("inspect", shop))
        self.assertEqual(json.loads(self.succeed("inspect", shop, "-o", "json"))["patterns"][0]["name"], "shop")
        found = json.loads(self.succeed("evaluate", shop, "--objective", "calls", "--policy", "round-robin,greedy",
                                        "--episodes", "6", "-o", "json", "-q"))
        far, near = (policy["metrics"]["call_latency"] for policy in found["policies"])
        self.assertLess(near, 0.8 * far)
        # Of the worst round trip, users and cloud, 44 ms; all of it counts soon.
        self.assertAlmostEqual(found["policies"][1]["objective_mean"], near / 44, delta=0.01)
        self.assertIn("CALL ms", self.run_cli("evaluate", shop, "--policy", "greedy", "--episodes", "1").stdout)
        episode = json.loads(self.succeed("simulate", shop, "--objective", "calls:1,energy:0.5", "--policy", "greedy", "-o", "json"))
        chosen = [next(one for one in step["considered"] if one["chosen"]) for step in episode["steps"]]
        self.assertTrue(any(one["terms_after"]["calls"] > 0 for one in chosen))
        for one in chosen:
            self.assertAlmostEqual(one["objective_after"], one["terms_after"]["calls"] + 0.5 * one["terms_after"]["energy"])
        # Where pods come and go there are no moves, even if workloads call each other.
        self.refuse("bench", "env", "--scenario", shop, says=["edge-shop.yaml", "has `arrivals`"])


class Tasks(Cli):
    SERVES = {SCENARIO: ["move"], TOP / "scenarios/drs-even.yaml": ["place"], TOP / "scenarios/redis.yaml": ["move", "scale"],
              TOP / "scenarios/multicloud-16.yaml": ["route"]}
    # Each is refused, with or without a task that fits, before it computes anything.
    COMMANDS = {"evaluate": ["--policy", "no-such"], "simulate": ["--policy", "no-such"], "train": ["-d", "x", "--set", "no.such=1"],
                "calibrate": ["--policy", "hpa", "-o", "x.yaml", "--load", "no-such"]}

    def test_a_task_that_the_scenario_cannot_serve_is_refused_by_every_command(self):
        for scenario, serves in self.SERVES.items():
            for task in ("move", "place", "scale", "route"):
                lines = {command: [command, scenario, "--task", task, *more] for command, more in self.COMMANDS.items()}
                lines["bench"] = ["bench", "env", "--scenario", scenario, "--task", task, "--policy", "no-such"]
                for command, line in lines.items():
                    done = self.run_cli(*line)
                    self.assertNotEqual(done.returncode, 0, line)
                    refused = f"--task {task}: {scenario} has " in done.stderr
                    learned = command == "train" and task == "scale" and serves == ["route"]  # A tier of regions.
                    self.assertEqual(refused, task not in serves and not learned, f"{line}: {done.stderr}")

    def test_policies_that_route_are_compared_on_the_same_episodes_of_each_variant(self):
        regions = TOP / "scenarios/multicloud-16.yaml"
        evaluate = ("evaluate", regions, "--task", "route", "--episodes", "6", "--policy", "static,near=locality:full=70")
        done = self.run_cli(*evaluate, "--variant", "spot,full")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("multicloud-16, full: 16 regions, 6 episodes, seed 1", done.stdout)
        self.assertIn("near is better than static on these 6 episodes: objective -", done.stdout)
        self.assertEqual(self.run_cli(*evaluate, "--variant", "spot,full", "--threads", "1").stdout, done.stdout)
        told = json.loads(self.succeed(*evaluate, "--variant", "full", "-o", "json"))
        self.assertEqual([policy["name"] for policy in told["variants"][0]["policies"]], ["static", "near"])
        self.assertEqual(told["variants"][0]["verdict"]["finding"], "better")
        rows = self.succeed(*evaluate, "--variant", "full", "-o", "csv").splitlines()
        self.assertEqual(len(rows), 1 + 2 * 6)
        self.succeed(*evaluate, "--variant", "full", "--report", "page.html")
        page = pathlib.Path(self.folder, "page.html").read_text()
        self.assertIn("near serves full at", page)
        self.assertIn("One episode by region", page)
        for more, says in ((("--variant", "fool"), "no variant is called fool; there are calm, flash, spot, full"), (("--load", "a"), "--load: requires --task scale; this is --task route")):
            self.refuse(*evaluate, *more, says=says)
        self.refuse("evaluate", regions, "--policy", "hpa", says="the policies of the task route are static, locality")
        self.refuse("evaluate", SCENARIO, "--policy", "stay,greedy", "--variant", "full", says="--variant: requires --task route")
        self.assertIn("16 regions", self.succeed("scenario", "show", "multicloud-16"))
        self.assertIn("requests go to 16 regions", self.succeed("scenario", "list"))
        self.assertEqual(len(json.loads(self.succeed("inspect", regions, "-o", "json"))["regions"]), 16)

    def test_simulate_tells_an_episode_of_routing(self):
        regions = TOP / "scenarios/multicloud-16.yaml"
        told = self.succeed("simulate", regions, "--policy", "mpc", "--variant", "spot", "--alternatives", "2")
        self.assertRegex(told, r"multicloud-16, spot: 16 regions, decided by mpc every 60 s, episode 0 of seed 1\n")
        self.assertRegex(told, r"  0:05:00  \d[\d.]* requests/s; then objective \d\.\d{4}, \d+\.\d\d % late\n")
        self.assertRegex(told, r"one more costs \d+\.\d{3} \((nodes|egress|carbon|late|wait) \d")
        episode = json.loads(self.succeed("simulate", regions, "--policy", "mpc", "--variant", "spot", "-o", "json"))
        self.assertEqual(len(episode["steps"]), 240)
        for step in episode["steps"]:
            for origin, shares in step["services"][0]["shares"].items():
                self.assertAlmostEqual(sum(shares.values()), 1, 6, origin)
        # The same episode as the first one that is judged.
        judged = self.run_cli("evaluate", regions, "--policy", "mpc", "--variant", "spot", "--episodes", "1", "-o", "csv").stdout
        head, row = (line.split(",") for line in judged.splitlines())
        self.assertAlmostEqual(float(dict(zip(head, row))["objective"]), episode["figures"]["objective"], 4)
        several = ("simulate", TOP / "scenarios/multicloud-services.yaml", "--policy", "lp", "--regions")
        self.assertIn("search:", self.succeed(*several, "us-east4,europe-west2"))
        for more, says in ((("--variant", "calm,spot"), "--variant: name one variant"), (("--load", "a"), "--load: requires --task scale; this is --task route"),
                           (("--starts", "a"), "--starts: requires --task move"), (("--policy", "hpa"), "the policies of the task route are")):
            self.refuse("simulate", regions, *(() if "--policy" in more else ("--policy", "lp")), *more, says=says)

    def test_simulate_tells_an_episode_of_scaling(self):
        redis = TOP / "scenarios/redis.yaml"
        told = self.succeed("simulate", redis, "--policy", "hpa:cpu=60", "--load", "ramp")
        self.assertIn("redis, ramp: scaled by hpa:cpu=60 every 15 s, episode 0 of seed 1\n", told)
        self.assertRegex(told, r"  0:00:15 to 0:\d\d:\d\d  nothing changes: ")
        self.assertRegex(told, r"redis-follower 1 -> 2: \d+ % of the slots of 1 ready pod are busy with [\d.]+ calls/s; late, by the Model: "
                               r"\d+\.\d\d % with 1, \d+\.\d\d % with 2, ")
        episode = json.loads(self.succeed("simulate", redis, "--policy", "hpa:cpu=60", "--load", "ramp", "--line", "3", "-o", "json"))
        rows = self.run_cli("evaluate", redis, "--policy", "hpa:cpu=60", "--load", "ramp", "--episodes", "4", "-o", "csv").stdout.splitlines()
        judged = dict(zip(rows[0].split(","), rows[4].split(",")))
        self.assertAlmostEqual(float(judged["core_hours"]), episode["figures"]["core_hours"], 4)
        self.assertEqual(sum(len(step["changes"]) for step in episode["steps"]), episode["figures"]["changes"])
        for more, says in ((("--load", "ramp,flash"), "--load: name one load"), (("--variant", "a"), "--variant: requires --task route"),
                           (("--objective", "a"), "--objective: requires --task place; this is --task scale"), (("--load", "rmp"), "did you mean `ramp`")):
            self.refuse("simulate", redis, "--policy", "hpa:cpu=60", *more, says=says)
        self.refuse("simulate", SCENARIO, "--policy", "greedy", "--load", "ramp", says="--load: requires --task scale")

    def test_services_that_share_nodes_are_judged_together_and_each(self):
        regions = TOP / "scenarios/multicloud-services.yaml"
        names = ["web", "search", "media", "orders"]
        evaluate = ("evaluate", regions, "--variant", "full", "--episodes", "2", "--policy", "static,lp")
        self.assertIn("late % of   web  search  media  orders", self.run_cli(*evaluate).stdout)
        told = json.loads(self.run_cli(*evaluate, "-o", "json").stdout)["variants"][0]
        late = told["late_percent_by_service"]
        self.assertEqual(list(late["static"]), names)
        overall = [policy for policy in told["policies"] if policy["name"] == "static"][0]["late_percent"]
        self.assertTrue(min(late["static"].values()) <= overall <= max(late["static"].values()))
        rows = self.run_cli(*evaluate, "-o", "csv").stdout.splitlines()
        self.assertTrue(rows[0].endswith("," + ",".join(f"late_percent_{name}" for name in names)))
        self.assertEqual(len(rows[1].split(",")), len(rows[0].split(",")))
        shown = json.loads(self.succeed("scenario", "show", regions, "-o", "json"))
        self.assertEqual([one["name"] for one in shown["services"]], names)
        self.assertEqual(shown["services"][3]["store"], {"region": "europe-west3", "trips": 1})
        # A training of both tiers plays all of them, with one set of weights.
        self.succeed("train", regions, "--variant", "spot", "--rule", "mpc", "--steps", "20000", "-d", "shared")
        self.assertEqual(self.run_cli("evaluate", regions, "--variant", "spot", "--episodes", "2", "--policy",
                                      "static,shared").returncode in (0, 3), True)

    def test_an_experiment_on_routing_calibrates_trains_and_judges_each_variant_at_each_place(self):
        experiment = self.write("route.yaml", f"""experiment: route
task: route
episodes: 6
scenarios: [{TOP / "scenarios/multicloud-16.yaml"}]
region_variants: [calm, full]
places: {{home: [us-east4, europe-west3, asia-south1], four: [us-west1, us-south1, europe-west2, asia-south1]}}
calibrate: {{settings: 3, episodes: 4}}
train: {{steps: 3000, seeds: 2}}
policies: [static, locality=calibrated-locality, route=trained-route, learned=trained]
""")
        table = self.succeed("experiment", experiment, "-d", "one", "--threads", "1")
        self.assertRegex(table, r"full +four +locality +objective ")
        report = json.loads(pathlib.Path(self.folder, "one/report.json").read_text())
        self.assertEqual({pair["scenario"] for pair in report["comparisons"]}, {"calm", "full"})
        self.assertEqual({pair["metric"] for pair in report["comparisons"] if pair["judged"]}, {"objective", "late_percent"})
        self.assertEqual({pair["baseline"] for pair in report["comparisons"]}, {"static", "locality", "route"})
        self.assertTrue(pathlib.Path(self.folder, "one/trained/multicloud-16.full+route/seed-2/best.safetensors").exists())
        self.assertEqual({pair["seeds"] for pair in report["comparisons"]}, {2})
        rows = pathlib.Path(self.folder, "one/metrics.csv").read_text().splitlines()
        self.assertTrue(rows[0].startswith("file,place,changes,variant,policy,seed,episode,"), rows[0])
        self.assertEqual(len(rows), 1 + 2 * 2 * 6 * (1 + 1 + 2 + 2))
        self.assertIn("How long answers take", pathlib.Path(self.folder, "one/cells/multicloud-16.full.four/report.html").read_text())
        self.succeed("experiment", experiment, "-d", "two", "--threads", "2")
        for file in ("report.json", "metrics.csv"):
            self.assertEqual(pathlib.Path(self.folder, "one", file).read_bytes(), pathlib.Path(self.folder, "two", file).read_bytes())
        self.refuse("experiment", experiment, "-d", "x", "--set", "region_variants[0]=clam", says="there are calm, flash, spot, full, recorded")
        self.refuse("experiment", experiment, "-d", "x", "--set", "places.home[0]=us-east", says="us-east")
        self.refuse("experiment", experiment, "-d", "x", "--set", "policies[1]=calibrated-mcp", says="did you mean `mpc`")
        self.refuse("experiment", experiment, "-d", "x", "--set", "policies[2]=trained-both", says="trained, trained-route or trained-scale")
        self.refuse("experiment", experiment, "-d", "x", "--set", f"scenarios[0]={SCENARIO}", says="has no `regions`")

    def test_an_experiment_on_routing_compares_fronts_of_carbon_and_keeps_limits(self):
        text = f"""experiment: front
task: route
episodes: 6
scenarios: [{TOP / "scenarios/multicloud-16.yaml"}]
region_variants: [recorded]
places: {{two: [us-east4, northamerica-northeast1]}}
calibrate: {{settings: 6, episodes: 4}}
policies: [cheapest=calibrated-cheapest, lp=calibrated-lp]
variants:
"""
        front = self.write("front.yaml", text + "  free: {regions.objective.carbon_per_kg: 0}\n  dear: {regions.objective.carbon_per_kg: 100}\n")
        table = self.succeed("experiment", front, "-d", "one")
        self.assertIn("Cost against carbon, recorded, two:", table)
        (found,) = json.loads(pathlib.Path(self.folder, "one/report.json").read_text())["fronts"]
        self.assertEqual((found["scenario"], found["place"], found["episodes"]), ("recorded", "two", 6))
        for policy in found["policies"]:
            free, dear = policy["points"]
            self.assertEqual((free["dollars_per_ton"], dear["dollars_per_ton"]), (0, 100_000))
            self.assertTrue(0 <= policy["hypervolume"] <= 1)
        # Quebec's power is clean: at that price of carbon lp sends everything there.
        free, dear = found["policies"][1]["points"]
        self.assertLess(dear["carbon_g_per_million"], 0.5 * free["carbon_g_per_million"])
        self.assertIn("Cost against carbon: recorded, two", pathlib.Path(self.folder, "one/report.html").read_text())
        limit = self.write("limit.yaml", text + "  limit: {regions.objective.late: 0, regions.limits: '{late_percent: 3}'}\n")
        self.assertNotIn("Cost against carbon", self.succeed("experiment", limit, "-d", "two"))
        calibrated = pathlib.Path(self.folder, "two/calibrated/multicloud-16.recorded.limit+lp.yaml").read_text()
        self.assertIn("late_price=", calibrated)
        self.assertLessEqual(float(re.search(r"late_share: (\S+)", calibrated)[1]), 0.03)
        kept = "two/scenarios/limit/multicloud-16.yaml"
        self.assertIn("Limits: 3 % of requests late\n", self.succeed("scenario", "show", kept))
        self.assertEqual(json.loads(self.succeed("scenario", "show", kept, "-o", "json"))["limits"], {"late_percent": 3})
        self.refuse("experiment", limit, "-d", "three", "--set", "variants.limit={regions.limits: '{late_percent: 0.001}'}",
                    says="regions.limits.late_percent: 0.001 cannot be kept: rules that do nothing else reach 0.")
        self.assertFalse(pathlib.Path(self.folder, "three").exists())

    def test_a_policy_of_regions_is_calibrated_learned_and_judged(self):
        part = (TOP / "scenarios/multicloud-16.yaml", "--regions", "us-east4,europe-west3,asia-south1", "--variant", "spot")
        for policy in ("lp", "mpc"):
            told = self.succeed("calibrate", *part, "--policy", policy, "--settings", "6", "--episodes", "4", "-o", f"{policy}.yaml")
            self.assertIn("multicloud-16, spot: ", told)
            self.assertIn("of its grid", told)
        run = self.run_cli("train", *part, "--rule", "mpc.yaml,lp.yaml", "--episodes", "4", "--steps", "20000", "-d", "learned", "--seeds", "2")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout + run.stderr, r"seed 2: (decides; compared with|steps back to) (lp|mpc):")
        self.assertIn(f"Next: rudderfish evaluate {part[0]} {' '.join(part[1:])} --policy mpc.yaml,lp.yaml,learned=learned\n", run.stdout + run.stderr)
        for option, value in (("--rule", "lp.yaml"), ("--variant", "full"), ("--regions", "us-east4"), ("--episodes", "8")):
            self.refuse("train", "--resume", "-d", "learned", "--seeds", "2", option, value, says=[option, "--resume"])
        done = self.run_cli("evaluate", *part, "--episodes", "6", "--policy", "lp.yaml,mpc.yaml,learned=learned", "-o", "json")
        self.assertIn(done.returncode, (0, 3), done.stderr)
        told = json.loads(done.stdout)["variants"][0]
        self.assertEqual([policy["name"] for policy in told["policies"]], ["lp.yaml", "mpc.yaml", "learned"])
        # The same weights serve all regions.
        all_of_them = ("evaluate", part[0], "--variant", "spot", "--episodes", "4", "--policy", "static,learned=learned")
        self.assertIn("16 regions", self.run_cli(*all_of_them).stdout)
        # Equal seeds give equal bytes, whatever the number of threads.
        for threads in ("1", "2"):
            self.succeed("train", *part, "--episodes", "4", "--steps", "20000", "--threads", threads, "-d", f"run-{threads}")
        self.assertEqual(*((self.folder / f"run-{threads}/metrics.csv").read_bytes() for threads in ("1", "2")))
        for tier in ("route", "scale"):
            self.succeed("train", *part, "--task", tier, "--episodes", "4", "--steps", "20000", "-d", f"run-{tier}")
            self.assertIn(f"tiers: {tier}", (self.folder / f"run-{tier}/config.yaml").read_text())
        self.refuse("train", *part, "--task", "scale,move", "-d", "x", says="scale,move")
        for more in ((), ("--task", "scale")):
            self.refuse("train", *part, *more, "--load", "ramp", "-d", "x", says="--load: not for a scenario with `regions`")
        self.refuse("train", SCENARIO, "--rule", "mpc", "-d", "x", says="--rule: requires --task route; this is --task move")
        self.refuse("train", TOP / "scenarios/drs-even.yaml", "--encoder", "mlp", "-d", "x", says="--encoder: requires --task move or scale; this is --task place")
        self.refuse("calibrate", *part, "--policy", "lp", "--violations", "1%", "-o", "x.yaml", says="--violations: requires --task scale; this is --task route")
        self.refuse("calibrate", SCENARIO, "--task", "move", "--policy", "greedy", "-o", "x.yaml", says="--task move: only policies that scale or route")
        self.refuse("train", *part, "--algorithm", "ppo", "-d", "x", says="algorithm ppo: is not available for scenarios of regions; use es")
        self.refuse("train", *part, "--rule", "hpa", "-d", "x", says="--rule: ")
        self.refuse("train", *part, "--rule", "mpc,learned/seed-1", "-d", "x", says="and not a path")
        for rivals, says in (("[hpa]", "hpa"), ("[]", "routing.rivals: expected at least one policy")):
            self.refuse("train", *part, "--set", f"routing.rivals={rivals}", "-d", "x", says=says)
        told = self.succeed("inspect", "run-1")
        self.assertIn("OBJECTIVE  CHANGES", told)
        self.assertNotIn("LATENCY", told)
        self.refuse("train", part[0], "--regions", "us-east5", "-d", "x", says="did you mean `us-east4`?")
        self.refuse("calibrate", *part, "--policy", "hpa", "-o", "x.yaml", says="--policy: ")
        self.refuse("calibrate", TOP / "scenarios/redis.yaml", "--policy", "hpa", "--settings", "4", "-o", "x.yaml",
                    says="--settings: requires --task route")
        self.refuse("evaluate", TOP / "scenarios/redis.yaml", "--task", "scale", "--policy", "hpa,lp.yaml", says="lp.yaml")

    def test_one_episode_of_any_task_shows_nothing(self):
        for scenario, policies in ((SCENARIO, "stay,greedy"), (TOP / "scenarios/drs-even.yaml", "round-robin,greedy"),
                                   (TOP / "scenarios/redis.yaml", "hpa:cpu=30,hpa:cpu=32"),
                                   (TOP / "scenarios/multicloud-16.yaml", "static,locality")):
            more = ["--load", "ramp"] if "hpa" in policies else []
            done = self.run_cli("evaluate", scenario, "--policy", policies, "--episodes", "1", *more)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("at least 6 are needed", " ".join(done.stdout.split()))


class BadInput(Cli):
    def test_no_command_and_unknown_commands_are_bad_usage(self):
        self.assertEqual(self.run_cli().returncode, 2)
        self.refuse("evalute", says="evaluate")
        self.refuse("train", SCENARIO, "-d", "run", "--sede", "1", says="--sede")
        self.refuse("train", says="scenario")

    def test_an_unknown_key_is_named_with_its_place_and_neighbour(self):
        self.refuse("inspect", self.changed_scenario("accepts_moves: false", "accepts_move: false"),
                    says=["bad.yaml:13:", "accepts_move", "accepts_moves"])

    def test_a_wrong_unit_is_named_with_its_place(self):
        self.refuse("inspect", self.changed_scenario("memory: 700Mi", "memory: 700Mib"), says=["bad.yaml:", "700Mib"])
        self.refuse("inspect", self.changed_scenario("qos: 100ms", "qos: 100"), says=["bad.yaml:", "qos"])

    def test_a_cyclic_or_missing_service_is_named(self):
        self.refuse("inspect", self.changed_scenario("- machine-learning:", "- machine-lerning:"),
                    says=["machine-lerning", "machine-learning"])
        self.refuse("inspect", self.changed_scenario("- db: {data: 0.1MB}", "- detection: {data: 0.1MB}"),
                    says=["bad.yaml:", "detection"])
        folder = self.folder / "reach"
        subprocess.run(["cp", "-r", REACH, folder], check=True)
        for file in folder.glob("*_call_patterns.json"):
            file.write_text(file.read_text(encoding="utf-8").replace('"fraud"', '"nobody"'), encoding="utf-8")
        self.refuse("import", "reach", "reach", "--config", "6-17", "--pattern", "line,fan", "-o", "out.yaml", says="nobody")

    def test_a_pod_on_a_node_that_is_not_there_is_named(self):
        scenario = self.reach_scenario()
        starts = self.change_start(lambda start: start["pods"][3].update(node="nowhere-1"))
        self.refuse("evaluate", scenario, "--policy", "stay", "--starts", starts, says=["starts.jsonl:1", "nowhere-1"])

    def test_what_is_not_for_placing_pods_is_refused(self):
        world = TOP / "scenarios/thesis-test1.yaml"
        for command, *options, says in (["evaluate", "--policy", "stay,greedy", "stay"],
                                        ["evaluate", "--policy", "greedy", "--optimum", "no bound is known of another objective"],
                                        ["evaluate", "--policy", "gredy", "greedy"],
                                        ["evaluate", "--policy", "greedy", "--objective", "balanse", "balance"],
                                        ["simulate", "--policy", "greedy", "--starts", "a.jsonl", "--starts"],
                                        ["train", "-d", "run", "--time", "1s", "--objective", "energy:x", "--objective"]):
            with self.subTest(command=command, options=options):
                self.refuse(command, world, *options, says=says)
        self.refuse("evaluate", SCENARIO, "--policy", "greedy", "--objective", "energy", says="--objective")
        drs = TOP / "scenarios/drs-even.yaml"
        for command in (["evaluate", "--policy", "greedy"], ["simulate", "--policy", "greedy"], ["train", "-d", "run"]):
            for objective, lacks in (("balance:1,cost:1", "no type of node has a `price_per_hour`"), ("latency", "`arrivals.users`"),
                                     ("calls", "no `patterns` say who calls whom")):
                with self.subTest(command=command, objective=objective):
                    self.refuse(command[0], drs, *command[1:], "--objective", objective, says=["drs-even", lacks])
        experiment = self.write("cost.yaml", f"experiment: cost\ntask: place\nscenarios: [{drs}]\nobjectives: {{c: cost}}\n"
                                             "episodes: 6\npolicies: [kube-default, greedy]\n")
        self.refuse("experiment", experiment, "-d", "results", says="the objective counts cost")

    def test_policies_of_scaling_meet_the_same_requests(self):
        redis = TOP / "scenarios/redis.yaml"
        short = self.write("redis.yaml", redis.read_text(encoding="utf-8").replace("duration: 1h", "duration: 10m")
                           .replace("traces/", str(TOP / "scenarios/traces") + "/"))
        options = ["--task", "scale", "--policy", "hold,autopilot,keda,hpa:cpu=50", "--load", "ramp,flash", "--episodes", "3"]
        done = self.run_cli("evaluate", short, *options, "-o", "json", "-q")
        self.assertIn(done.returncode, (0, 3), done.stderr)
        loads = json.loads(done.stdout)["loads"]
        self.assertEqual([load["load"] for load in loads], ["ramp", "flash"])
        self.assertEqual([p["policy"] for p in loads[0]["policies"]], ["hold", "autopilot", "keda", "hpa:cpu=50"])
        self.assertEqual(loads[0]["policies"][0]["changes"], 0)
        self.assertEqual(loads[0]["comparison"]["candidate"], "hpa:cpu=50")
        rows = {}
        for threads in ("1", "2"):
            done = self.run_cli("evaluate", short, *options, "-o", "csv", "-q", "--threads", threads)
            rows[threads] = done.stdout
        self.assertEqual(rows["1"], rows["2"])
        requests = {}
        for line in rows["1"].splitlines()[1:]:
            load, _, _, episode, count = line.split(",")[:5]
            requests.setdefault((load, episode), set()).add(count)
        self.assertEqual({len(counts) for counts in requests.values()}, {1})

    def test_scaling_is_reported_and_drawn(self):
        short = self.short_redis()
        evaluate = ("evaluate", short, "--task", "scale", "--policy", "hold,hpa:cpu=60", "--load", "ramp,flash", "--episodes", "2")
        pages = []
        for threads in ("1", "2"):
            done = self.run_cli(*evaluate, "-o", "json", "--threads", threads, "--report", "page.html")
            self.assertIn(done.returncode, (0, 3), done.stderr)
            self.assertIn("Wrote page.html", done.stderr)
            pages.append((done.stdout, re.sub("--threads .", "", (self.folder / "page.html").read_text(encoding="utf-8"))))
        self.assertEqual(pages[0], pages[1])
        self.assertIn("hpa:cpu=60 beats the best of the others on", pages[0][1])
        load = json.loads(pages[0][0])["loads"][0]
        self.assertEqual(len(load["timeline"][0]["at_s"]), 24)
        self.assertEqual([one["policy"] for one in load["timeline"]], ["hold", "hpa:cpu=60"])
        self.write("e.json", pages[0][0])
        for figure, words in (("cdf", "99 % within"), ("pareto", "hypervolume"), ("timeline", "requests per second"),
                              ("replicas", "redis-leader"), ("calls", "calls/s")):
            self.succeed("plot", "e.json", "--figure", figure, "--load", "ramp", "-o", "f.svg")
            svg = (self.folder / "f.svg").read_text(encoding="utf-8")
            self.assertIn(words, "".join(ElementTree.fromstring(svg).itertext()), figure)
            self.assertNotIn("var(", svg)
        self.assertEqual(self.succeed("plot", "e.json", "--figure", "calls", "-o", "-")[:4], "<svg")
        for options, says in ((("cdf",), "ramp, flash: choose one with --load"), (("cfd", "--load", "ramp"), "did you mean `cdf`"),
                              (("cdf", "--load", "rampe"), "did you mean `ramp`"), (("learning",), "cdf, pareto, timeline"),
                              (("cdf", "--cell", "a"), "--cell")):
            self.refuse("plot", "e.json", "--figure", *options, "-o", "f.svg", says=says)
        self.refuse("plot", "e.json", "--figure", "cdf", says="--output")
        self.refuse("plot", "e.json", "-o", "f.svg", says="--figure")
        self.refuse("plot", "e.json", "--figure", "cdf", "--load", "ramp", "-o", "no/f.svg", says="no folder")
        self.write("cut.json", pages[0][0][:500])
        self.refuse("plot", "cut.json", "--figure", "cdf", "-o", "f.svg", says="cut.json:")
        self.write("bad.json", pages[0][0].replace('"core_hours": ', '"core_hours": -', 1))
        self.refuse("plot", "bad.json", "--figure", "cdf", "-o", "f.svg", says="loads[0].policies[0].core_hours")
        self.refuse("evaluate", *evaluate[1:], "--report", "no/page.html", says="no folder")

    def test_runs_and_experiments_are_drawn(self):
        self.train("short")
        self.refuse("plot", "short", "--figure", "learning", "-o", "f.svg", says="train it longer")
        self.succeed("train", SCENARIO, "-d", "run", "--steps", "140000", "-q")
        self.succeed("plot", "run", "--figure", "learning", "-o", "learning.svg")
        svg = (self.folder / "learning.svg").read_text(encoding="utf-8")
        self.assertIn("mean final latency on validation starts (ms)", "".join(ElementTree.fromstring(svg).itertext()))
        self.refuse("plot", "run", "--figure", "cdf", "-o", "f.svg", says="gives the figure learning, not cdf")
        self.write("e.yaml", f"experiment: e\nepisodes: 6\nscenarios: [{SCENARIO}]\npolicies: [stay, greedy]\n"
                   "variants: {as-shipped: {}, near: {latency.edge.cloud: 10ms}}\n")
        self.succeed("experiment", "e.yaml", "-d", "results")
        self.refuse("plot", "results", "--figure", "cdf", "-o", "f.svg", says="--cell")
        self.refuse("plot", "results", "--figure", "learning", "-o", "f.svg", says="run folder")
        cell = f"{SCENARIO.stem}.near"
        self.succeed("plot", "results", "--figure", "cdf", "--cell", cell, "-o", "f.svg")
        self.assertIn("greedy", (self.folder / "f.svg").read_text(encoding="utf-8"))
        self.refuse("plot", "results", "--figure", "pareto", "--cell", cell, "-o", "f.svg", says="gives the figure cdf")
        self.refuse("plot", ".", "--figure", "cdf", "-o", "f.svg", says="neither a run")

    def test_gym_hpa_records_and_replays(self):
        short = self.short_redis()
        record = ("gym-hpa", "record", short, "--policy", "hpa:cpu=60", "--load", "ramp", "-d", "results", "--goal", "slo")
        self.assertIn("hpa:cpu=60", self.succeed(*record))
        run = self.folder / "results/runs/hpa_env_redis_gym_totalSteps_24"
        observations = run / "redis_observation.csv"
        rows = observations.read_text(encoding="utf-8").splitlines()
        self.assertEqual({len(row.split(",")) for row in rows}, {15})
        self.assertEqual(len(rows), 24)
        results = (run / "results.csv").read_text(encoding="utf-8").splitlines()
        self.assertEqual(results[0], "episode,avg_pods,avg_latency,reward,execution_time")
        self.assertGreater(float(results[1].split(",")[2]), 0)
        self.assertRegex((run / "run.log").read_text(encoding="utf-8"),
                         r"01/01/1970 12:00:30 AM INFO \[Step 1\] \| Action .* \| Reward: .* \| Total Reward: ")
        replay = ("gym-hpa", "replay", observations, "--episodes", "20")
        rewards = {}
        for agent in ("random", "hold", "desired"):
            shown = [json.loads(self.succeed(*replay, "--agent", agent, "-o", "json")) for _ in range(2)]
            self.assertEqual(shown[0], shown[1])
            rewards[agent] = shown[0]["reward_mean"]
        self.assertGreater(rewards["desired"], rewards["random"])
        self.assertEqual(len(self.succeed(*replay, "--sampling", "last", "--goal", "latency", "-o", "csv").splitlines()), 21)
        for verb, options, says in (("replay", (observations, "--goal", "price"), "cost"), ("replay", (observations, "--load", "ramp"), "record"),
                                    ("replay", ("none.csv",), "none.csv"), ("rplay", (observations,), "replay"),
                                    ("record", (short, "--policy", "hpa"), "--dir"),
                                    ("record", (short, "--policy", "hpa,keda", "-d", "x"), "one policy"),
                                    ("record", (SCENARIO, "--policy", "hpa", "-d", "x"), "has no `load`")):
            self.refuse("gym-hpa", verb, *options, says=says)
        self.write("three.csv", "2022-03-01 12:00:05" + ",1,1,5,5,5,5,5" * 3 + "\n")
        self.refuse("gym-hpa", "replay", "three.csv", says="--scenario")
        self.write("bad.csv", rows[0] + "\n" + rows[1].replace(",", ",x", 1) + "\n")
        self.refuse("gym-hpa", "replay", "bad.csv", says="bad.csv:2:21: `num_pods`")

    def test_an_autoscaler_is_calibrated_for_one_scenario(self):
        text = (TOP / "scenarios/redis.yaml").read_text(encoding="utf-8")
        changed = re.sub(r"duration: 1h", "duration: 2m", text)
        self.assertNotEqual(changed, text)
        shutil.copytree(TOP / "scenarios/traces", self.folder / "traces")
        small = self.write("small.yaml", changed)
        options = ("--policy", "hpa", "--load", "steady", "--episodes", "16", "--violations", "2%")
        table = self.succeed("calibrate", small, *options, "-o", "hpa.yaml", "--threads", "2")
        self.assertIn("660 settings", table)
        self.succeed("calibrate", small, *options, "-o", "again.yaml", "--threads", "1")
        self.assertEqual((self.folder / "hpa.yaml").read_bytes(), (self.folder / "again.yaml").read_bytes())
        evaluate = ("--task", "scale", "--load", "steady", "--episodes", "2", "--policy", "hold,best=hpa.yaml")
        done = self.run_cli("evaluate", small, *evaluate)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        self.assertIn("best", done.stdout)
        self.assertNotIn("calibrated for", done.stderr)
        done = self.run_cli("evaluate", small, "--task", "scale", "--load", "steady,flash", *evaluate[4:])
        self.assertIn("hpa.yaml was calibrated for steady, not for flash", done.stderr)
        self.refuse("evaluate", TOP / "scenarios/redis.yaml", *evaluate, says=["hpa.yaml", "calibrate again"])
        trace = next((self.folder / "traces").glob("*.csv"))
        rows = trace.read_text(encoding="utf-8")
        trace.write_text("".join(rows.splitlines(keepends=True)[:-1]), encoding="utf-8")
        self.refuse("evaluate", small, *evaluate, says=["hpa.yaml", "and its traces", "calibrate again"])
        trace.write_text(rows, encoding="utf-8")
        for more, says in ((("--violations", "lots"), "1%"), (("--episodes", "15"), "16"), (("--load", "stedy"), "steady")):
            self.refuse("calibrate", small, "--policy", "hpa", "-o", "x.yaml", *more, says=says)
        self.refuse("calibrate", small, "--policy", "keda", "-o", "x.yaml", says="hpa")
        table = self.succeed("calibrate", small, "--policy", "mpc", *options[2:], "-o", "mpc.yaml")
        self.assertIn("24 settings", table)
        done = self.run_cli("evaluate", small, *evaluate[:-1], "hold,ahead=mpc.yaml")
        self.assertIn(done.returncode, (0, 3), done.stderr)
        self.refuse("evaluate", small, *evaluate[:-1], "hold,no.yaml", says="no.yaml")
        table = self.succeed("calibrate", small, "--policy", "static", *options[2:], "-o", "static.yaml")
        self.assertIn("50 settings", table)
        done = self.run_cli("evaluate", small, *evaluate[:-1], "hold,constant=static.yaml")
        self.assertIn(done.returncode, (0, 3), done.stderr)
        self.refuse("calibrate", small, "--policy", "hpa", "-o", "no/x.yaml", says="no folder")
        self.refuse("calibrate", SCENARIO, "--policy", "hpa", "-o", "x.yaml", says="has no `load`")

    def test_scaling_is_learned_and_evaluated(self):
        text = (TOP / "scenarios/redis.yaml").read_text(encoding="utf-8")
        shutil.copytree(TOP / "scenarios/traces", self.folder / "traces")
        small = self.write("small.yaml", re.sub(r"duration: 1h", "duration: 5m", text))
        self.succeed("train", small, "--task", "scale", "--load", "steady,ramp", "--violations", "2%", "-d", "run",
                     "--steps", "4096", "--threads", "2", "--episodes", "4")
        shown = self.succeed("inspect", "run")
        self.assertIn("steady, ramp; at most 2 % late or failed", shown)
        self.assertIn("on 4 validation episodes of each load", shown)
        self.assertIn("violations_max", self.succeed("inspect", "run/best.safetensors"))
        self.assertEqual(json.loads(self.succeed("inspect", "run", "-o", "json"))["seeds"][0]["scaling"]["loads"], ["steady", "ramp"])
        evaluate = ("--task", "scale", "--load", "steady", "--episodes", "2")
        done = self.run_cli("evaluate", small, *evaluate, "--policy", "hold,learned=run")
        self.assertIn(done.returncode, (0, 3), done.stderr)
        self.assertIn("learned", done.stdout)
        self.assertRegex(done.stderr, "learned (steps back to|the network decides)")
        done = self.run_cli("evaluate", small, *evaluate, "--policy", "hold,learned=run:run", "--on", "model")
        self.assertIn("learned (2 seeds)", done.stdout, done.stderr)
        resumed = self.run_cli("train", "--resume", "-d", "run", "--steps", "4096")
        self.assertIn("--task scale --load steady,ramp --policy hpa:cpu=60,learned=run\n", resumed.stderr, "the loads that it learned")
        trace = next((self.folder / "traces").glob("*.csv"))
        rows = trace.read_text(encoding="utf-8")
        trace.write_text("".join(rows.splitlines(keepends=True)[:-1]), encoding="utf-8")
        self.refuse("train", "--resume", "-d", "run", "--steps", "8192", says="other scenarios or traces")
        trace.write_text(rows, encoding="utf-8")
        judge = ("train", TOP / "scenarios/edge-pipeline.yaml", "--task", "scale", "--load", "ramp", "--episodes", "4", "--steps", "0")
        self.assertIn("0 steps of", self.run_cli(*judge, "--from", "run", "-d", "other").stderr)
        self.assertIn("on 4 validation episodes of each load", self.succeed("inspect", "other"))
        self.refuse(*judge, "-d", "x", says="--steps")
        self.refuse(*judge, "--from", "nowhere", "-d", "x", says="nowhere")
        self.assertFalse((self.folder / "x").exists())
        self.refuse("train", SCENARIO, "--steps", "0", "--from", "run", "-d", "x", says="needs --task scale")
        self.refuse("train", SCENARIO, "--load", "steady", "-d", "x", says="--task scale")
        self.refuse("train", small, "--task", "scale", "--load", "stedy", "-d", "x", says="steady")
        self.succeed("train", small, "--task", "scale", "--algorithm", "dqn", "-d", "dqn", "--steps", "1024", "--episodes", "4")
        self.succeed("train", small, "--task", "scale", "--load", "ramp", "--encoder", "gatv2", "-d", "graph", "--steps", "4096",
                     "--episodes", "4")
        shown = self.succeed("inspect", "graph/best.safetensors")
        self.assertIn("encoder gatv2", shown)
        self.assertIn("scaling, call graph", shown)
        self.succeed("train", small, "--task", "scale", "--load", "ramp", "--algorithm", "recurrent-ppo", "-d", "memory",
                     "--steps", "4096", "--episodes", "4")
        self.assertIn("remembers", self.succeed("inspect", "memory/best.safetensors"))
        self.assertIn(self.run_cli("evaluate", small, *evaluate, "--policy", "hold,learned=memory").returncode, (0, 3))
        self.assertIn(self.run_cli("evaluate", small, *evaluate, "--policy", "hold,learned=graph").returncode, (0, 3))
        self.refuse("train", SCENARIO, "--task", "scale", "-d", "x", says="has no `load`")
        self.succeed("train", SCENARIO, "--steps", "256", "-d", "moves")
        self.refuse("evaluate", small, *evaluate, "--policy", "hold,moves", says="trained for the task migration, not scaling")

    def test_an_experiment_on_scaling_calibrates_trains_and_judges_load_by_load(self):
        text = (TOP / "scenarios/redis.yaml").read_text(encoding="utf-8")
        shutil.copytree(TOP / "scenarios/traces", self.folder / "traces")
        self.write("small.yaml", re.sub(r"duration: 1h", "duration: 2m", text))
        experiment = self.write("e.yaml", "experiment: e\ntask: scale\nscenarios: [small.yaml]\nloads: [steady, ramp]\n"
                                "violations: 0.02\nepisodes: 3\ncalibrate: {episodes: 16}\ntrain: {steps: 4096, seeds: 2}\n"
                                "policies: [static=calibrated-static, mpc=calibrated-mpc, hpa=calibrated, learned=trained]\n")
        table = self.succeed("experiment", experiment, "-d", "one", "--threads", "1")
        self.assertRegex(table, "steady +hpa +core_hours")
        report = json.loads((self.folder / "one/report.json").read_text(encoding="utf-8"))["comparisons"]
        self.assertEqual({(pair["load"], pair["baseline"], pair["metric"]) for pair in report},
                         {(load, baseline, metric) for load in ("steady", "ramp") for baseline in ("static", "mpc", "hpa")
                          for metric in ("core_hours", "violations", "changes")})
        for pair in report:
            low, high = pair["difference_ci95"]
            self.assertEqual(pair["seeds"], 2)
            self.assertIn(pair["seeds_stepped_back"], (0, 1, 2))
            self.assertEqual(pair["seeds_stepped_back"] > 0, len(pair["stepped_back_to"]) > 0)
            self.assertEqual("step back" in table, any(other["seeds_stepped_back"] for other in report))
            if low <= 0 <= high:
                self.assertIsNone(pair["better"])
        timed = (self.folder / "one/cells/small.ramp/seconds.csv").read_text(encoding="utf-8").splitlines()
        self.assertEqual([line.split(",")[0] for line in timed],
                         ["part", "calibrate hpa", "calibrate static", "calibrate mpc", "train", "evaluate", "compare"])
        # Stopped between its cells and gone on with, by other threads: the same bytes.
        self.succeed("experiment", experiment, "-d", "two", "--threads", "2")
        for made in ("cells/small.ramp", "trained/small.ramp/seed-2"):
            shutil.rmtree(self.folder / "two" / made)
        self.succeed("experiment", experiment, "-d", "two", "--resume")
        for name in ("metrics.csv", "report.json"):
            self.assertEqual((self.folder / "one" / name).read_bytes(), (self.folder / "two" / name).read_bytes())
        self.refuse("experiment", experiment, "-d", "x", "--set", "loads[0]=stedy", says="steady")
        self.refuse("experiment", experiment, "-d", "x", "--set", "train.algorithm=acc", says="did you mean `a2c`")
        self.refuse("experiment", experiment, "-d", "x", "--set", "train.encoder=gnc", says="gcn")
        graph = self.write("graph.yaml", "experiment: e\ntask: scale\nscenarios: [small.yaml]\nloads: [ramp]\nepisodes: 3\n"
                           "calibrate: {episodes: 16}\ntrain: {steps: 2048, seeds: 1, algorithm: a2c, encoder: gcn}\n"
                           "policies: [hpa=calibrated, learned=trained]\n")
        self.succeed("experiment", graph, "-d", "graph")
        self.assertIn("encoder gcn", self.succeed("inspect", "graph/trained/small.ramp/seed-1/best.safetensors"))
        self.assertIn("algorithm: a2c", (self.folder / "graph/trained/small.ramp/seed-1/config.yaml").read_text(encoding="utf-8"))
        # Its page names both cells; networks of both are in one figure.
        page = (self.folder / "one/report.html").read_text(encoding="utf-8")
        for cell in ("small.steady", "small.ramp"):
            self.assertIn(f'<a href="cells/{cell}/report.html">', page)
        # Both cells begin with "small.", so the figure leaves that out.
        self.succeed("plot", "one", "--figure", "learning", "-o", "l.svg")
        drawn = (self.folder / "l.svg").read_text(encoding="utf-8")
        for load in ("steady", "ramp"):
            self.assertRegex(drawn, f">{load}\\b")
        self.succeed("plot", "one", "--figure", "learning", "--cell", "small.steady", "-o", "l.svg")
        drawn = (self.folder / "l.svg").read_text(encoding="utf-8")
        self.assertIn("small.steady", drawn)
        self.assertNotIn("ramp", drawn)
        self.refuse("plot", "one", "--figure", "pareto", "-o", "l.svg", says="choose one with --cell")
        # Variants are scenarios of their own: calibrated for, and judged by what is late there.
        varied = self.write("varied.yaml", "experiment: e\ntask: scale\nscenarios: [small.yaml]\nloads: [ramp]\nepisodes: 3\n"
                            "calibrate: {episodes: 16}\nvariants: {as-shipped: {}, tight: {load.limit: '{p95: 6ms}'}}\n"
                            "policies: [hold, hpa=calibrated]\n")
        self.assertRegex(self.succeed("experiment", varied, "-d", "varied"), "tight +hold +core_hours")
        report = json.loads((self.folder / "varied/report.json").read_text(encoding="utf-8"))["comparisons"]
        self.assertEqual({pair["variant"] for pair in report}, {"as-shipped", "tight"})
        late = {pair["variant"]: pair["baseline_mean"] for pair in report if pair["metric"] == "violations"}
        self.assertGreater(late["tight"], late["as-shipped"])
        self.assertIn("p95: 6ms", (self.folder / "varied/scenarios/tight/small.yaml").read_text(encoding="utf-8"))
        self.refuse("plot", "varied", "--figure", "learning", "-o", "l.svg", says="nothing was trained")
        given = self.write("given.yaml", (self.folder / "varied.yaml").read_text(encoding="utf-8").replace(
            "hpa=calibrated", "hpa=varied/calibrated/small.ramp.yaml"))
        self.refuse("experiment", given, "-d", "x", says="the variant tight changes that")
        # One pod of each is too few.
        self.write("small.yaml", re.sub(r"replicas: 1 to [0-9]+", "replicas: 1 to 1", (self.folder / "small.yaml").read_text(encoding="utf-8")))
        self.refuse("experiment", experiment, "-d", "x", says=["redis: the load steady", "cannot be kept to at most 2 %", "replicas"])
        self.refuse("train", "small.yaml", "--task", "scale", "-d", "x", says=["cannot be kept to at most 1 %", "replicas"])
        self.assertFalse((self.folder / "x/last.safetensors").exists())
        self.refuse("experiment", experiment, "-d", "x", "--set", "task=scal", says="did you mean `scale`")

    def test_an_experiment_on_placement_trains_and_judges_for_every_objective(self):
        experiment = self.write("e.yaml", f"experiment: e\ntask: place\nscenarios: [{TOP}/scenarios/thesis-test2.yaml]\n"
                                "objectives: {EE: energy, near: {latency: 1, energy: 0.1}}\nepisodes: 6\n"
                                'variants: {few: {"arrivals.streams[0].count": 40, arrivals.failures: "{every: 80s to 200s, down: 20s}"}}\n'
                                "train: {steps: 4096, seeds: 2, es_steps: 4096}\n"
                                "policies: [kube-scheduler=kube-default:limits=ignore, lookahead, dqn=trained-dqn, es=trained-es, lc=trained-thesis-lc,\n"
                                '  "mix=mixed:most-allocated=0.5,latency=1,run=trained", learned=trained]\n'
                                'published:\n  - by: "M & P"\n    note: Not the same.\n    figures:\n'
                                "      - {what: workers in use, said: one, objective: EE, ours: {metric: active_nodes, policy: learned}}\n"
                                "      - {what: time it takes, said: 3.27 %, ours: {metric: overhead, policy: learned}}\n")
        table = self.succeed("experiment", experiment, "-d", "one", "--threads", "1")
        self.assertRegex(table, "near +kube-scheduler +objective +0[.].* yes")
        report = json.loads((self.folder / "one/report.json").read_text(encoding="utf-8"))
        quotes, report = report["published"], report["comparisons"]
        self.assertEqual([(quote["cell"], quote["what"]) for quote in quotes],
                         [("thesis-test2.EE.few", "workers in use"), ("thesis-test2.EE.few", "time it takes"),
                          ("thesis-test2.near.few", "time it takes")])
        self.assertEqual(quotes[0]["ours"], next(pair["candidate_mean"] for pair in report
                                                 if (pair["objective"], pair["metric"]) == ("EE", "active_nodes")))
        self.assertEqual((quotes[1]["said"], quotes[1]["ours"]), ("3.27 %", None))  # Of the machine.
        for page, times in (("report.html", 2), ("cells/thesis-test2.EE.few/report.html", 1), ("cells/thesis-test2.near.few/report.html", 1)):
            text = (self.folder / "one" / page).read_text(encoding="utf-8")
            self.assertIn("M &amp; P, and our results next to it. Not the same.", text)
            self.assertEqual(text.count("share of the makespan of learned"), times, page)
        self.assertEqual({(pair["objective"], pair["baseline"]) for pair in report},
                         {(objective, baseline) for objective in ("EE", "near")
                          for baseline in ("kube-scheduler", "lookahead", "dqn", "es", "lc", "mix")})
        for pair in report:
            low, high = pair["difference_ci95"]
            self.assertEqual((pair["variant"], pair["seeds"]), ("few", 2))
            self.assertEqual(pair["better"] is None, low <= 0 <= high)
            if pair["metric"] == "hard_misses":
                self.assertEqual(pair["candidate_mean"], 0)
        rows = list(csv.DictReader(io.StringIO((self.folder / "one/metrics.csv").read_text(encoding="utf-8"))))
        self.assertEqual(len(rows), 2 * (1 + 1 + 2 + 2 + 2 + 2 + 2) * 6)
        self.assertEqual({(row["file"], row["objective_name"], row["variant"]) for row in rows},
                         {("thesis-test2", objective, "few") for objective in ("EE", "near")})
        cell = self.folder / "one/cells/thesis-test2.EE.few"
        self.assertIn("overhead: of the makespan", (cell / "report.html").read_text(encoding="utf-8"))
        for policy in json.loads((cell / "evaluation.json").read_text(encoding="utf-8"))["policies"]:
            self.assertAlmostEqual(policy["overhead"], policy["decide_s"] / policy["metrics"]["makespan"])
            self.assertTrue(0 < policy["overhead"] < 0.01, policy)
        config = (self.folder / "one/trained/thesis-test2.EE.few/thesis-lc/seed-1/config.yaml").read_text(encoding="utf-8")
        self.assertIn("preset: thesis-lc", config)
        # Killed at any moment and gone on with, by other threads: the same bytes.
        for wait in (0.3, 1, 2):
            process = subprocess.Popen([PROGRAM, "experiment", experiment, "-d", "two", "-q",
                                        *(["--resume"] if (self.folder / "two/provenance.json").exists() else [])],
                                       cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            time.sleep(wait)
            process.kill()
            process.wait()
        resume = ["--resume"] if (self.folder / "two/provenance.json").exists() else []
        self.succeed("experiment", experiment, "-d", "two", "--threads", "2", *resume)
        for name in ("metrics.csv", "report.json"):
            self.assertEqual((self.folder / "one" / name).read_bytes(), (self.folder / "two" / name).read_bytes())

    def test_extender_config_asks_for_what_the_configuration_says(self):
        plain = self.succeed("extender-config")
        for line in ("urlPrefix: http://127.0.0.1:8888", "prioritizeVerb: prioritize", "weight: 121 ", "A grade counts 1210 points", "httpTimeout: 200ms",
                     "nodeCacheCapable: true", "ignorable: true", "percentageOfNodesToScore: 100", "OpportunisticBatching=false"):
            self.assertIn(line, plain)
        self.assertNotIn("filterVerb", plain)  # Nodes are ruled out by hard limits alone.
        self.assertNotIn("tlsConfig", plain)
        limits = self.write("limits.yaml", "rudderfish: config/v1\nextender: {listen: '10.0.0.1:9', hard_limits: {memory: 0.9}, timeout: 50ms}\n")
        asked = self.succeed("extender-config", "--config", limits, "--weight", "2")
        for line in ("urlPrefix: http://10.0.0.1:9", "filterVerb: filter", "weight: 2 ", "httpTimeout: 50ms"):
            self.assertIn(line, asked)
        self.assertIn("percentageOfNodesToScore: 5 ", self.succeed("extender-config", "--percentage-of-nodes", "5"))
        # Where we listen may be no place to ask at.
        for listen, says in (("0.0.0.0:8888", "every address"), ("[::]:8888", "every address"), ("127.0.0.1:0", "any free port")):
            wide = self.write("wide.yaml", f"rudderfish: config/v1\nextender: {{listen: '{listen}'}}\n")
            self.refuse("extender-config", "--config", wide, says=says)
            told = self.succeed("extender-config", "--config", wide, "--address", "rudderfish.kube-system.svc:8888")
            self.assertIn("urlPrefix: http://rudderfish.kube-system.svc:8888\n", told)
        for address in ("", "host", ":80", "host:0", "host:65536", "http://host:80", "host:80/x", "host:80 x"):
            self.refuse("extender-config", "--address", address, says="--address")
        self.refuse("extender-config", "--percentage-of-nodes", "101", says="--percentage-of-nodes")
        self.refuse("extender-config", "--weight", "0", says="--weight")
        none = self.write("none.yaml", "rudderfish: config/v1\ndecisions: {placement: {}}\n")
        self.refuse("run", "--config", none, "--namespace", "shop", says="placement covers all namespaces")
        self.refuse("run", "--config", none, "--policy", "greedy", says="set decisions.placement.policy")
        self.refuse("extender-config", "--config", none, says="no section `extender`")

    def test_bad_input_of_an_experiment_on_placement_is_refused_with_the_nearest_name(self):
        experiment = TOP / "experiments/placing-drs.yaml"
        for change, says in (("policies[4]=gredy", "did you mean `greedy`"), ("policies[5]=trained-dqm", "did you mean `dqn`"),
                             ("policies[5]=trained-thesis-lc", "measured"), ("policies[5]='x=mixed:gredy=1,run=trained'", "did you mean `greedy`"),
                             ("policies[5]=mixed:run=trained", "no score has a weight"), ("train.algorithm=poo", "did you mean `ppo`"), ("train.step=5", "did you mean `steps`"),
                             ("policies[5]=greedy", "`greedy` is named twice"), ("objectives={a: enrgy}", "did you mean `energy`"),
                             (f"scenarios[1]={SCENARIO}", "no world in which pods come and go"),
                             ("variants={a: {arivals.until: 2h}}", "arivals")):
            self.refuse("experiment", experiment, "-d", "x", "--set", change, says=says)

    def test_bad_input_of_scaling_is_refused_with_the_nearest_name(self):
        redis = TOP / "scenarios/redis.yaml"
        for options, says in ((["--policy", "hpb"], "did you mean `hpa`"), (["--policy", "hpa:cpus=5"], "did you mean `cpu`"),
                              (["--policy", "hpa", "--load", "stedy"], "steady"), (["--policy", "hpa,hpa"], "`hpa` is named twice"),
                              (["--policy", "hpa", "--starts", "a.jsonl"], "--starts"), ([], "--policy")):
            self.refuse("evaluate", redis, "--task", "scale", *options, says=says)
        self.refuse("evaluate", SCENARIO, "--task", "scale", "--policy", "hpa", says="has no `load`")
        self.refuse("evaluate", SCENARIO, "--task", "scalling", "--policy", "hpa", says="move or place or scale")
        self.refuse("evaluate", SCENARIO, "--policy", "stay", "--load", "ramp", says="--load")
        self.write("replay.yaml", redis.read_text(encoding="utf-8").replace("traces/", ""))
        self.write("azure-llm-code-quarter.csv",
                   "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:04,1,1\n2023-11-16 25:17:05,1,1\n")
        self.refuse("evaluate", "replay.yaml", "--task", "scale", "--policy", "hpa",
                    says=["azure-llm-code-quarter.csv:3:1", "TIMESTAMP"])

    def test_a_workload_larger_than_every_node_is_refused(self):
        self.refuse("inspect", self.changed_scenario("cpu: 1500m", "cpu: 99"), says=["bad.yaml:", "machine-learning"])

    def test_empty_and_cut_off_files_are_refused_by_every_reader(self):
        run = self.train()
        contents = {"a.yaml": SCENARIO.read_bytes(), "b.safetensors": (self.folder / run / "best.safetensors").read_bytes(),
                    "c.jsonl": self.reach_starts().read_bytes().splitlines()[0]}
        for name, content in contents.items():
            for part in (content[:0], content[:len(content) // 2]):
                (self.folder / name).write_bytes(part)
                self.refuse("inspect", name, says=name)
        self.refuse("evaluate", SCENARIO, "--policy", "b.safetensors", "--episodes", "2", says="b.safetensors")
        self.refuse("evaluate", "a.yaml", "--policy", "stay", says="a.yaml")

    def test_dumps_that_are_none_are_refused_in_one_line(self):
        self.write("pod.json", '{"kind": "Pod", "metadata": {"name": "p"}}')
        self.refuse("snapshot", "--from", "pod.json", says=("pod.json", "expected a list of Kubernetes objects, found one object of kind Pod"))
        self.write("text.json", "NAME READY")
        self.refuse("snapshot", "--from", "text.json", says=("is no JSON", "-A -o json`"))
        text = DUMP.read_text(encoding="utf-8")
        self.write("odd.json", text.replace('"500m"', '"many"', 1))
        self.refuse("profile", "--from", "odd.json", "-o", "x.yaml", says=("pod shop/cart-7d4b-bx9k", "`many`"))
        for kind in ("ReplicaSet", "Pod"):
            some = json.loads(text)
            some["items"] = [item for item in some["items"] if item["kind"] != kind]
            self.write("some.json", json.dumps(some))
            self.refuse("profile", "--from", "some.json", "--application", APPLICATION, "-o", "x.yaml",
                        says=(f"holds no {kind}", f"kubectl get {kind.lower()}s -A -o json"))
        self.refuse("snapshot", "--from", "none.json", says="none.json")
        self.refuse("snapshot", DUMP, says="dumps follow --from")
        self.refuse("profile", "--from", DUMP, "--for", "1m", says=("--for", "--from"))
        self.refuse("profile", "--from", DUMP, "-n", "nowhere", says="no running pods owned by a controller in the selected namespaces")

    def test_no_cluster_is_said_in_one_line(self):
        done = self.run_cli("snapshot", "--kubeconfig", "none")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)

    def test_an_experiment_of_reach_that_cannot_begin_says_why(self):
        shutil.copy(TOP / "examples/continuum/application.yaml", self.folder)
        config = self.write("c.yaml", "rudderfish: config/v1\ncluster: {kubeconfig: none}\napplications: [application.yaml]\n"
                                      "decisions: {migration: {mode: enforce}}\n")
        test = ("reach", "test", "-c", config)
        self.refuse("reach", "tests", "-c", config, says=("tests", "test, pod_distribution"))
        self.refuse("reach", "test", says="rudderfish.yaml")
        self.refuse(*test, says="ENTRY_SERVICE_URL or JAEGER_URL is not set")
        self.refuse(*test, "--env", "none.env", says="none.env")
        self.write("x.env", "ENTRY_SERVICE_URL=http://127.0.0.1:1\nALPHA=2\n")
        self.refuse(*test, "--env", "x.env", says=("x.env:2: ALPHA", "found `2`"))
        self.write("x.env", "ENTRY_SERVICE_URL=http://127.0.0.1:1\n")
        self.refuse(*test, "--env", "x.env", "--strategy", "best", says="--strategy: expected rl or be, found `best`")
        self.refuse(*test, "--env", "x.env", "--measure", "soon", says="--measure")
        failing = ("reach", "nodefailed", "-c", config, "--env", "x.env")
        self.refuse(*failing, says="--target_node_a")
        self.refuse(*failing, "--target_node_a", "n", "--t", "-1", says="--t")
        growing = ("reach", "autoscaling", "-c", config, "--env", "x.env")
        self.refuse(*growing, says="--target_replica")
        self.refuse(*growing, "--target_replica", "3", "--workload", "web", says="has no workload `web`")
        self.refuse(*growing, "--target_replica", "3", says="none")  # There is no such kubeconfig.
        self.refuse(*test, "--env", "x.env", says="open none", status=2)
        simulated = self.write("s.yaml", f"rudderfish: config/v1\ncluster: {{scenario: {SCENARIO}}}\ndecisions: {{migration: {{}}}}\n")
        self.refuse("reach", "test", "-c", simulated, "--env", "x.env", says="needs a live cluster")

    def test_files_that_are_not_there_are_named(self):
        self.refuse("inspect", "nothing.yaml", says="nothing.yaml")
        self.refuse("train", "nothing.yaml", "-d", "run", says="nothing.yaml")
        self.refuse("evaluate", SCENARIO, "--policy", "runs/nothing", says="runs/nothing")
        self.refuse("evaluate", SCENARIO, "--policy", "stay", "--starts", "nothing.jsonl", says="nothing.jsonl")
        self.refuse("import", "reach", "nothing", "--config", "7-21", "--pattern", "chain", "-o", "x.yaml", says="nothing")

    def test_a_checkpoint_of_another_task_is_refused_by_what_differs(self):
        other = self.changed_scenario("objective: latency,", "objective: latency, features: reach-agent,", "other.yaml")
        run = self.train("other", other)
        self.refuse("evaluate", SCENARIO, "--policy", run, "--episodes", "2", says="feature")

    def test_unknown_policies_are_named_with_their_neighbour(self):
        self.refuse("evaluate", SCENARIO, "--policy", "gredy", says=["gredy", "greedy"])
        self.refuse("simulate", SCENARIO, "--policy", "look-ahead", says=["look-ahead", "lookahead"])

    def test_unknown_options_of_policies_are_named_with_their_neighbour(self):
        self.refuse("evaluate", SCENARIO, "--policy", "lookahead:width=8,patence=2", says=["`patence`", "`patience`"])
        self.refuse("evaluate", SCENARIO, "--policy", "greedy,lookahead:widht=8", says=["`widht`", "`width`"])
        self.refuse("simulate", SCENARIO, "--policy", "lookahead:width=8,depth=3", says=["`depth`", "width, patience, evaluations"])
        self.refuse("evaluate", SCENARIO, "--policy", "greedy,width=8", says=["`width=8`", "lookahead:width=8"])

    def test_no_threads_and_other_numbers_out_of_range_are_refused(self):
        self.refuse("train", SCENARIO, "-d", "run", "--threads", "0", says="--threads")
        self.refuse("train", SCENARIO, "-d", "run", "--steps", "-5", says="--steps")
        self.refuse("train", SCENARIO, "-d", "run", "--time", "60", says="--time")
        self.refuse("train", SCENARIO, "-d", "run", "--seeds", "0", says="--seeds")
        self.refuse("train", SCENARIO, "-d", "run", "--algorithm", "sarsa", says="sarsa")
        self.refuse("train", SCENARIO, "-d", "run", "--algorithm", "recurrent-ppo", says="learns to scale")
        self.refuse("train", SCENARIO, "-d", "run", "--algorithm", "es", says="only available for placement")
        self.refuse("train", SCENARIO, "-d", "run", "--encoder", "gat2", says=["gat2", "did you mean `gatv2`"])
        self.refuse("evaluate", SCENARIO, "--policy", "stay", "--episodes", "0", says="--episodes")
        self.refuse("evaluate", SCENARIO, "--policy", "stay", "-o", "xml", says="xml")
        self.refuse("bench", "everything", says="everything")
        for number in ("0", "-3", "7x", "last", ""):
            self.refuse("promote", "placement", "--from", number, says="--from")
        self.refuse("bench", "env", "--policy", "runs/a", says="`bench env` asks none; decide, kernel and scale do")

    def test_a_run_is_not_overwritten(self):
        run = self.train()
        self.refuse("train", SCENARIO, "-d", run, "--steps", STEPS, says=["run", "--resume"])

    def test_a_run_resumes_only_with_its_own_scenario(self):
        run = self.train()
        other = self.changed_scenario("seed: 1", "seed: 2", "other.yaml")
        self.refuse("train", other, "-d", run, "--resume", "--steps", "32768", says="scenario")

    def test_two_trainings_do_not_share_a_folder(self):
        for folder, more in (("one", ()), ("seeds", ("--seeds", "2"))):
            first = self.start_training(folder, "50000000", *more)
            self.addCleanup(first.wait)
            self.addCleanup(first.kill)
            self.assertIsNone(first.poll(), "it trains for minutes")
            for arguments in ((SCENARIO, "-d", folder, "--steps", STEPS, *more), ("--resume", "-d", folder)):
                done = self.run_cli("train", *arguments)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
                self.assertIn("at work in this folder", done.stderr)
            first.send_signal(signal.SIGTERM)
            first.communicate(timeout=60 * PATIENCE)
            self.refuse("train", SCENARIO, "-d", folder, "--steps", STEPS, *more, says="--resume")

    def test_nothing_to_resume_is_said(self):
        self.refuse("train", SCENARIO, "-d", "nothing", "--resume", says="nothing")

    def small_disk(self, size):
        """A folder on a file system of so many bytes, until the test ends."""
        disk = self.folder / f"disk-{size}"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], stderr=subprocess.DEVNULL,
                                 check=False)
        if mounted.returncode != 0:
            self.skipTest("only root may mount a small file system, and only where mounting is allowed")
        self.addCleanup(lambda: subprocess.run(["umount", disk], check=False))
        return disk

    def fail_with_one_line(self, *arguments):
        done = self.run_cli(*arguments)
        self.assertEqual(done.returncode, 1, f"{arguments}\n{done.stderr}")
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertIn("No space left", done.stderr)
        return done

    def test_a_full_disk_fails_with_one_line(self):
        self.refuse("import", "reach", REACH, "--config", "6-17", "--pattern", "line", "-o", "/dev/full", status=1)
        evaluate = ("evaluate", SCENARIO, "--policy", "stay", "--episodes", "2")
        done = self.fail_with_one_line(*evaluate, "--report", "/dev/full", "-q")
        self.assertIn("stay", done.stdout, "the results are not lost")
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PROGRAM, *evaluate, "-o", "json"], stdout=full, stderr=subprocess.PIPE, check=False, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)

    def test_a_full_disk_leaves_no_part_of_a_report_or_scenario(self):
        disk = self.small_disk("4k")
        (disk / "report.html").write_text("the report of yesterday", encoding="utf-8")
        for name in ("report.html", "new.html"):
            self.fail_with_one_line("evaluate", SCENARIO, "--policy", "stay,greedy", "--episodes", "10", "--report", disk / name, "-q")
        self.fail_with_one_line("import", "reach", REACH, "--config", "6-17", "--pattern", "line", "-o", disk / "x.yaml")
        self.assertEqual((disk / "report.html").read_text(encoding="utf-8"), "the report of yesterday")
        self.assertEqual(sorted(path.name for path in disk.iterdir()), ["report.html"])

    def test_a_full_disk_while_training_leaves_whole_files(self):
        for size in ("4k", "16k", "64k", "256k"):
            disk = self.small_disk(size)
            done = self.fail_with_one_line("train", SCENARIO, "-d", disk / "run", "--steps", "262144", "-q")
            if (disk / "run/last.safetensors").exists():
                self.assertIn(f"continue with rudderfish train --resume -d {disk}/run", done.stderr)
            done = self.fail_with_one_line("train", SCENARIO, "-d", disk / "seeds", "--seeds", "2", "--steps", "262144", "-q")
            if (disk / "seeds/seed-1/config.yaml").exists():
                self.assertIn(f"continue with rudderfish train --resume -d {disk}/seeds --seeds 2", done.stderr)
            for checkpoint in disk.rglob("*.safetensors"):
                self.succeed("inspect", checkpoint)
            self.assertEqual(list(disk.rglob("*.tmp*")), [])
            if (disk / "run/config.yaml").exists():
                self.succeed("inspect", disk / "run")

    def test_a_full_disk_in_mid_experiment_is_a_line_and_it_goes_on_once_there_is_room(self):
        moving = self.write("e.yaml", f"experiment: e\nepisodes: 6\nscenarios: [{SCENARIO}]\npolicies: [stay, greedy]\n"
                            "variants: {as-shipped: {}, near: {latency.edge.cloud: 10ms}}\n")
        short = (self.folder / self.short_redis()).read_text(encoding="utf-8")
        self.write("short.yaml", short.replace("duration: 6m", "duration: 2m"))
        scaling = self.write("s.yaml", "experiment: s\ntask: scale\nscenarios: [short.yaml]\nloads: [steady]\nepisodes: 2\n"
                             "calibrate: {episodes: 16}\ntrain: {steps: 1024, seeds: 1}\npolicies: [hpa=calibrated, learned=trained]\n")
        for experiment, sizes in ((moving, ("8k", "32k", "128k")), (scaling, ("16k", "48k", "400k"))):
            ample = self.folder / f"ample-{experiment}"
            self.succeed("experiment", experiment, "-d", ample)
            for size in sizes:
                disk = self.small_disk(size)
                self.fail_with_one_line("experiment", experiment, "-d", disk / "results", "-q")
                self.assertFalse((disk / "results/metrics.csv").exists(), size)
                self.assertEqual(list(disk.rglob("*.tmp*")), [])
                subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
                more = ("--resume",) if (disk / "results/provenance.json").exists() else ()
                self.succeed("experiment", experiment, "-d", disk / "results", *more)
                for name in ("metrics.csv", "report.json"):
                    self.assertEqual((disk / "results" / name).read_bytes(), (ample / name).read_bytes(), f"{size} {name}")

    def test_an_unwritable_folder_is_refused(self):
        folder = self.folder / "closed"
        folder.mkdir()
        folder.chmod(0o500)
        self.addCleanup(lambda: folder.chmod(0o700))
        target = "closed" if os.geteuid() != 0 else "/proc/closed"  # Not even root may write there.
        for arguments in (("train", SCENARIO, "-d", f"{target}/run", "--steps", STEPS),
                          ("import", "reach", REACH, "--config", "6-17", "--pattern", "line", "-o", f"{target}/x.yaml"),
                          ("evaluate", SCENARIO, "--policy", "stay", "--episodes", "2", "--report", f"{target}/x.html")):
            done = self.run_cli(*arguments)
            self.assertIn(done.returncode, (1, 2), arguments)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
            self.assertIn(target, done.stderr)
        if os.geteuid() == 0:  # As somebody whom rights hold.
            os.chmod(self.folder, 0o755)
            done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", PROGRAM, "evaluate", SCENARIO, "--policy", "stay",
                                   "--episodes", "2", "--report", "closed/x.html"],
                                  cwd=self.folder, capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual((done.returncode, done.stderr),
                             (2, "rudderfish: evaluate: closed/x.html: closed may not be written: Permission denied\n"))

    def test_bad_units_of_reach_are_refused_by_name(self):
        folder = self.folder / "reach"
        subprocess.run(["cp", "-r", REACH, folder], check=True)
        nodes = folder / "6-17/nodes.json"
        text = nodes.read_text(encoding="utf-8")
        self.assertIn('"400m"', text)
        bad = text.replace('"400m"', '"400q"')
        nodes.write_text(bad, encoding="utf-8")
        self.refuse("import", "reach", "reach", "--config", "6-17", "--pattern", "line", "-o", "out.yaml",
                    says=["nodes.json", "400q"])

    def test_configurations_and_patterns_that_are_not_there_are_named(self):
        self.refuse("import", "reach", REACH, "--config", "7-21", "--pattern", "line", "-o", "x.yaml", says=["7-21", "6-17"])
        self.refuse("import", "reach", REACH, "--config", "6-17", "--pattern", "lnie", "-o", "x.yaml", says=["lnie", "line"])


if __name__ == "__main__":
    if not PROGRAM.exists():
        sys.exit(f"{PROGRAM} is not there; build it or set RUDDERFISH")
    unittest.main()
