# SPDX-License-Identifier: Apache-2.0
"""REACH's application on the testbed: seven nodes, 21 pods that play one call pattern of scenarios/continuum-7x21.yaml."""
import subprocess
import sys

from live_bed import TOP
from moving_bed import PROGRAM, Played

PATTERNS = ("chain", "aggregator_sequential", "aggregator_parallel")
SCENARIO = TOP / "scenarios/continuum-7x21.yaml"
REPLICAS = {"aggregator": 5, "detection": 5, "db": 5, "machine-learning": 5}
# A quarter of the scenario's: every node of the testbed believes that it has this machine's processors alone.
CPU = {"aggregator": "175m", "detection": "250m", "db": "125m", "machine-learning": "375m"}


def played_of(options, folder):
    words = ("--pattern", options.pattern, "--seed", str(options.seed))
    written = folder / "episode"
    done = subprocess.run([PROGRAM, "manifests", SCENARIO, *words, "-d", written, "-q"], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"manifests: {done.stderr.strip()}")
    return Played(SCENARIO, written / "application.yaml", written / "network.links", SCENARIO.stem, REPLICAS, CPU, words=words)
