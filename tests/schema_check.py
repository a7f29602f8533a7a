#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks scenario files against scenarios/scenario.schema.json, and the schema against files that are wrong.

  schema_check.py [FILE...]     default: all of scenarios/
"""

import json
import pathlib
import sys

import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCENARIOS = ROOT / "scenarios"

# Changes to a right file that the schema must refuse: the path of keys, and the new value.
WRONG = [
    (("rudderfish",), "scenario/v9"), (("seed",), -1), (("sead",), 1), (("model",), "raech"),
    (("layers",), {}), (("layers", "cloud"), {"accept_moves": True}), (("latency", "edge", "cloud"), "50"),
    (("latency", "edge", "cloud"), []), (("node_types", "tb-edge-vm-2", "bandwidth"), "fast"),
    (("node_types", "tb-edge-vm-2", "layer"), None), (("nodes", 0, "count"), -1), (("nodes", 0, "cpu"), "2c"),
    (("nodes", 0, "names"), ["both-count-and-names"]), (("nodes", 0, "memory"), "2GB"), (("nodes", 0, "background"), 2), (("nodes",), []),
    (("workloads", "client", "replicas"), 0), (("workloads", "client", "replicas"), "some"),
    (("workloads", "client", "requests"), {"cpu": 1}), (("workloads", "calls"), {"requests": {}, "replicas": 1}),
    (("workloads", "client", "layers"), []), (("patterns",), {}), (("patterns", "chain", "detection", "rate"), -1),
    (("patterns", "chain", "detection", "parallel"), ["db"]), (("patterns", "chain", "detection", "calls"), []),
    (("patterns", "chain", "detection", "calls", 0), {"db": None, "aggregator": None}),
    (("patterns", "chain", "detection", "calls", 0), {"db": {"data": "1Mbit"}}),
    (("pattern_weights",), {"chain": 0}), (("retries",), 0), (("task", "max_steps"), 0), (("task", "steps"), 5),
]


def with_string_keys(value):
    """JSON has no other keys; `execution: {0: 7ms}` is the same to the program."""
    if isinstance(value, dict):
        return {str(key): with_string_keys(item) for key, item in value.items()}
    return [with_string_keys(item) for item in value] if isinstance(value, list) else value


def read(path):
    return with_string_keys(yaml.safe_load(path.read_text(encoding="utf-8")))


def changed(document, path, value):
    copy = document.copy()
    copy[path[0]] = changed(document[path[0]], path[1:], value) if len(path) > 1 else value
    return copy


def main():
    schema = json.loads((SCENARIOS / "scenario.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    files = [pathlib.Path(argument) for argument in sys.argv[1:]] or sorted(SCENARIOS.glob("*.yaml"))
    problems = 0
    for file in files:
        for error in validator.iter_errors(read(file)):
            problems += 1
            print(f"{file}: {error.json_path}: {error.message[:200]}")
    right = read(SCENARIOS / "continuum-7x21.yaml")
    for path, value in WRONG:
        if validator.is_valid(changed(right, path, value)):
            problems += 1
            print(f"the schema accepts {'.'.join(map(str, path))}: {value}")
    print(f"{len(files)} scenarios, {len(WRONG)} wrong ones, {problems} problems")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
