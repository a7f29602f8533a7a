# SPDX-License-Identifier: Apache-2.0
"""What tests on a testbed have in common: whether there can be one, and one of them by its name.

RUDDERFISH names the program under test; default: build/release/rudderfish. RUDDERFISH_TESTBED names a testbed that runs
already and is left alone.
"""
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
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


class BindingLog:
    """Every Binding that the API server was sent, and what it answered, from its audit log. The log also has those whose answer
    the sender, or a proxy in front of the server, has not received."""
    POLICY = ("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n"
              "- {level: Request, resources: [{group: '', resources: [pods/binding]}]}\n- {level: None}\n")

    def __init__(self, path):
        self.sent = {}  # By uid, in the order of the answers: node, status.
        self.done_at_s = {}  # By uid of what was bound.
        text = path.read_text(encoding="utf-8")
        entries = [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]  # The last may be half written.
        for entry in sorted(entries, key=lambda entry: entry["stageTimestamp"]):
            binding, status = entry["requestObject"], entry["responseStatus"]["code"]
            uid = binding["metadata"].get("uid")
            self.sent.setdefault(uid, []).append((binding["target"]["name"], status))
            if status == 201:
                self.done_at_s[uid] = datetime.datetime.fromisoformat(entry["stageTimestamp"]).timestamp()

    def done_twice(self):
        """Pods of which two Bindings were answered 201: an API server that says so has been talked round."""
        return {uid: sent for uid, sent in self.sent.items() if uid and sum(status == 201 for _, status in sent) > 1}

    def sent_elsewhere(self):
        """Pods that were bound to one node and then sent to another by somebody who gave their uid: who has seen, or been told,
        where a pod is decides nothing about it."""
        found = {}
        for uid, sent in self.sent.items():
            bound = next((node for node, status in sent if status == 201), None)
            later = sent[[status for _, status in sent].index(201) + 1:] if bound else []
            if uid and any(node != bound for node, _ in later):
                found[uid] = sent
        return found


class Cluster:
    """A testbed by its name."""

    def __init__(self, name):
        self.name = name
        self.kubeconfig = pathlib.Path("/var/lib/rudderfish-testbed") / name / "kubeconfig"

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

    def start_audited(self, test_class, *words):
        """As start; binding_log says of it."""
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".yaml") as policy:
            policy.write(BindingLog.POLICY)
            policy.flush()
            self.start(test_class, *words, "--audit", policy.name)

    def binding_log(self):
        """Nothing where the testbed is GIVEN."""
        path = pathlib.Path("/var/lib/rudderfish-testbed") / self.name / "audit.log"
        return BindingLog(path) if path.exists() else None
