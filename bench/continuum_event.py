# SPDX-License-Identifier: Apache-2.0
"""REACH's nodefailed and autoscaling on the nodes of bench/continuum: what users see while two nodes fail and come back, or while a
workload grows. `rudderfish reach` lets it happen, around a controller that moves pods, or kube-scheduler alone."""
import csv
import json
import re
import statistics
import sys
import time

from moving_bed import KUBE_SCHEDULER, PROGRAM, Controller, Load, end, interval, policy_of, say

EVENTS = ("nodefailed", "autoscaling")
FAILING = ("edge-1", "edge-2")
SCALED, TARGET = "aggregator", 8
STABLE_S, WAITING_S, BEFORE_S, AFTER_S, SEEN_S, WORST_S = 5, 5, 45, 60, 20, 10


def device_config(bed, folder):
    """The controller's configuration as a process on the device needs it: nodes know the API server by another address."""
    server = f"https://{bed.get('service', 'kubernetes', '-n', 'default')['spec']['clusterIP']}:443"
    (folder / "kubeconfig").write_text(re.sub(r"https://127[^\s\"]*", server, bed.kubeconfig.read_text(encoding="utf-8")),
                                       encoding="utf-8")
    config = json.loads((folder / "rudderfish.yaml").read_text(encoding="utf-8"))
    config["cluster"]["kubeconfig"] = "kubeconfig"
    (folder / "device.yaml").write_text(json.dumps(config), encoding="utf-8")


def words_of(options):
    if options.event == "nodefailed":
        return ("--target_node_a", FAILING[0], "--target_node_b", FAILING[1], "--stable_start_time", STABLE_S,
                "--experiment_waiting_time", WAITING_S, "--t", BEFORE_S, "--after_wait_time", AFTER_S)
    return ("--workload", SCALED, "--target_replica", TARGET, "--experiment_waiting_time", BEFORE_S, "--for", AFTER_S)


def happened(bed, folder, options, target):
    """Lets it happen. The rows that `reach` wrote."""
    strategy = "be" if options.policy == KUBE_SCHEDULER else "rl"
    (folder / ".env").write_text(f"ENTRY_SERVICE_URL={target}\nPOLLING_PERIOD=500ms\nMAX_POD_WAITING_RETRIES=240\n", encoding="utf-8")
    process = bed.started_on("client-1", "env", "-C", folder, PROGRAM, "reach", options.event, "--strategy", strategy, "--qos", 1,
                             "--output", "event.csv", "-c", "device.yaml", *words_of(options), log=(folder / "reach.log").open("w"))
    process.communicate(timeout=900)
    if process.returncode:
        sys.exit(f"continuum: reach {options.event}: {(folder / 'reach.log').read_text(encoding='utf-8')[-500:]}")
    with (folder / "event.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def mean_between(curve, from_s, to_s):
    seen = [window["mean_ms"] for window in curve if window["mean_ms"] and from_s <= window["from_s"] < to_s]
    return statistics.mean(seen) if seen else None


def measured(bed, folder, options):
    """One policy from one start."""
    target, client = bed.entry()
    try:
        bed.kubectl("delete", "poddisruptionbudgets", "--all", "-n", bed.played.space)  # They allow no eviction.
        if options.policy == KUBE_SCHEDULER:
            bed.place_by_kube_scheduler()
            bed.kubectl("delete", "poddisruptionbudgets", "--all", "-n", bed.played.space)
        controller = Controller(bed, folder)
        device_config(bed, folder)
        if options.policy == KUBE_SCHEDULER:
            controller.end()
        with Load(bed, target) as load:
            began_s = time.time()
            rows = happened(bed, folder, options, target)
        if options.policy != KUBE_SCHEDULER:
            controller.end()
    finally:
        if client:
            end(client)
    at_s = [int(row["timestamp"]) - began_s for row in rows if row["event"] in ("node_failed", "node_recovered", "autoscaling")]
    curve = load.report["windows"]
    last_s = at_s[-1] if options.event == "nodefailed" else curve[-1]["from_s"]
    worst = [window["mean_ms"] for window in curve if window["mean_ms"] and at_s[0] <= window["from_s"] < at_s[0] + WORST_S]
    return {"policy": options.policy_name, "start": options.start, "event": options.event,
            "before_ms": mean_between(curve, at_s[0] - SEEN_S, at_s[0] - 2), "worst_ms": max(worst, default=None),
            "after_ms": mean_between(curve, last_s - SEEN_S, last_s), "moves": sum(row["event"] == "rescheduling" for row in rows),
            "sent_requests": load.report["sent"], "failed_requests": load.report["failed"], "curve": curve, "latency_ms": {}}


def compared_by_event(bed, folder, options):
    runs = []
    for start in range(options.first_start - 1, options.starts):
        for policy in options.policies.split(","):
            say(f"{options.event}, start {start + 1} of {options.starts}, {policy}")
            bed.place_badly(start)
            options.policy, options.policy_name, options.start = policy_of(bed, folder, options, policy), policy, start
            place = folder / f"{re.sub('[^a-z0-9+]', '-', policy)}-{start}"
            place.mkdir()
            runs.append(measured(bed, place, options))
    summary = []
    for policy in options.policies.split(","):
        own = [run for run in runs if run["policy"] == policy]
        mean = lambda name: statistics.mean([run[name] for run in own if run[name] is not None] or [float("nan")])
        summary.append({"policy": policy, **{name: mean(name) for name in ("before_ms", "worst_ms", "after_ms")},
                        "interval_ms": interval([run["after_ms"] for run in own]), "moves": sum(run["moves"] for run in own),
                        "sent": sum(run["sent_requests"] for run in own), "failed": sum(run["failed_requests"] for run in own)})
    return {"runs": runs, "summary": summary}


def event_table_of(result):
    lines = [f"{'POLICY':<16} {'BEFORE ms':>9} {'WORST ms':>9} {'AFTER ms':>9} {'95 %':>7} {'MOVES':>5} FAILED REQUESTS"]
    for row in result["summary"]:
        half = "" if row["interval_ms"] is None else f"±{row['interval_ms']:.0f}"
        lines.append(f"{row['policy']:<16} {row['before_ms']:>9.1f} {row['worst_ms']:>9.1f} {row['after_ms']:>9.1f} {half:>7} "
                     f"{row['moves']:>5} {row['failed']} of {row['sent']}")
    return "\n".join(lines)
