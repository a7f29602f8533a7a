// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cluster/ids.h"
#include "cluster/resources.h"
#include "task/needs.h"

// What QuestionSummary (question_summary.h) says of each workload, kind of node and node. "Of the
// world" stays the same until the evaluator is reset, "of the question" changes with every move.

namespace rudderfish {

// What the next moves of a plan cost: the first `next_ms`, each later one `growth_ms` more.
struct StepCosts {
  float next_ms = 0;
  float growth_ms = 0;
  float last_ms = 0;  // What taking the last one back saves.
};

struct WorkloadSummary {
  // Of the world.
  Resources requests;
  Room need;                  // The same to be compared,
  float requests_millis = 0;  // and for features.
  float requests_bytes = 0;
  int replicas = 0;
  int mover = kNone;  // Its place among the workloads that have pods and may move.
  bool movable = false;
  float share = 0;    // 1 / replicas
  float per_cpu = 0;  // Pods for which a milli-core, or a byte, is enough.
  float per_byte = 0;
  float execution_best = 0;
  float calls = 0;
  int callers = 0;  // Calls it takes from workloads that have pods,
  int callees = 0;  // and makes to such.
  // Of the question.
  float best_gain = 0;       // Of its candidates.
  float best_blocked = 0;    // Of its moves, whether there is room or not.
  float best_all = 0;        // Largest GainOfAll,
  KindId best_kind = kNone;  // and where.
  float execution_now = 0;
  float hop_in = 0;
  float hop_out = 0;
  float spread = 0;
  float share_on_best = 0;
  float room_on_best = 0;
  float displaced = 0;  // Pods that the walk has moved.
};

// Nodes of one kind.
struct KindSummary {
  // Of the world.
  LayerId layer = 0;
  float accepts_moves = 0;
  float nodes = 0;
  float slowness = 0;
  float hop_in = 0;
  float hop_out = 0;
  // Of the question.
  float everything = 0;
  float everything_each = 0;  // Fall per move if every movable pod went to the kind.
};

struct NodeSummary {
  KindId kind = 0;
  float free_millis = 0;
  float free_bytes = 0;
  float used_cpu = 0;
  float pods = 0;
  float best_in = 0;
  float best_blocked = 0;
  float best_out = 0;
  float fits = 0;
  float room_largest = 0;
  float more_pods = 0;  // Than when the walk began.
};

// What a move does to the room of others on one of its nodes, at today's gains.
struct Sequel {
  float gain = 0;       // The best of theirs.
  float workloads = 0;  // How many.
};

}  // namespace rudderfish
