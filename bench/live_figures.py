#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures on real API servers what a cluster of thousands of nodes asks of the mirror and of one decision, and how long a
testbed takes to come and to go; prints it as Markdown, each row with the command that anybody can repeat.

  live_figures.py [--build build/release] [--output FILE] [--nodes 5000] [--pods 50000]

Needs root and what docs/testbed.md says. Takes some ten minutes on an idle machine of 2 cores.
"""
import argparse
import pathlib
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[1]
NAME = "figures"
WATCHED_S = 20


def testbed(command, *words):
    done = subprocess.run([TOP / "testbed/testbed", command, "--name", NAME, *words], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"live_figures: testbed {command}: {done.stderr.strip()}")
    return done.stdout.strip()


def real_nodes():
    """Seconds from `up` to all Ready, and what is left after `down`, which checks that itself."""
    began = time.monotonic()
    testbed("up", "--layers", "cloud:2,edge:4,client:1")
    up = time.monotonic() - began
    began = time.monotonic()
    testbed("down")
    return [("testbed of 7 real nodes", f"up {up:.1f} s, down {time.monotonic() - began:.1f} s, nothing left", "≤ 40 s", "≤ 20 s",
             "`testbed/testbed up --layers cloud:2,edge:4,client:1`")]


def large_cluster(program, nodes, pods):
    bars = iter((("≤ 15 s, ≤ 500 MB", "≤ 6 s, ≤ 250 MB"), ("≤ 15 % of a core", "≤ 5 %"), ("≤ 150 ms", "≤ 30 ms"), ("≤ 150 ms", "≤ 30 ms")))
    kubeconfig = testbed("up", "--nodes", "0", "--hollow", str(nodes)).splitlines()[-1]
    try:
        for server in ("kube-controller-manager", "kwok"):  # So that what is made stays so.
            testbed("stop", server)
        run = [program, kubeconfig]
        filled = subprocess.run([*run, "fill", str(pods)], check=True, capture_output=True, text=True).stdout.strip()
        print(filled, file=sys.stderr, flush=True)
        with subprocess.Popen([*run, "churn", "100", str(WATCHED_S + 60)], stdout=subprocess.DEVNULL) as churn:
            # Before the servers, which share its cores here and not in a cluster.
            measured = subprocess.run(["chrt", "-r", "5", *run, "measure", str(WATCHED_S)], check=True, capture_output=True, text=True)
            churn.terminate()
        return [(*line.split(": ", 1), *next(bars), f"`live_figures KUBECONFIG measure {WATCHED_S}`, while `churn 100`")
                for line in measured.stdout.splitlines()]
    finally:
        testbed("down")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    options = parser.parse_args()
    rows = real_nodes() + large_cluster(options.build / "bench/live_figures", options.nodes, options.pods)
    lines = ["| what | figure | bar | goal | command |", "|---|---|---|---|---|", *("| " + " | ".join(row) + " |" for row in rows)]
    table = "\n".join(lines) + "\n"
    print(table)
    if options.output:
        options.output.write_text(table, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
