// SPDX-License-Identifier: Apache-2.0
#include "cluster/pod_move.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace rudderfish {
namespace {

constexpr std::string_view kStepNames[] = {"intend", "detach", "place", "serve",
                                           "drain",  "evict",  "abort"};
constexpr std::string_view kSource = "rudderfish.io/move";

Result<MoveStep> StepNamed(const JsonReader& reader) {
  TRY_ASSIGN(const std::string name, reader.AsString());
  const auto* const found = std::find(std::begin(kStepNames), std::end(kStepNames), name);
  if (found == std::end(kStepNames)) return reader.Expected("a step of a move");
  return static_cast<MoveStep>(found - std::begin(kStepNames));
}

Result<std::string> TextAt(const JsonReader& reader, std::string_view key) {
  TRY_ASSIGN(const JsonReader member, reader.At(key));
  return member.AsString();
}

Result<UnixMillis> TimeAt(const JsonReader& reader, std::string_view key) {
  TRY_ASSIGN(const JsonReader member, reader.At(key));
  return member.AsInt(0, std::numeric_limits<int64_t>::max());
}

}  // namespace

std::string_view StepName(MoveStep step) { return kStepNames[static_cast<int>(step)]; }

std::string PodMoveText(const PodMove& move) {
  OrderedJson removed = OrderedJson::object();
  for (const auto& [key, value] : move.removed) removed[key] = value;
  OrderedJson json{{"id", move.id},
                   {"target", move.target},
                   {"hostname", move.target_hostname},
                   {"replicaSet", move.replica_set},
                   {"replicaSetUid", move.replica_set_uid},
                   {"workload", move.workload},
                   {"begunMs", move.begun},
                   {"deadlineMs", move.deadline},
                   {"step", StepName(move.step)},
                   {"removed", std::move(removed)}};
  if (!move.aborting.empty()) json["aborting"] = move.aborting;
  if (!move.by.empty()) json["by"] = move.by;
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

Result<PodMove> PodMoveOf(std::string_view text) {
  TRY_ASSIGN(const Json json, ParseJson(text, kSource));
  const JsonReader reader(json, kSource);
  PodMove move;
  TRY_ASSIGN(move.id, TextAt(reader, "id"));
  TRY_ASSIGN(move.target, TextAt(reader, "target"));
  TRY_ASSIGN(move.target_hostname, TextAt(reader, "hostname"));
  TRY_ASSIGN(move.replica_set, TextAt(reader, "replicaSet"));
  TRY_ASSIGN(move.replica_set_uid, TextAt(reader, "replicaSetUid"));
  TRY_ASSIGN(move.workload, TextAt(reader, "workload"));
  TRY_ASSIGN(move.begun, TimeAt(reader, "begunMs"));
  TRY_ASSIGN(move.deadline, TimeAt(reader, "deadlineMs"));
  TRY_ASSIGN(const JsonReader step, reader.At("step"));
  TRY_ASSIGN(move.step, StepNamed(step));
  TRY_ASSIGN(const JsonReader removed, reader.At("removed"));
  TRY_ASSIGN(const auto members, removed.Members());
  for (const auto& [key, value] : members) {
    TRY_ASSIGN(std::string label, value.AsString());
    move.removed.emplace_back(key, std::move(label));
  }
  TRY_ASSIGN(const auto aborting, reader.Find("aborting"));
  if (aborting) {
    TRY_ASSIGN(move.aborting, aborting->AsString());
  }
  TRY_ASSIGN(const auto by, reader.Find("by"));
  if (by) {
    TRY_ASSIGN(move.by, by->AsString());
  }
  return move;
}

}  // namespace rudderfish
