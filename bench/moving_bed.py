# SPDX-License-Identifier: Apache-2.0
"""An application whose running pods are moved on a testbed of real nodes: from where they are badly placed, under load, measured."""
import collections
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import time

from live_bed import TOP

PROGRAM = pathlib.Path(os.environ.get("RUDDERFISH", TOP / "build/release/rudderfish")).resolve()
LAYERS, CLIENT_PORT = "cloud:2,edge:4,client:1", 9000
BAD_LAYERS = ("cloud", "client")
KUBE_SCHEDULER = "be"  # Best effort: kube-scheduler places all pods again, and nothing moves them.
WARM_S, READY_S, PLAN_S, MOVE_S = 5, 60, 300, 120


def say(text):
    print(f"moving: {text}", file=sys.stderr, flush=True)


def listed(values):
    return ",".join(f"{name}={value}" for name, value in values.items())


def wait_for(found, what, limit_s):
    end = time.monotonic() + limit_s
    while not (result := found()):
        if time.monotonic() > end:
            sys.exit(f"moving: after {limit_s} s there is no {what}")
        time.sleep(0.3)
    return result


def is_ready(pod):
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod.get("status", {}).get("conditions", []))


@dataclasses.dataclass
class Played:
    """An application as it is played: what `manifests` writes of `source`, and what `run` reads. Its first endpoint is `call`."""
    source: pathlib.Path  # An application or a scenario; `words` say which episode of one.
    file: pathlib.Path
    links: pathlib.Path
    space: str
    replicas: dict
    cpu: dict
    kept: tuple = ()  # Workloads that are never moved.
    words: tuple = ()
    entry: str = "aggregator"

    def pods(self):
        return sum(self.replicas.values())


class Continuum:
    """A testbed of real nodes, with the application on it."""

    def __init__(self, options, played, folder):
        self.options, self.played, self.folder = options, played, folder
        self.testbed("down")
        self.kubeconfig = pathlib.Path(self.testbed("up", "--layers", LAYERS, "--delays", str(played.links)).split()[-1])
        self.kubectl("apply", "-k", str(TOP / "deploy/moves"))
        self.nodes = {node["metadata"]["name"]: node["metadata"]["labels"]["rudderfish.io/layer"]
                      for node in self.get("nodes")["items"]}

    def testbed(self, command, *words, text=None):
        done = subprocess.run([TOP / "testbed/testbed", command, "--name", self.options.name, *words], capture_output=True, text=True,
                              check=False, input=text, **({} if text else {"stdin": subprocess.DEVNULL}))
        if done.returncode:
            sys.exit(f"moving: testbed {command} {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def kubectl(self, *words, text=None):
        return self.testbed("kubectl", "--", *words, text=text)

    def get(self, *words):
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def started_on(self, node, *words, log, **environment):
        """What runs on a node. Ended by `ended`: the command of the testbed has children."""
        return subprocess.Popen([TOP / "testbed/testbed", "exec", "--name", self.options.name, node, "--", *map(str, words)],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True,
                                env=dict(os.environ, **environment))

    def place_badly(self, start=0):
        """The same start is the same nodes; kube-scheduler chooses among them."""
        bad = [name for name, layer in self.nodes.items() if layer in BAD_LAYERS]
        if start:
            bad = random.Random(start).sample(sorted(self.nodes), len(BAD_LAYERS) + 1)
        good = [name for name in self.nodes if name not in bad]
        played = self.played
        self.kubectl("delete", "namespace", played.space, "--ignore-not-found", "--wait=true")
        self.kubectl("cordon", *good)
        manifests = subprocess.run([PROGRAM, "manifests", played.source, *played.words, "--replicas", listed(played.replicas), "--cpu",
                                    listed(played.cpu), "--app", self.options.app], capture_output=True, text=True, check=False)
        if manifests.returncode:
            sys.exit(f"moving: {manifests.stderr.strip()}")
        self.kubectl("apply", "-f", "-", text=manifests.stdout)
        self.rolled_out()
        self.kubectl("uncordon", *good)

    def rolled_out(self):
        for name in self.played.replicas:
            self.kubectl("rollout", "status", f"deployment/{name}", "-n", self.played.space, f"--timeout={READY_S}s")

    def place_by_kube_scheduler(self):
        """All pods again, wherever it likes; how many are on other nodes then."""
        before = self.placement()
        self.kubectl("rollout", "restart", "-n", self.played.space, *(f"deployment/{name}" for name in self.played.replicas))
        self.rolled_out()
        self.settled()
        after = self.placement()
        return sum((collections.Counter(after[name]) - collections.Counter(before[name])).total() for name in after)

    def pods(self):
        return [pod for pod in self.get("pods", "-n", self.played.space)["items"] if "deletionTimestamp" not in pod["metadata"]]

    def placement(self):
        placed = {}
        for pod in self.pods():
            placed.setdefault(pod["metadata"]["labels"].get("app", "?"), []).append(pod["spec"].get("nodeName"))
        return {name: sorted(nodes) for name, nodes in sorted(placed.items())}

    def settled(self):
        """As many pods as are wanted, all Ready, and no other."""
        def found():
            pods = self.get("pods", "-n", self.played.space)["items"]
            return len(pods) == self.played.pods() and all(map(is_ready, pods))
        wait_for(found, "complete set of pods", MOVE_S)

    def entry(self):
        """Where the load goes. For kept connections a process on the device plays the client."""
        entry, space = self.played.entry, self.played.space
        address = self.get("service", entry, "-n", space)["spec"]["clusterIP"]
        if self.options.connections == "new":
            return f"http://{address}:8080/call/1", None
        calls = self.folder / "calls"
        calls.write_text(self.get("configmap", f"{space}-calls", "-n", space)["data"]["calls"], encoding="utf-8")
        native = json.loads((self.kubeconfig.parent / "layout.json").read_text())["programs"]["native"]
        client = self.started_on("client-1", f"{native}/app", "--port", CLIENT_PORT, "--calls", calls, "--service", "client",
                                 log=subprocess.DEVNULL, NODE_NAME="client-1", **{f"{entry.upper()}_SERVICE_HOST": address,
                                                                                  f"{entry.upper()}_SERVICE_PORT": "8080"})
        return f"http://127.0.0.1:{CLIENT_PORT}/call/0", client

    def metric(self, name):
        """Its sum over all pods that are there, and the client."""
        targets = [f"http://{pod['status']['podIP']}:8080" for pod in self.pods()] + [f"http://127.0.0.1:{CLIENT_PORT}"]
        total = 0.0
        for target in targets:
            with self.started_on("client-1", "busybox", "wget", "-q", "-O", "-", f"{target}/metrics", log=subprocess.DEVNULL) as asked:
                total += sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", asked.stdout.read(), re.M))
        return total

    def command(self, *words):
        return subprocess.run([PROGRAM, *words, "--kubeconfig", self.kubeconfig], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=2 * MOVE_S)


def end(process, number=signal.SIGINT):
    """Whatever `exec` started, which has a session of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
    return process.communicate(timeout=60)[0]


class Load:
    """Requests from the device while the block runs, or for `seconds`."""

    def __init__(self, bed, target, seconds=None):
        self.bed, self.target, self.seconds, self.report = bed, target, seconds, None

    def __enter__(self):
        options = self.bed.options
        self.process = self.bed.started_on("client-1", PROGRAM, "load", "--target", self.target, "--rate", options.rate, "--for",
                                           f"{self.seconds or 3600}s", "--timeout", "10s", "--connections", options.connections,
                                           "--every", "2s", "-o", "json", "-q", log=subprocess.PIPE)
        return self

    def __exit__(self, kind, error, trace):
        text = self.process.communicate()[0] if self.seconds and kind is None else end(self.process)
        if kind is None:
            self.report = json.loads(text)


def load_for(bed, target, seconds):
    with Load(bed, target, seconds) as load:
        pass
    return load.report


class Controller:
    """`rudderfish run` in enforce."""

    def __init__(self, bed, folder):
        self.folder = folder
        options = bed.options
        # After kube-scheduler nothing moves; what the Model predicts is wanted all the same.
        policy = "stay" if options.policy == KUBE_SCHEDULER else options.policy
        migration = {"mode": "enforce", "policy": policy, "baseline": "stay", "interval": "500ms",
                     "budgets": {"pod_cooldown": "10min", "moves_per_plan": 20}, "moves": {"settle": options.settle}}
        (folder / "rudderfish.yaml").write_text(json.dumps({
            "rudderfish": "config/v1", "cluster": {"kubeconfig": str(bed.kubeconfig)}, "scope": {"namespaces": [bed.played.space]},
            "applications": [str(bed.played.file.resolve())], "decisions": {"migration": migration},
            "journal": {"path": "j.db"}, "server": {"socket": "s.sock"}}), encoding="utf-8")
        self.log = (folder / "log").open("w")
        self.process = subprocess.Popen([PROGRAM, "run"], cwd=folder, stdout=subprocess.DEVNULL, stderr=self.log)

    def asked(self, *words):
        done = subprocess.run([PROGRAM, *words, "-o", "json"], cwd=self.folder, capture_output=True, text=True, check=False, timeout=60)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def rows(self):
        """Oldest first."""
        return sorted(self.asked("decisions").get("decisions", []), key=lambda row: row["number"])

    def plan_ended(self):
        if self.process.poll() is not None:
            sys.exit(f"moving: rudderfish run ended: {(self.folder / 'log').read_text()[-500:]}")
        rows = self.rows()
        return rows if rows and rows[-1]["fate"] in ("stayed", "refused") else None

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=30)
        self.log.close()


def elsewhere(bed, pod, chance):
    return chance.choice([name for name, layer in bed.nodes.items() if layer != "client" and name != pod["spec"]["nodeName"]])


def movable(bed, chance):
    pods = [pod for pod in bed.pods() if is_ready(pod) and pod["metadata"]["labels"].get("app") not in bed.played.kept]
    return chance.choice(pods)


def moves_by_hand(bed, count, chance, times_s):
    """So many moves that were begun; how many were done."""
    done, begun = 0, 0
    while begun < count:
        pod = movable(bed, chance)
        answer = bed.command("move", f"pod/{pod['metadata']['name']}", "-n", bed.played.space, "--to", elsewhere(bed, pod, chance), "--settle",
                             bed.options.settle, "-o", "json")
        if answer.returncode == 2:  # Refused before anything was written: the node is full, for instance.
            continue
        begun += 1
        if answer.returncode == 0:
            done += 1
            times_s.append(json.loads(answer.stdout)["seconds"])
        else:
            say(f"not moved: {answer.stdout.strip()[-300:]} {answer.stderr.strip()[-300:]}")
        bed.settled()
    return begun, done


def kills(bed, count, chance):
    """Moves whose process is killed; what a reader of the cluster finds afterwards."""
    found = {"tried": 0, "pods_lost": 0, "pods_doubled": 0, "pdb_broken": 0, "left_over": 0}
    wanted = dict(bed.played.replicas)
    while found["tried"] < count:
        pod = movable(bed, chance)
        moving = subprocess.Popen([PROGRAM, "move", f"pod/{pod['metadata']['name']}", "-n", bed.played.space, "--to", elsewhere(bed, pod, chance),
                                   "--settle", bed.options.settle, "--kubeconfig", bed.kubeconfig], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.1, 8))
        if moving.poll() == 2:
            continue
        moving.kill()
        moving.wait()
        found["tried"] += 1
        for budget in bed.get("poddisruptionbudgets", "-n", bed.played.space)["items"]:
            found["pdb_broken"] += budget["status"]["currentHealthy"] < budget["status"]["desiredHealthy"]
        for move in json.loads(bed.command("moves", "-o", "json").stdout)["moves"]:
            bed.command("moves", chance.choice(["resume", "abort"]), move["id"])
        end_at = time.monotonic() + 30
        while time.monotonic() < end_at:
            counts = {name: len(nodes) for name, nodes in bed.placement().items()}
            if counts == wanted:
                break
            time.sleep(0.5)
        for name, number in wanted.items():
            found["pods_lost"] += max(0, number - counts.get(name, 0))
            found["pods_doubled"] += max(0, counts.get(name, 0) - number)
        left = json.loads(bed.command("moves", "-o", "json").stdout)
        found["left_over"] += len(left["moves"]) + len(left["left"])
    return found


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else None


def median_of(values):
    return statistics.median(values) if values else None


def step_times_s(bed):
    """Of what `run` moved, from its Events."""
    events = bed.get("events", "-n", bed.played.space)["items"]
    texts = [event.get("message") or event.get("note") or "" for event in events if event["reason"] == "Moved"]
    return [float(found[1]) for found in (re.search(r" in ([\d.]+) s", text) for text in texts) if found]


def trained(bed, folder, options):
    """The folder of a network that was trained for 30 s on a profile of the cluster."""
    run, profile = folder / "learned", folder / "live.yaml"
    if not run.exists():
        say("profile, and training for 30 s")
        for words in (["profile", "--application", bed.played.file.resolve(), "--kubeconfig", bed.kubeconfig, "-o", profile],
                      ["train", profile, "-d", run, "--time", "30s"]):
            subprocess.run([PROGRAM, *words], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return str(run)


def policy_of(bed, folder, options, name):
    """As `run` takes it: `learned` and `learned+lookahead` are of a network that is trained here."""
    if not name.startswith("learned"):
        return name
    run = trained(bed, folder, options)
    return f"lookahead:run={run}" if name == "learned+lookahead" else run


def carried_out(bed, folder, options):
    """What `run` decided until its plan ended, and how long that took."""
    folder.mkdir(exist_ok=True)
    began = time.monotonic()
    controller = Controller(bed, folder)
    rows = wait_for(controller.plan_ended, "plan that has ended", PLAN_S)
    took_s = time.monotonic() - began
    controller.end()
    return rows, took_s


def measure(bed, folder, options):
    target, client = bed.entry()
    chance = random.Random(options.seed)
    time.sleep(WARM_S)
    try:
        result = {"placement": {"before": bed.placement()}}
        say(f"load of {options.rate} requests a second at {target}")
        before = load_for(bed, target, options.measure)
        say(f"before: {before['latency_ms']['mean']:.1f} ms in the mean")
        with Load(bed, target) as during:
            time.sleep(WARM_S)
            placed, placed_s, rows = 0, 0, []
            if options.policy == KUBE_SCHEDULER:
                rows, _ = carried_out(bed, folder / "before", options)
                began = time.monotonic()
                placed = bed.place_by_kube_scheduler()
                placed_s = time.monotonic() - began
            more, settled_s = carried_out(bed, folder, options)
            rows, settled_s = rows + more, placed_s or settled_s
            times_s = step_times_s(bed)
            begun = sum(row["fate"] in ("done", "failed") for row in rows)
            done = sum(row["fate"] == "done" for row in rows)
            begun, done = begun + placed, done + placed
            say(f"plan of {begun} moves has ended, {done} done")
            bed.settled()
            if options.moves:
                time.sleep(WARM_S)
        during = during.report
        after = load_for(bed, target, options.measure)
        say(f"after: {after['latency_ms']['mean']:.1f} ms in the mean, predicted {rows[-1]['seen']['latency_ms']:.1f} ms")
        result["placement"]["after"] = bed.placement()
        parts = [before, during, after]
        if options.moves:
            with Load(bed, target) as by_hand:
                more, more_done = moves_by_hand(bed, options.moves, chance, times_s)
            begun, done = begun + more, done + more_done
            parts.append(by_hand.report)
        killed = kills(bed, options.kills, chance) if options.kills else None
        result |= {
            "moves": {"started": begun, "done": done, "aborted": begun - done},
            "requests": {"sent": sum(part["sent"] for part in parts), "failed": sum(part["failed"] for part in parts),
                         "repeated": bed.metric("app_calls_repeated_total") if client else None,
                         "p99_ms_before": before["latency_ms"]["p99"], "p99_ms_during": during["latency_ms"]["p99"],
                         "p99_ms_after": after["latency_ms"]["p99"],
                         "failures": [part["failures"] for part in parts if part["failures"]]},
            "kills": killed,
            "latency_ms": {"before": before["latency_ms"]["mean"], "after": after["latency_ms"]["mean"],
                           "predicted_before": rows[0]["seen"]["latency_ms"], "predicted_after": rows[-1]["seen"]["latency_ms"]},
            "predicted_terms_ms": {"before": rows[0]["seen"], "after": rows[-1]["seen"]},
            "settled_s": round(settled_s, 1),
            "move_s": {"p50": quantile(times_s, 0.5), "p95": quantile(times_s, 0.95)},
            "steps": [{"pod": row["subject"], "from": row["from_node"], "to": row["chosen_node"], "fate": row["fate"],
                       "failure": row["failure"], "predicted_gain_ms": row["gain"]["predicted"], "at_ms": row["written_at_ms"]}
                      for row in rows if row["chosen_node"]],
            "curve": during["windows"]}
        return result
    finally:
        if client:
            end(client)


def interval(values):
    """The 95 % interval of the mean by Student's t, as half its width."""
    quantiles = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}
    if len(values) not in quantiles:
        return None
    return quantiles[len(values)] * statistics.stdev(values) / len(values) ** 0.5


def compared(bed, folder, options):
    """Each policy from each start. What kube-scheduler made of a start is "before"."""
    runs = []
    for start in range(options.first_start - 1, options.starts):
        for policy in options.policies.split(","):
            say(f"start {start + 1} of {options.starts}, {policy}")
            bed.place_badly(start)
            options.policy = policy_of(bed, folder, options, policy)
            place = folder / f"{policy.replace(':', '-').replace('=', '-').replace('/', '-')}-{start}"
            place.mkdir()
            runs.append(measure(bed, place, options) | {"policy": policy, "start": start})
    summary = []
    for policy in options.policies.split(","):
        own = [run for run in runs if run["policy"] == policy]
        before, after = ([run["latency_ms"][part] for run in own] for part in ("before", "after"))
        change = [b - a for a, b in zip(before, after)]
        promised = [run["latency_ms"]["predicted_after"] - run["latency_ms"]["predicted_before"] for run in own]
        summary.append({"policy": policy, "before_ms": statistics.mean(before), "after_ms": statistics.mean(after),
                        "change_ms": statistics.mean(change), "interval_ms": interval(change),
                        "predicted_change_ms": statistics.mean(promised),
                        "error_share": median_of([abs(m - p) / abs(p) for m, p in zip(change, promised) if p]),
                        "moves": sum(run["moves"]["done"] for run in own), "aborted": sum(run["moves"]["aborted"] for run in own),
                        "sent": sum(run["requests"]["sent"] for run in own), "failed": sum(run["requests"]["failed"] for run in own)})
    return {"runs": runs, "summary": summary}


def table_of(result):
    lines = [f"{'POLICY':<12} {'BEFORE ms':>9} {'AFTER ms':>8} {'CHANGE ms':>9} {'95 % INTERVAL':>16} {'PREDICTED':>9} {'MOVES':>5} FAILED REQUESTS"]
    for row in result["summary"]:
        half = row["interval_ms"]
        within = "" if half is None else f"[{row['change_ms'] - half:.1f}, {row['change_ms'] + half:.1f}]"
        lines.append(f"{row['policy']:<12} {row['before_ms']:>9.1f} {row['after_ms']:>8.1f} {row['change_ms']:>9.1f} {within:>16} "
                     f"{row['predicted_change_ms']:>9.1f} {row['moves']:>5} {row['failed']} of {row['sent']}")
    return "\n".join(lines)


def figure_of(runs):
    """The measured curve of each run, its moves as ticks, and what was predicted as a dashed line."""
    width, height, left, low = 760, 300, 50, 40
    colours = ["#1f6fb4", "#c2571a", "#3a8a3a", "#7a4fa3"]
    policies = list(dict.fromkeys(run["policy"] for run in runs))
    ends_s = max(run["curve"][-1]["from_s"] for run in runs)
    top_ms = 1.15 * max(max(window["mean_ms"] or 0 for window in run["curve"]) for run in runs)
    x = lambda at_s: left + at_s / ends_s * (width - left - 10)
    y = lambda ms: height - low - ms / top_ms * (height - low - 20)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="white"/>']
    grid_ms = next(step for step in (25, 50, 100, 250, 500, 1000, 2500, top_ms) if top_ms / step <= 8)
    for ms in range(0, int(top_ms), int(grid_ms)):
        parts.append(f'<path d="M{left} {y(ms):.1f}H{width - 10}" stroke="#ddd"/><text x="{left - 6}" y="{y(ms) + 4:.1f}" '
                     f'text-anchor="end">{ms}</text>')
    for at_s in range(0, int(ends_s) + 1, 20):
        parts.append(f'<text x="{x(at_s):.1f}" y="{height - low + 18}" text-anchor="middle">{at_s}</text>')
    parts.append(f'<text x="{width - 10}" y="{height - 6}" text-anchor="end">seconds of load</text><text x="6" y="14">mean latency, ms</text>')
    for run in runs:
        colour = colours[policies.index(run["policy"]) % len(colours)]
        points = " ".join(f"{x(window['from_s']):.1f},{y(window['mean_ms']):.1f}" for window in run["curve"] if window["mean_ms"])
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        if "predicted_after" not in run["latency_ms"]:
            continue
        predicted = y(run["latency_ms"]["predicted_after"])
        parts.append(f'<path d="M{x(ends_s * 0.8):.1f} {predicted:.1f}H{width - 10}" stroke="{colour}" stroke-dasharray="4 3"/>')
    for place, policy in enumerate(policies):
        parts.append(f'<text x="{width - 140}" y="{20 + 15 * place}" fill="{colours[place % len(colours)]}">{policy}</text>')
    return "\n".join(parts + ["</svg>"]) + "\n"
