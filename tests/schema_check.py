#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks scenarios, applications and configurations against their schemas, and each schema against files that are wrong.

  schema_check.py [SCENARIO...]     default: all of scenarios/ and examples/
"""

import json
import pathlib
import sys

import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCENARIOS = ROOT / "scenarios"
EXAMPLES = ROOT / "examples"

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

WRONG_ARRIVALS = [
    (("objective",), "balanse"), (("objective",), {"energy": -1}), (("objective",), {}), (("arrivals",), {}),
    (("arrivals", "streams"), []), (("arrivals", "stream"), []), (("arrivals", "users"), 5),
    (("arrivals", "streams", 0, "interval"), 5), (("arrivals", "streams", 0, "interval"), {"poisson": "5s"}),
    (("arrivals", "streams", 0, "count"), 0), (("arrivals", "streams", 0, "workloads"), []),
    (("arrivals", "streams", 0, "rolling"), {"pods": 2}), (("arrivals", "streams", 0, "waves"), {"pods": 0}),
    (("arrivals", "trace"), {"format": "openc", "pods": "a.csv"}), (("arrivals", "lost_pods"), "wait"),
    (("arrivals", "failures"), {"every": "1h"}), (("arrivals", "events"), [{"at": "1s"}]),
    (("arrivals", "events"), [{"at": "1s", "lose": "a", "return": "a"}]), (("arrivals", "until"), 60),
    (("nodes", 0, "gpus"), 9), (("node_types", "worker-1", "power"), {"idle_watts": 5}),
    (("node_types", "worker-1", "power", "curve"), {}), (("node_types", "worker-1", "power", "curve"), {"1": 60}),
    (("node_types", "worker-1", "power", "curve"), {"0.5": -1}), (("node_types", "worker-1", "power", "curve"), [60, 70]),
    (("node_types", "worker-1", "power", "curve"), {f"0.{tenth:02}": 60 for tenth in range(1, 18)}),
    (("workloads", "nginx", "latency_soft"), 20), (("workloads", "nginx", "node_types"), []),
    (("workloads", "nginx", "measured"), {"conections": 1}), (("workloads", "nginx", "measured"), {"connections": -1}),
]

WRONG_LOADS = [
    (("load",), {}), (("load", "loads"), {}), (("load", "lodes"), {}), (("load", "interval"), 15), (("load", "retries"), -1),
    (("load", "sessions"), {"requests": 5}), (("load", "sessions"), {"requests": 0.5, "think": "7s"}),
    (("load", "pods", "frontend", "replicas"), 0), (("load", "pods", "frontend", "slots"), 0),
    (("load", "pods", "frontend", "scv"), -1), (("load", "pods", "frontend", "balance"), "rounds-robin"),
    (("load", "pods", "frontend", "discipline"), "sp"), (("load", "pods", "frontend", "balance"), {"least-requests": 0}), (("load", "pods", "frontend", "replica"), 2),
    (("load", "pods", "frontend", "start_delay"), {"exponential": "5s"}), (("load", "pods", "frontend", "image_pull"), 5),
    (("load", "pods", "frontend", "readiness"), {"initial_delay": "5s"}), (("load", "loads", "steady"), {"stedy": {"rate": 1}}),
    (("load", "loads", "steady"), {"steady": {"rate": -1}}), (("load", "loads", "ramp", "ramp", "end"), 5),
    (("load", "loads", "replay", "replay", "format"), "csv"), (("load", "loads", "replay", "replay", "part"), [0]),
    (("load", "loads", "replay", "replay", "held_out"), 1),
    (("load", "objective"), {"energy": 1}), (("load", "objective"), {"late": 0}), (("load", "objective"), "cost"),
    (("load", "limit"), {}), (("load", "limit"), {"late": 0.9}), (("load", "limit"), {"p95": 300}), (("load", "limit"), {"p96": "qos"}),
    (("load", "limit"), {"late": "1%", "p95": "qos"}),
]

WRONG_REGIONS = [
    (("regions",), {}), (("regions", "region"), {}), (("nodes",), []), (("regions", "at"), {}), (("regions", "variants"), {}),
    (("regions", "variants", "calm"), ["flush"]), (("regions", "at", "us-west1", "carbon"), [1, 2]),
    (("regions", "at", "us-west1", "start"), ["2min"]), (("regions", "at", "us-west1", "pue"), 0.9),
    (("regions", "at", "us-west1", "nodes_max"), 0), (("regions", "at", "us-west1", "zones"), "na"),
    (("regions", "service", "response"), 8000), (("regions", "service", "deadline"), 400),
    (("regions", "round_trips", "base"), 6), (("regions", "chance"), {"flash_per_week": 1}),
    (("regions", "egress_per_gb", "within"), -1), (("regions", "objective"), {"carbon": 1}),
]

WRONG_APPLICATIONS = [
    (("rudderfish",), "scenario/v1"), (("model",), "raech"), (("namespace",), "Not A Name"), (("seed",), 1),
    (("latency", "edge", "cloud"), "1ms to 5ms"), (("latency", "edge", "cloud"), ["1ms"]),
    (("node_types", "edge", "nodes"), {"matchLabel": {}}), (("node_types", "edge", "layer"), None),
    (("node_types", "edge", "nodes"), {"matchExpressions": [{"key": "a", "operator": "In"}]}),
    (("node_types", "edge", "nodes"), {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}),
    (("node_types", "edge", "power"), {"idle_watts": 5}), (("node_types", "edge", "price_per_hour"), -1),
    (("workloads", "db"), {}), (("workloads", "db", "object"), "pod/db"), (("workloads", "db", "external"), "edge"),
    (("workloads", "client"), {"external": "client", "movable": True}), (("workloads", "db", "execution"), "fast"),
    (("endpoints",), {}), (("endpoints", "detect", "rate"), -1), (("endpoints", "detect", "calls"), []),
]

WRONG_CONFIGS = [
    (("rudderfish",), "config/v9"), (("cluster", "seed"), -1), (("cluster", "kubeconfig"), "both"),
    (("applications",), ["a.yaml"]), (("decisions", "migration", "mode"), "enforced"), (("decisions", "migration", "canary"), 1),
    (("decisions", "migration", "correction"), "on"),
    (("decisions", "migration", "moves"), {"at_once": 0}), (("decisions", "migration", "budgets"), {"moves_per_hour": {"node": -1}}),
    (("decisions", "migration", "budgets"), {"windows": [{"schedule": "@daily"}]}),
    (("decisions", "scaling"), {"mode": "shadow"}), (("decisions",), {}), (("decisions", "placement"), {}), (("policy",), "greedy"),
    (("decisions", "migration", "budgets"), {"moves_per_plan": -1}), (("decisions", "migration", "budgets"), {"benefit_factor": "some"}),
    (("decisions", "migration", "budgets"), {"pod_cooldown": "5"}),
    (("journal",), {"size": "big"}), (("journal",), {"retention": "1y"}), (("server",), {"listen": "everywhere"}),
    (("decisions", "migration", "interval"), 5), (("cluster", "staleness"), 5), (("scope",), {"namespace": ["a"]}),
    (("decisions", "migration", "objective"), {"steps": 5}),
    (("signals",), {"prometheus": ["http://a"], "headers": {}}), (("signals",), {"prometheus": ["http://a"], "ca_file": ""}),
    (("decisions", "migration", "events"), True), (("leader_election",), {"lease": "a/b"}),  # Of a cluster that is simulated.
]

WRONG_PLACING = [
    (("decisions", "placement", "mode"), "enforced"), (("decisions", "placement", "canary"), 2),
    (("decisions", "placement", "compare"), []),
    (("decisions", "placement", "compare"), "default-scheduler"), (("extender", "listen"), "here"),
    (("scope",), {"namespaces": ["a"]}), (("signals",), {"prometheus": ["http://a"]}),  # Only migration reads them.
]

WRONG_ROUTING = [
    (("decisions", "routing", "mode"), "enforced"), (("decisions", "routing", "routes"), []), (("decisions", "routing", "canary"), 1),
    (("decisions", "routing", "routes"), [{"name": "web"}]), (("decisions", "routing", "routes"), [{"name": "w", "haproxy": "/s"}]),
    (("decisions", "routing", "routes"), [{"name": "web", "httproute": "shop/web", "haproxy": "/s", "backend": "b"}]),
    (("decisions", "routing", "routes"), [{"name": "web", "httproute": "shop"}]), (("decisions", "routing", "budgets"), {"step": 0}),
    (("decisions", "routing", "capacity"), {"eu": {"deployment": "web", "pods_max": 3}}),
    (("decisions", "routing", "capacity"), {"eu": {"deployment": "shop/web", "vms_max": 3}}),
    (("decisions", "routing", "budgets"), {"floor": 101}), (("decisions", "routing", "interval"), 5),
    (("scope",), {"namespaces": ["a"]}),
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


def check(kind, schema_path, files, right_path, wrong):
    """How many problems there are."""
    schema = json.loads(schema_path.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    problems = 0 if files else 1
    for file in files:
        for error in validator.iter_errors(read(file)):
            problems += 1
            print(f"{file}: {error.json_path}: {error.message[:200]}")
    right = read(right_path)
    for path, value in wrong:
        if validator.is_valid(changed(right, path, value)):
            problems += 1
            print(f"the schema accepts {'.'.join(map(str, path))}: {value}")
    print(f"{len(files)} {kind}, {len(wrong)} wrong ones, {problems} problems")
    return problems


def main():
    given = [pathlib.Path(argument) for argument in sys.argv[1:]]
    problems = check("scenarios", SCENARIOS / "scenario.schema.json", given or sorted(SCENARIOS.glob("*.yaml")),
                     SCENARIOS / "continuum-7x21.yaml", WRONG)
    if not given:
        problems += check("scenarios with arrivals", SCENARIOS / "scenario.schema.json",
                          sorted((ROOT / "tests/data").rglob("replay.yaml")), SCENARIOS / "thesis-test1.yaml",
                          WRONG_ARRIVALS)
        problems += check("scenarios with load", SCENARIOS / "scenario.schema.json", [SCENARIOS / "redis.yaml"],
                          SCENARIOS / "online-boutique.yaml", WRONG_LOADS)
        problems += check("scenarios of regions", SCENARIOS / "scenario.schema.json", [SCENARIOS / "multicloud-16.yaml"],
                          SCENARIOS / "multicloud-16.yaml", WRONG_REGIONS)
        problems += check("applications", EXAMPLES / "application.schema.json",
                          sorted(EXAMPLES.rglob("application.yaml")),
                          EXAMPLES / "continuum/application.yaml", WRONG_APPLICATIONS)
        problems += check("configurations", EXAMPLES / "config.schema.json", sorted(EXAMPLES.rglob("rudderfish.yaml")),
                          EXAMPLES / "simulated/rudderfish.yaml", WRONG_CONFIGS)
        problems += check("configurations that place pods", EXAMPLES / "config.schema.json", [EXAMPLES / "placement/rudderfish.yaml"],
                          EXAMPLES / "placement/rudderfish.yaml", WRONG_PLACING)
        problems += check("configurations that route", EXAMPLES / "config.schema.json", [EXAMPLES / "routing/rudderfish.yaml"],
                          EXAMPLES / "routing/rudderfish.yaml", WRONG_ROUTING)
        problems += check("scenarios of two regions", SCENARIOS / "scenario.schema.json", [EXAMPLES / "routing/regions.yaml"],
                          SCENARIOS / "multicloud-16.yaml", WRONG_REGIONS)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
