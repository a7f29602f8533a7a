#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The network of src/nn/candidate_net.h once more, in NumPy and float64, with a backward pass of its own.

  nn_reference.py FILE           writes inputs, weights, outputs and gradients as FILE (safetensors)
  nn_reference.py --check FILE   computes them again and compares: exit status 1 if they differ

The backward pass is first checked against central differences. src/nn/candidate_net_golden_test.cc compares the
network with FILE, so that a formula misread in C++ is not misread by the test of it too.
"""

import json
import sys

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

# candidates, nodes, workloads, placements, calls of each question
CASES = {
    "one": dict(hidden=32, rounds=1, widths=(32, 16, 16, 16), seed=1,
                sizes=[(7, 4, 3, 5, 2), (1, 1, 1, 1, 0), (0, 2, 2, 2, 1)]),
    "two": dict(hidden=16, rounds=2, widths=(16, 16, 16, 16), seed=2, sizes=[(5, 3, 4, 6, 4), (4, 2, 1, 2, 0)]),
    "gcn": dict(hidden=16, rounds=2, widths=(16, 16, 16, 16), seed=3, sizes=[(5, 3, 4, 6, 4), (4, 2, 1, 2, 0)],
                encoder="gcn"),
    "gatv2": dict(hidden=32, rounds=1, widths=(16, 16, 16, 16), seed=4, sizes=[(5, 3, 4, 6, 5), (4, 2, 1, 2, 0)],
                  encoder="gatv2"),
    "deepsets": dict(hidden=16, rounds=2, widths=(16, 16, 16, 16), seed=5, sizes=[(5, 3, 4, 6, 4), (4, 2, 1, 2, 0)],
                     encoder="deepsets"),
    "mlp": dict(hidden=16, rounds=2, widths=(16, 16, 16, 16), seed=6, sizes=[(5, 3, 4, 6, 4), (4, 2, 1, 2, 0)],
                encoder="mlp"),
    # Two episodes side by side, three questions each; the second restarts at its second question.
    "gru": dict(hidden=16, rounds=1, widths=(16, 16, 16, 16), seed=7, lanes=2, fresh=(0, 1, 0, 1, 0, 0),
                sizes=[(5, 3, 4, 6, 4), (4, 2, 1, 2, 0), (3, 2, 3, 4, 2), (5, 3, 2, 3, 1), (2, 2, 3, 3, 3),
                       (4, 2, 2, 2, 1)]),
}
PARTS_OF = {"relational": (2, 4), "gcn": (2, 4), "gatv2": (2, 4), "deepsets": (3, 3), "mlp": (1, 1)}
RELATIONS = ("hosts", "hosted", "callers", "callees")
PARTS = ("candidate", "node", "workload", "placement", "call")


def encoder_of(case):
    return case.get("encoder", "relational")


def memory_shapes(h):
    return {"memory.input": (h, 3 * h), "memory.recurrent": (h, 2 * h), "memory.candidate": (h, h),
            "memory.bias": (1, 3 * h)}


def tensor_shapes(hidden, rounds, widths, encoder):
    candidate, node, workload, context = widths
    h = hidden
    node_parts, workload_parts = PARTS_OF[encoder]
    shapes = {"node.weight": (node, h), "node.bias": (1, h), "workload.weight": (workload, h), "workload.bias": (1, h)}
    for r in range(rounds):
        shapes |= {f"round{r}.node.weight": (node_parts * h, h), f"round{r}.node.bias": (1, h),
                   f"round{r}.workload.weight": (workload_parts * h, h), f"round{r}.workload.bias": (1, h)}
        for relation in RELATIONS if encoder == "gatv2" else ():
            shapes |= {f"round{r}.{relation}.source": (h, h), f"round{r}.{relation}.listener": (h, h),
                       f"round{r}.{relation}.edge": (1, h), f"round{r}.{relation}.score": (1, h)}
    return shapes | {
        "candidate.weight": (candidate, h), "candidate.ends": (h, 2 * h), "candidate.workload": (h, h),
        "candidate.context": (context, h), "candidate.bias": (1, h), "context.weight": (6 * h + context, h),
        "context.bias": (1, h), "score.weight": (h, h), "score.context": (h, h), "score.bias": (1, h),
        "logit.weight": (1, h), "logit.skip": (1, candidate), "decision.weight": (h, h), "decision.bias": (1, h),
        "stop.weight": (1, h), "stop.bias": (1, 1), "value.weight": (1, h), "value.bias": (1, 1)}


def make_inputs(case):
    """Questions one after another, float32 values in float64 arrays."""
    random = np.random.RandomState(case["seed"])
    draw = lambda *shape: random.standard_normal(shape).astype(np.float32).astype(np.float64)
    candidate, node, workload, context = case["widths"]
    questions = []
    for candidates, nodes, workloads, placements, calls in case["sizes"]:
        pick = lambda n, *shape: random.randint(0, n, shape)
        ends = np.stack([pick(workloads, candidates), pick(nodes, candidates), pick(nodes, candidates)], axis=1)
        if candidates > 4:
            ends[4] = -1  # A candidate that joins nothing.
        questions.append(dict(
            x=draw(candidates, candidate), n=draw(nodes, node), s=draw(workloads, workload), g=draw(context), ends=ends,
            placements=np.stack([pick(nodes, placements), pick(workloads, placements)], axis=1),
            placement_weights=np.abs(draw(placements)),
            calls=np.stack([pick(workloads, calls), pick(workloads, calls)], axis=1),
            call_weights=np.abs(draw(calls)),
            dlogits=draw(candidates), dstop=draw(1)[0], dvalue=draw(1)[0]))
    shapes = tensor_shapes(case["hidden"], case["rounds"], case["widths"], encoder_of(case))
    if "lanes" in case:
        shapes |= memory_shapes(case["hidden"])
    weights = {name: (draw(*shape) / np.sqrt(max(shape[0], 3))).astype(np.float32).astype(np.float64)
               for name, shape in shapes.items()}
    if "lanes" in case:
        for i, q in enumerate(questions):
            q["fresh"] = case["fresh"][i]
            if i < case["lanes"]:
                q["before"] = draw(case["hidden"])
    return questions, weights


def incidence(edges, weights, rows, columns):
    """A[a][b] = the summed weight of the edges (a, b)."""
    matrix = np.zeros((rows, columns))
    np.add.at(matrix, (edges[:, 0], edges[:, 1]), weights)
    return matrix


def selection(index, rows):
    """A[i][index[i]] = 1; a row of zeros for -1."""
    matrix = np.zeros((len(index), rows))
    for i, j in enumerate(index):
        if j >= 0:
            matrix[i, j] = 1
    return matrix


def mean_max(x, width):
    if len(x) == 0:
        return np.zeros(2 * width)
    return np.concatenate([x.mean(axis=0), x.max(axis=0)])


def mean_max_backward(x, d):
    dx = np.zeros_like(x)
    if len(x):
        width = x.shape[1]
        dx += d[:width] / len(x)
        dx[x.argmax(axis=0), np.arange(width)] += d[width:]
    return dx


def relu(x):
    return np.maximum(x, 0)


def normalised(on, calls):
    """Both with rows and columns divided by the roots of 1 + their sums; of calls, of both directions together."""
    rows, columns, both = 1 + on.sum(axis=1), 1 + on.sum(axis=0), 1 + calls.sum(axis=0) + calls.sum(axis=1)
    return on / np.sqrt(np.outer(rows, columns)), calls / np.sqrt(np.outer(both, both))


def attend(listeners, sources, edges, weights, own, heard, by_edge, score):
    """The messages of GATv2 along `edges` (listener, source), and what attend_backward needs. Heads are 16 columns."""
    values, queries, heads = sources @ own, listeners @ heard, own.shape[1] // 16
    z = values[edges[:, 1]] + queries[edges[:, 0]] + np.outer(weights, by_edge[0])
    scores = (np.where(z > 0, z, 0.2 * z) * score[0]).reshape(len(edges), heads, 16).sum(axis=2)
    share = np.exp(scores)
    for listener in np.unique(edges[:, 0]):
        mine = edges[:, 0] == listener
        share[mine] /= share[mine].sum(axis=0)
    messages = np.zeros((len(listeners), own.shape[1]))
    np.add.at(messages, edges[:, 0], np.repeat(share, 16, axis=1) * values[edges[:, 1]])
    return messages, (values, z, share)


def attend_backward(listeners, sources, edges, weights, own, heard, by_edge, score, saved, dmessages):
    """Gradients by listeners, sources, own, heard, by_edge and score."""
    values, z, share = saved
    wide = np.repeat(share, 16, axis=1)
    d = dmessages[edges[:, 0]]
    dvalues, dqueries = np.zeros_like(values), np.zeros((len(listeners), own.shape[1]))
    np.add.at(dvalues, edges[:, 1], wide * d)
    dshare = (d * values[edges[:, 1]]).reshape(share.shape + (16,)).sum(axis=2)
    dscores = np.zeros_like(share)
    for listener in np.unique(edges[:, 0]):
        mine = edges[:, 0] == listener
        jacobian_row = (share[mine] * dshare[mine]).sum(axis=0)
        dscores[mine] = share[mine] * (dshare[mine] - jacobian_row)
    wide = np.repeat(dscores, 16, axis=1)
    dz = wide * score[0] * np.where(z > 0, 1, 0.2)
    np.add.at(dvalues, edges[:, 1], dz)
    np.add.at(dqueries, edges[:, 0], dz)
    return (dqueries @ heard.T, dvalues @ own.T, sources.T @ dvalues, listeners.T @ dqueries,
            (weights @ dz)[None], (wide * np.where(z > 0, z, 0.2 * z)).sum(axis=0)[None])


def relations(q):
    """Of each: which table listens, which speaks, edges (listener, source), weights."""
    placements, calls = q["placements"], q["calls"]
    return {"hosts": ("n", "s", placements, q["placement_weights"]),
            "hosted": ("s", "n", placements[:, ::-1], q["placement_weights"]),
            "callers": ("s", "s", calls[:, ::-1], q["call_weights"]),
            "callees": ("s", "s", calls, q["call_weights"])}


def attention_weights(w, r, relation):
    return [w[f"round{r}.{relation}.{part}"] for part in ("source", "listener", "edge", "score")]


def round_inputs(q, w, encoder, r, n, s, on, calls):
    """What a round reads of nodes and of workloads, and what is saved of attention."""
    if encoder == "mlp":
        return n, s, None
    if encoder == "deepsets":
        mean_n, mean_s = mean_max(n, n.shape[1])[:n.shape[1]], mean_max(s, s.shape[1])[:s.shape[1]]
        repeat = lambda row, table: np.repeat(row[None], len(table), axis=0)
        return (np.concatenate([n, repeat(mean_n, n), repeat(mean_s, n)], axis=1),
                np.concatenate([s, repeat(mean_s, s), repeat(mean_n, s)], axis=1), None)
    if encoder != "gatv2":
        return (np.concatenate([n, on @ s], axis=1),
                np.concatenate([s, on.T @ n, calls.T @ s, calls @ s], axis=1), None)
    rows, messages, saved = {"n": n, "s": s}, {}, {}
    for relation, (listener, source, edges, weights) in relations(q).items():
        messages[relation], saved[relation] = attend(rows[listener], rows[source], edges, weights,
                                                     *attention_weights(w, r, relation))
    return (np.concatenate([n, messages["hosts"]], axis=1),
            np.concatenate([s, messages["hosted"], messages["callers"], messages["callees"]], axis=1), saved)


def round_backward(q, w, encoder, r, hidden, n, s, on, calls, saved, dnode, dworkload, gradient):
    """From the gradients of what a round reads to those of n and s."""
    if encoder == "mlp":
        return dnode, dworkload
    if encoder == "deepsets":
        own_n, mean_n, other_s = np.split(dnode, 3, axis=1)
        own_s, mean_s, other_n = np.split(dworkload, 3, axis=1)
        return (own_n + (mean_n.sum(axis=0) + other_n.sum(axis=0)) / max(len(n), 1),
                own_s + (mean_s.sum(axis=0) + other_s.sum(axis=0)) / max(len(s), 1))
    own_n, from_hosts = np.split(dnode, 2, axis=1)
    own_s, from_hosted, from_callers, from_callees = np.split(dworkload, 4, axis=1)
    if encoder != "gatv2":
        return (own_n + on @ from_hosted,
                own_s + on.T @ from_hosts + calls @ from_callers + calls.T @ from_callees)
    d, rows = {"n": own_n.copy(), "s": own_s.copy()}, {"n": n, "s": s}
    dmessages = dict(hosts=from_hosts, hosted=from_hosted, callers=from_callers, callees=from_callees)
    for relation, (listener, source, edges, weights) in relations(q).items():
        dlistener, dsource, *dweights = attend_backward(rows[listener], rows[source], edges, weights,
                                                        *attention_weights(w, r, relation), saved[relation],
                                                        dmessages[relation])
        d[listener] += dlistener
        d[source] += dsource
        for part, value in zip(("source", "listener", "edge", "score"), dweights):
            gradient[f"round{r}.{relation}.{part}"] += value
    return d["n"], d["s"]


def logistic(x):
    return 1 / (1 + np.exp(-x))


def remember(x, m, w):
    """A gated recurrent unit: what is remembered after seeing x, and what its gradient needs."""
    h = len(x)
    seen, kept = x @ w["memory.input"] + w["memory.bias"][0], m @ w["memory.recurrent"]
    z, r = logistic(seen[:h] + kept[:h]), logistic(seen[h:2 * h] + kept[h:])
    c = np.tanh(seen[2 * h:] + (r * m) @ w["memory.candidate"])
    return (1 - z) * m + z * c, (m, z, r, c)


def remember_backward(x, saved, w, d, add):
    """From the gradient by what is remembered after to those by x and by what was before."""
    m, z, r, c = saved
    dc = d * z * (1 - c * c)
    dreset = w["memory.candidate"] @ dc
    dgates = np.concatenate([d * (c - m) * z * (1 - z), dreset * m * r * (1 - r)])
    add("memory.candidate", np.outer(r * m, dc))
    add("memory.recurrent", np.outer(m, dgates))
    add("memory.input", np.outer(x, np.concatenate([dgates, dc])))
    add("memory.bias", np.concatenate([dgates, dc]))
    return (w["memory.input"] @ np.concatenate([dgates, dc]),
            d * (1 - z) + dreset * r + w["memory.recurrent"] @ dgates)


def forward(q, w, hidden, rounds, encoder, memory=None):
    """Outputs and what backward needs; with `memory`, saved["after"] is what is remembered then."""
    on = incidence(q["placements"], q["placement_weights"], len(q["n"]), len(q["s"]))
    calls = incidence(q["calls"], q["call_weights"], len(q["s"]), len(q["s"]))
    if encoder == "gcn":
        on, calls = normalised(on, calls)
    n = relu(q["n"] @ w["node.weight"] + w["node.bias"])
    s = relu(q["s"] @ w["workload.weight"] + w["workload.bias"])
    inputs = []
    for r in range(rounds):
        node_input, workload_input, attended = round_inputs(q, w, encoder, r, n, s, on, calls)
        inputs.append((node_input, workload_input, attended))
        n = relu(node_input @ w[f"round{r}.node.weight"] + w[f"round{r}.node.bias"])
        s = relu(workload_input @ w[f"round{r}.workload.weight"] + w[f"round{r}.workload.bias"])
    by_workload, by_from, by_to = (selection(q["ends"][:, i], rows) for i, rows in enumerate((len(s), len(n), len(n))))
    e = relu(q["x"] @ w["candidate.weight"] + by_from @ n @ w["candidate.ends"][:, :hidden] +
             by_to @ n @ w["candidate.ends"][:, hidden:] + by_workload @ s @ w["candidate.workload"] +
             q["g"] @ w["candidate.context"] + w["candidate.bias"])
    pooled = np.concatenate([mean_max(e, hidden), mean_max(n, hidden), mean_max(s, hidden), q["g"]])
    ctx = seen = relu(pooled @ w["context.weight"] + w["context.bias"][0])
    after = recalled = None
    if memory is not None:
        after, recalled = remember(seen, memory, w)
        ctx = seen + after
    h = relu(e @ w["score.weight"] + ctx @ w["score.context"] + w["score.bias"])
    d = relu(ctx @ w["decision.weight"] + w["decision.bias"][0])
    logits = h @ w["logit.weight"][0] + q["x"] @ w["logit.skip"][0]
    stop = d @ w["stop.weight"][0] + w["stop.bias"][0, 0]
    value = d @ w["value.weight"][0] + w["value.bias"][0, 0]
    saved = dict(on=on, calls=calls, inputs=inputs, n=n, s=s, by_from=by_from, by_to=by_to, by_workload=by_workload,
                 e=e, pooled=pooled, ctx=ctx, h=h, d=d, seen=seen, after=after, recalled=recalled)
    return (logits, stop, value), saved


def backward(q, w, hidden, rounds, encoder, saved, gradient, dafter=0):
    """Adds to `gradient`; `dafter` is the gradient by what is remembered after, the result that by what was before."""
    a = saved
    h, e, d, ctx, n, s = a["h"], a["e"], a["d"], a["ctx"], a["n"], a["s"]
    dlogits, dstop, dvalue = q["dlogits"], q["dstop"], q["dvalue"]

    def add(name, value):
        gradient[name] += np.reshape(value, gradient[name].shape)

    add("stop.weight", dstop * d)
    add("stop.bias", dstop)
    add("value.weight", dvalue * d)
    add("value.bias", dvalue)
    add("logit.weight", dlogits @ h)
    add("logit.skip", dlogits @ q["x"])
    dd = (dstop * w["stop.weight"][0] + dvalue * w["value.weight"][0]) * (d > 0)
    add("decision.weight", np.outer(ctx, dd))
    add("decision.bias", dd)
    dh = np.outer(dlogits, w["logit.weight"][0]) * (h > 0)
    add("score.weight", e.T @ dh)
    add("score.context", np.outer(ctx, dh.sum(axis=0)))
    add("score.bias", dh.sum(axis=0))
    dctx, dbefore = w["decision.weight"] @ dd + w["score.context"] @ dh.sum(axis=0), None
    if a["recalled"] is not None:
        dseen, dbefore = remember_backward(a["seen"], a["recalled"], w, dctx + dafter, add)
        dctx = dctx + dseen
    dctx = dctx * (a["seen"] > 0)
    add("context.weight", np.outer(a["pooled"], dctx))
    add("context.bias", dctx)
    dpooled = w["context.weight"] @ dctx
    de = (dh @ w["score.weight"].T + mean_max_backward(e, dpooled[:2 * hidden])) * (e > 0)
    add("candidate.weight", q["x"].T @ de)
    add("candidate.context", np.outer(q["g"], de.sum(axis=0)))
    add("candidate.bias", de.sum(axis=0))
    from_rows, to_rows = a["by_from"].T @ de, a["by_to"].T @ de
    add("candidate.ends", np.concatenate([n.T @ from_rows, n.T @ to_rows], axis=1))
    add("candidate.workload", s.T @ (a["by_workload"].T @ de))
    dn = (from_rows @ w["candidate.ends"][:, :hidden].T + to_rows @ w["candidate.ends"][:, hidden:].T +
          mean_max_backward(n, dpooled[2 * hidden:4 * hidden])) * (n > 0)
    ds = (a["by_workload"].T @ de @ w["candidate.workload"].T +
          mean_max_backward(s, dpooled[4 * hidden:6 * hidden])) * (s > 0)
    for r in reversed(range(rounds)):
        node_input, workload_input, attended = a["inputs"][r]
        add(f"round{r}.node.weight", node_input.T @ dn)
        add(f"round{r}.node.bias", dn.sum(axis=0))
        add(f"round{r}.workload.weight", workload_input.T @ ds)
        add(f"round{r}.workload.bias", ds.sum(axis=0))
        n, s = node_input[:, :hidden], workload_input[:, :hidden]
        dn, ds = round_backward(q, w, encoder, r, hidden, n, s, a["on"], a["calls"], attended,
                                dn @ w[f"round{r}.node.weight"].T, ds @ w[f"round{r}.workload.weight"].T, gradient)
        dn, ds = dn * (n > 0), ds * (s > 0)
    add("node.weight", q["n"].T @ dn)
    add("node.bias", dn.sum(axis=0))
    add("workload.weight", q["s"].T @ ds)
    add("workload.bias", ds.sum(axis=0))
    return dbefore


def forward_all(questions, weights, hidden, rounds, encoder):
    """Of each question, in order, outputs and what is saved. Lanes of questions remember."""
    memory, results = {}, []
    lanes = sum("before" in q for q in questions)
    for i, q in enumerate(questions):
        if lanes:
            before = q["before"] if i < lanes else memory[i % lanes]
            before = np.zeros_like(before) if q["fresh"] else before
        results.append(forward(q, weights, hidden, rounds, encoder, before if lanes else None))
        if lanes:
            memory[i % lanes] = results[-1][1]["after"]
    return results


def backward_all(questions, weights, hidden, rounds, encoder, results, gradient):
    lanes = sum("before" in q for q in questions)
    if not lanes:
        for q, (_, saved) in zip(questions, results):
            backward(q, weights, hidden, rounds, encoder, saved, gradient)
        return
    dmemory = [0] * lanes
    for i in reversed(range(len(questions))):
        d = backward(questions[i], weights, hidden, rounds, encoder, results[i][1], gradient, dmemory[i % lanes])
        dmemory[i % lanes] = 0 if questions[i]["fresh"] else d


def loss(questions, weights, hidden, rounds, encoder):
    total = 0
    for q, ((logits, stop, value), _) in zip(questions, forward_all(questions, weights, hidden, rounds, encoder)):
        total += logits @ q["dlogits"] + stop * q["dstop"] + value * q["dvalue"]
    return total


def check_gradient(questions, weights, hidden, rounds, encoder, gradient):
    random = np.random.RandomState(0)
    for name, weight in weights.items():
        for _ in range(8):
            at = tuple(random.randint(0, size) for size in weight.shape)
            was, step = weight[at], 1e-6
            weight[at] = was + step
            above = loss(questions, weights, hidden, rounds, encoder)
            weight[at] = was - step
            below = loss(questions, weights, hidden, rounds, encoder)
            weight[at] = was
            expected = (above - below) / (2 * step)
            if abs(gradient[name][at] - expected) > 1e-6 * (1 + abs(expected)):
                sys.exit(f"{name}{list(at)}: gradient {gradient[name][at]}, central difference {expected}")


def case_tensors(prefix, case):
    hidden, rounds, encoder = case["hidden"], case["rounds"], encoder_of(case)
    questions, weights = make_inputs(case)
    gradient = {name: np.zeros_like(weight) for name, weight in weights.items()}
    results = forward_all(questions, weights, hidden, rounds, encoder)
    backward_all(questions, weights, hidden, rounds, encoder, results, gradient)
    outputs = [out for out, _ in results]
    check_gradient(questions, weights, hidden, rounds, encoder, gradient)

    joined = lambda key: np.concatenate([np.atleast_1d(q[key]) for q in questions])
    begin = np.concatenate([np.zeros((1, len(PARTS)), int), np.cumsum(case["sizes"], axis=0)])
    floats = {"candidates": joined("x"), "nodes": joined("n"), "workloads": joined("s"), "context": joined("g"),
              "placement_weights": joined("placement_weights"), "call_weights": joined("call_weights"),
              "dlogits": joined("dlogits"), "dstop": joined("dstop"), "dvalue": joined("dvalue"),
              "logits": np.concatenate([out[0] for out in outputs]), "stop": np.array([out[1] for out in outputs]),
              "value": np.array([out[2] for out in outputs])}
    floats |= {f"net.{name}": weight for name, weight in weights.items()}
    floats |= {f"gradient.{name}": value for name, value in gradient.items()}
    if "lanes" in case:
        floats["before"] = np.stack([q["before"] for q in questions[:case["lanes"]]])
    integers = {"ends": joined("ends"), "placements": joined("placements"), "calls": joined("calls")}
    integers |= {f"{part}_begin": begin[:, i] for i, part in enumerate(PARTS)}
    tensors = {f"{prefix}.{name}": np.ascontiguousarray(value, np.float32) for name, value in floats.items()}
    return tensors | {f"{prefix}.{name}": np.ascontiguousarray(value, np.int32) for name, value in integers.items()}


def shape_json(case):
    candidate, node, workload, context = case["widths"]
    return json.dumps(dict(candidate=candidate, node=node, workload=workload, context=context, hidden=case["hidden"],
                           rounds=case["rounds"], encoder=encoder_of(case),
                           memory="gru" if "lanes" in case else "none"))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    tensors = {}
    for prefix, case in CASES.items():
        tensors |= case_tensors(prefix, case)
    if sys.argv[1] != "--check":
        save_file(tensors, sys.argv[1], {f"{prefix}.net.shape": shape_json(case) for prefix, case in CASES.items()})
        return
    with safe_open(sys.argv[2], "np") as golden:
        if set(golden.keys()) != set(tensors):
            sys.exit(f"{sys.argv[2]}: other tensors than expected: {sorted(set(golden.keys()) ^ set(tensors))}")
        for name, value in tensors.items():
            if not np.allclose(golden.get_tensor(name), value, rtol=1e-5, atol=1e-6):
                sys.exit(f"{sys.argv[2]}: {name} differs")
    print(f"{sys.argv[2]}: {len(tensors)} tensors as computed again")


if __name__ == "__main__":
    main()
