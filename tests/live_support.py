# SPDX-License-Identifier: Apache-2.0
"""What tests on a testbed have in common: whether there can be one, and one of them by its name.

RUDDERFISH names the program under test; default: build/release/rudderfish. RUDDERFISH_TESTBED names a testbed that runs
already and is left alone.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

TOP = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = pathlib.Path(os.environ.get("RUDDERFISH", TOP / "build/release/rudderfish")).resolve()
TESTBED = TOP / "testbed" / "testbed"
GIVEN = os.environ.get("RUDDERFISH_TESTBED")


def run(*words, **options):
    """The testbed's command, whatever its status. `input` is what it reads."""
    return subprocess.run([str(TESTBED), *words], stdin=subprocess.DEVNULL if "input" not in options else None,
                          capture_output=True, text=True, check=False, timeout=300, **options)


def why_not():
    """Why there can be no testbed here, or an empty text."""
    if os.geteuid() != 0:
        return "a testbed needs root"
    done = run("build", "--check")
    return done.stderr.strip().removeprefix("testbed: ") if done.returncode else ""


def commands_of(page, heading):
    """What stands after "# " in the blocks fenced as `console` of one section of a page."""
    text = page.read_text(encoding="utf-8")
    section = text[text.index(heading + "\n") + len(heading):].split("\n## ", 1)[0]
    commands = []
    for block in re.findall(r"^```console\n(.*?)^```", section, re.DOTALL | re.MULTILINE):
        commands += [line[2:] for line in block.splitlines() if line.startswith("# ")]
    return commands


def main(program=None, **options):
    """unittest.main where there can be a testbed; status 77 elsewhere."""
    reason = why_not()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    if program is not None and not program.exists():
        sys.exit(f"{program} is not there; build it or set RUDDERFISH")
    unittest.main(**options)


class Cluster:
    """A testbed by its name."""

    def __init__(self, name):
        self.name = name

    def tried(self, command, *words, **options):
        """What came of it, status and all."""
        return run(command, "--name", self.name, *words, **options)

    def testbed(self, command, *words, **options):
        done = self.tried(command, *words, **options)
        if done.returncode != 0:
            raise AssertionError(f"testbed {command} {' '.join(words)}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def kubectl(self, *words, **options):
        return self.testbed("kubectl", "--", *words, **options)

    def apply(self, *objects):
        self.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def get(self, *words):
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def status(self):
        return json.loads(self.testbed("status", "-o", "json"))

    def start(self, test_class, *words):
        """Up for as long as the class's tests run, unless it is GIVEN."""
        if GIVEN:
            return
        self.testbed("down")
        test_class.addClassCleanup(self.testbed, "down")
        self.testbed("up", *words)
