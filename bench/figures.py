#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the table of figures and prints it as Markdown, each row with the command that anybody can repeat.

  figures.py [--binary FILE] [--output FILE] [--seeds 5] [--quick]

Rows on REACH's start states need RUDDERFISH_REACH_DATA, a folder with REACH's configuration and start_states.jsonl; where
it is not set they say so. Takes about half an hour on an idle machine of 2 cores; --quick trains 2 seeds for seconds, to
try the script.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[1]
RATE_RUNS = 5
PATTERNS = ("chain", "aggregator_sequential", "aggregator_parallel")


def returns(episode):
    """Moves of a pod to a node that it left."""
    left, count = set(), 0
    for move in episode["decisions"]:
        count += (move["pod"], move["to"]) in left
        left.add((move["pod"], move["from"]))
    return count


class Figures:
    def __init__(self, options, folder):
        self.binary = options.binary.resolve()
        self.seeds = 2 if options.quick else options.seeds
        self.quick = options.quick
        self.folder = folder
        self.rows = []
        data = os.environ.get("RUDDERFISH_REACH_DATA")
        self.reach = pathlib.Path(data).resolve() if data else None
        self.starts = []
        if self.reach:
            lines = (self.reach / "start_states.jsonl").read_text(encoding="utf-8").splitlines()
            self.starts = [json.loads(line) for line in lines]

    def run(self, *arguments, statuses=(0,)):
        done = subprocess.run([self.binary, *map(str, arguments)], cwd=self.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode not in statuses:
            raise RuntimeError(f"rudderfish {' '.join(map(str, arguments))}: {done.stderr.strip()}")
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.run(*arguments, "-o", "json", statuses=(0, 3)))

    def row(self, what, figure, bar, goal, command):
        self.rows.append((what, figure, bar, goal, command))
        print(f"{what}: {figure}", file=sys.stderr, flush=True)

    def attempt(self, measure, *arguments):
        """A row that fails says so and leaves the others alone."""
        try:
            measure(*arguments)
        except (RuntimeError, KeyError, IndexError, ValueError) as error:
            name = measure.__name__.replace("_", " ")
            self.row(name, f"failed: {error}", "", "", "")

    # --- on REACH's starts ---

    def import_scenarios(self):
        for config in ("7-21", "22-41"):
            self.run("import", "reach", self.reach, "--config", config, "--pattern", ",".join(PATTERNS), "-o", f"reach-{config}.yaml")

    def evaluate(self, config, pattern, policies):
        return self.json("evaluate", f"reach-{config}.yaml", "--policy", policies, "--starts", self.reach / "start_states.jsonl",
                         "--select", f"config={config},pattern={pattern}")

    def equality_with_reach(self):
        latency, actions, count = 0.0, 0, 0
        for config in ("7-21", "22-41"):
            for pattern in PATTERNS:
                for episode in self.evaluate(config, pattern, "stay")["policies"][0]["episodes"]:
                    start = self.starts[episode["start"]]
                    latency = max(latency, abs(episode["initial"] - start["latency_ms"]))
                    actions += episode["allowed_actions"] != start["allowed_actions"]
                    count += 1
        self.row(f"latency and allowed actions against REACH's rules, {count} states",
                 f"{latency:.1e} ms, {actions} differ", "1e-9 ms, equal", "",
                 "`evaluate reach-CONFIG.yaml --policy stay --starts start_states.jsonl --select config=CONFIG,pattern=PATTERN -o json`")

    def train(self, seconds):
        """Runs of several seeds, each as long by the clock; as one policy of evaluate."""
        if self.quick:
            seconds = min(seconds, 3)
        name = f"t{seconds}"
        runs = []
        for seed in range(1, self.seeds + 1):
            run = f"{name}-seed{seed}"
            if not (self.folder / run).exists():
                self.run("train", "reach-7-21.yaml", "-d", run, "--time", f"{seconds}s", "--seed", seed, "-q")
            runs.append(run)
        return runs

    def against_greedy(self, seconds, bar, goal):
        runs = ":".join(self.train(seconds))
        parts = []
        for pattern in PATTERNS:
            verdict = self.evaluate("7-21", pattern, f"greedy,learned={runs}")["verdict"]
            low, high = verdict["paired_difference_ci95"]
            parts.append(f"{pattern} {verdict['paired_difference']:.1f} [{low:.1f}, {high:.1f}]")
        self.row(f"learned alone after {seconds} s, {self.seeds} seeds, minus greedy, ms", "; ".join(parts), bar, goal,
                 f"`train reach-7-21.yaml --time {seconds}s --seed S`, `evaluate ... --policy greedy,learned=RUN1:…`")

    def above_best_known(self, name, policies, bar, goal):
        """Mean final latency over the patterns, against the best known; a policy for each seed."""
        finals, known, plans, moves = [], [], [], []
        for pattern in PATTERNS:
            fitting = [s["best_known_ms"] for s in self.starts if (s["config"], s["pattern"]) == ("7-21", pattern)]
            known.append(statistics.mean(fitting))
            means = []
            for policy in policies:
                result = self.evaluate("7-21", pattern, policy)["policies"][0]
                means.append(statistics.mean(episode["final"] for episode in result["episodes"]))
                plans.append(result["plan_us"])
                moves += [(len(episode["decisions"]), returns(episode)) for episode in result["episodes"]]
            finals.append(statistics.mean(means))
        share = statistics.mean(finals) / statistics.mean(known) - 1
        mean, p99 = statistics.mean(p["mean"] for p in plans) / 1000, max(p["p99"] for p in plans) / 1000
        made, back = (statistics.mean(numbers) for numbers in zip(*moves))
        self.row(name, f"{share:+.1%} ({statistics.mean(finals):.1f} ms); {made:.1f} moves, {back:.2g} of them back; "
                 f"a plan {mean:.2g} ms, p99 {p99:.2g}", bar, goal,
                 f"`evaluate ... --policy {policies[0]}` for each seed and pattern")

    def other_size(self):
        runs = self.train(60)
        parts = []
        for pattern in PATTERNS:
            shares = []
            for run in runs:
                result = self.evaluate("22-41", pattern, run)["policies"][0]
                start = [self.starts[e["start"]] for e in result["episodes"]]
                possible = sum(s["latency_ms"] - s["best_known_ms"] for s in start)
                shares.append(sum(e["initial"] - e["final"] for e in result["episodes"]) / possible)
            parts.append(f"{pattern} {statistics.mean(shares):.0%} ({min(shares):.0%} to {max(shares):.0%})")
        self.row(f"trained on 7-21 for 60 s, {self.seeds} seeds, run on 22-41: share of (start − best known) won", "; ".join(parts),
                 "≥ 93 %", "≥ 99 %", f"`evaluate reach-22-41.yaml --policy {runs[0]} --starts …`")

    # --- without REACH's files ---

    def large(self):
        scenario = TOP / "scenarios/continuum-100x1000.yaml"
        smaller = [TOP / f"scenarios/continuum-{size}.yaml" for size in ("7x21", "12x28", "22x41", "20x150", "40x350")]
        starts = ("--episodes", 6 if self.quick else 30, "--seed", 6)
        runs = []
        for seed in range(1, self.seeds + 1):
            runs.append(f"large-seed{seed}")
            self.run("train", *smaller, "-d", runs[-1], "--steps", 20_000 if self.quick else 1_000_000, "--seed", seed, "-q")
        self.against_long_search("alone", scenario, "learned=" + ":".join(runs), starts)
        self.against_long_search("the best of it, greedy and staying", scenario,
                                 "plan=best-of:samples=1,run=" + ":".join(runs), starts)

    def against_long_search(self, how, scenario, learned, starts):
        alone = self.json("evaluate", scenario, "--policy", learned, *starts)["policies"][0]
        budget = max(1, round(10 * alone["plan_us"]["mean"] / 1000))
        result = self.json("evaluate", scenario, "--policy", f"lookahead:time={budget}ms,{learned}", *starts)
        verdict = result["verdict"]
        low, high = verdict["paired_difference_ci95"]
        beam, mean = (p["summary"]["mean_final"] for p in result["policies"])
        self.row(f"continuum-100x1000, unseen, {self.seeds} seeds: learned plan, {how}, minus beam search with ten times its time, ms",
                 f"{verdict['paired_difference']:.1f} [{low:.1f}, {high:.1f}] ({mean:.1f} and {beam:.1f}); beam {budget} ms a plan",
                 "not worse", "better",
                 "`train` on the scenarios up to 40x350 with `--steps 1000000 --seed S`, "
                 f"`evaluate scenarios/continuum-100x1000.yaml --policy lookahead:time={budget}ms,{learned.split(':')[0]}:… "
                 f"--episodes {starts[1]} --seed {starts[3]}`")

    def bench(self, part, *arguments):
        return json.loads(self.run("bench", part, *arguments, "-o", "json"))[part]

    def rate(self, key, *arguments):
        """Steps a second, the median of some runs and their range: a single one says what else the machine was doing."""
        rates = sorted(self.bench(*arguments)[key] for _ in range(RATE_RUNS))
        return f"{statistics.median(rates):,.0f} ({rates[0]:,.0f} to {rates[-1]:,.0f} in {len(rates)} runs)"

    def environment(self):
        self.row("environment with encoding, random moves, steps/s on one core",
                 self.rate("steps_per_second_per_core", "env"), "≥ 500 k", "≥ 1 M", "`bench env`")
        scaling = ("env", "--task", "scale")
        self.row("scaling environment with encoding, steps/s on one core",
                 f"{self.rate('steps_per_second_per_core', *scaling)}; "
                 f"at random {self.bench(*scaling)['random_steps_per_second_per_core']:,.0f}",
                 "≥ 200 k", "≥ 500 k", "`bench env --task scale`")

    def training(self):
        result = self.bench("train")
        self.row(f"PPO training, environment steps/s on {result['threads']} threads",
                 f"{self.rate('env_steps_per_second', 'train')}; {result['epochs']} epochs, "
                 f"{result['mflop_per_sample']:.3f} MFLOP a sample", "≥ 60 k", "≥ 120 k", "`bench train`")

    def kernels(self):
        result = self.bench("kernel")
        self.row("training kernels, share of the measured peak",
                 f"{result['gflops'] / result['peak_gflops']:.0%} of {result['peak_gflops']:.0f} GFLOP/s", "≥ 55 %", "≥ 75 %",
                 "`bench kernel`")

    def decisions(self):
        result = self.bench("decide")
        self.row("one decision on 7-21, p50 and p99, µs", f"{result['p50_us']:.1f}, {result['p99_us']:.1f}", "p99 ≤ 20", "≤ 5",
                 "`bench decide`")

    def scale(self):
        parts = [f"{r['nodes']}×{r['pods']}: {r['decide_ms']:.3g}" for r in self.bench("scale")]
        self.row("one decision by size, ms", "; ".join(parts), "≤ 100 at 1,000×10,000", "≤ 20", "`bench scale`")

    def load_bench(self):
        program = self.binary.parent / "bench/load_bench"
        if not program.exists():
            raise RuntimeError("build/release/bench/load_bench is not built: cmake --build --preset release --target load_bench")
        done = subprocess.run([program, "--benchmark_format=json", "--benchmark_filter=Single|Events|Large"], check=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        found = {one["name"]: one for one in json.loads(done.stdout)["benchmarks"]}
        station, boutique = (found[name]["items_per_second"] / 1e6 for name in ("SingleStationRequests/1", "BoutiqueEvents"))
        self.row("event simulator on one core: requests/s of a single station; events/s of the boutique",
                 f"{station:.1f} M; {boutique:.1f} M", "≥ 2 M; ≥ 8 M", "2×", "`bench/load_bench`")
        rungs, graph = (found[f"LargeDecisions/call_graph:{rows}"]["real_time"] for rows in (0, 1))
        ladder = found["LargeLadder/iterations:1"]
        self.row("whole-application scaling decision, 300 workloads, µs",
                 f"{rungs:.0f}; shown the call graph {graph:.0f}; once a start its ladder of {ladder['rungs']:.0f} rungs, "
                 f"{ladder['real_time']:.0f} ms", "≤ 2,000", "≤ 200", "`bench/load_bench`")

    def binary_size(self):
        stripped = self.folder / "stripped"
        subprocess.run(["strip", "-o", stripped, self.binary], check=True)
        self.row("stripped binary, MB", f"{stripped.stat().st_size / 1e6:.1f}", "≤ 15", "", "`strip build/release/rudderfish`")

    def clean_build(self):
        build = self.folder / "build"
        began = time.monotonic()
        for command in (["cmake", "-S", TOP, "-B", build, "-G", "Ninja"], ["ninja", "-C", build, "rudderfish"]):
            subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                           env={**os.environ, "CCACHE_DISABLE": "1"})
        self.row("clean build of the program", f"{(time.monotonic() - began) / 60:.1f} min", "≤ 6 min", "", "`cmake --build --preset release`")

    def measure(self):
        if self.reach:
            self.import_scenarios()
            self.attempt(self.equality_with_reach)
            self.attempt(self.against_greedy, 2, "", "below 0")
            self.attempt(self.against_greedy, 10, "below 0", "")
            self.attempt(self.above_best_known, f"learned alone after 10 s, {self.seeds} seeds, above best known", self.train(10), "≤ + 3 %", "≤ + 1 %")
            runs = self.train(60)
            self.attempt(self.above_best_known, f"learned alone after 60 s, {self.seeds} seeds, above best known", runs, "≤ + 1.5 %", "≤ + 1 %")
            self.attempt(self.above_best_known, "the best of it and a search", [f"lookahead:run={run}" for run in runs], "≤ + 0.8 %", "≤ + 0.3 %")
            self.attempt(self.above_best_known, "learned, best of 17 walks", [f"best-of:samples=16,run={run}" for run in runs], "≤ + 1 %", "≤ + 0.5 %")
            self.attempt(self.above_best_known, "look-ahead alone", ["lookahead"], "≤ + 1 %, ≤ 10 ms", "below")
            self.attempt(self.other_size)
        else:
            self.row("rows on REACH's start states", "not measured: RUDDERFISH_REACH_DATA is not set", "", "", "")
        for measure in (self.large, self.environment, self.training, self.kernels, self.decisions, self.scale,
                        self.load_bench, self.binary_size, self.clean_build):
            self.attempt(measure)

    def table(self):
        lines = ["| what | figure | bar | goal | command |", "|---|---|---|---|---|"]
        lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in self.rows]
        return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=pathlib.Path, default=TOP / "build/release/rudderfish")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = Figures(options, pathlib.Path(folder))
        figures.measure()
    print(figures.table())
    if options.output:
        options.output.write_text(figures.table(), encoding="utf-8")
    return 1 if any(row[1].startswith("failed") for row in figures.rows) else 0


if __name__ == "__main__":
    sys.exit(main())
