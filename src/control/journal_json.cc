// SPDX-License-Identifier: Apache-2.0
#include "control/journal_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"

namespace rudderfish {
namespace {

OrderedJson JsonOf(const Terms& terms) {
  OrderedJson json;
  for (int i = 0; i < Terms::kCount; ++i) json[TermNames()[i]] = TermValue(terms, i);
  return json;
}

OrderedJson JsonOf(const std::optional<double>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson JsonOf(const JournalMove& move) {
  return {{"pod", move.pod}, {"from", move.from}, {"to", move.to}};
}

OrderedJson JsonOf(const std::vector<JournalMove>& moves) {
  OrderedJson json = OrderedJson::array();
  for (const JournalMove& move : moves) json.push_back(JsonOf(move));
  return json;
}

OrderedJson JsonOf(const Alternative& alternative) {
  OrderedJson json;
  json["move"] = alternative.move ? JsonOf(*alternative.move) : OrderedJson(nullptr);
  json["workload"] = alternative.workload;
  json["predicted"] = JsonOf(alternative.predicted);
  json["score"] = alternative.score ? OrderedJson(*alternative.score) : OrderedJson(nullptr);
  return json;
}

// Names come from a cluster: bytes that are no UTF-8 are replaced instead of thrown at us.
std::string Dump(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

Result<double> NumberAt(const JsonReader& reader, std::string_view key) {
  TRY_ASSIGN(const std::optional<JsonReader> value, reader.Find(key));
  if (!value) return 0.0;
  return value->AsDouble();
}

Result<void> ReadNumber(const JsonReader& reader, std::string_view key,
                        std::optional<double>* number) {
  TRY_ASSIGN(const std::optional<JsonReader> value, reader.Find(key));
  if (!value) return {};
  TRY_ASSIGN(*number, value->AsDouble());
  return {};
}

Result<Terms> TermsOf(const JsonReader& reader) {
  Terms terms;
  TRY_ASSIGN(terms.latency_ms, NumberAt(reader, "latency_ms"));
  TRY_ASSIGN(terms.execution_ms, NumberAt(reader, "execution_ms"));
  TRY_ASSIGN(terms.network_ms, NumberAt(reader, "network_ms"));
  TRY_ASSIGN(terms.transfer_ms, NumberAt(reader, "transfer_ms"));
  TRY_ASSIGN(terms.queueing_ms, NumberAt(reader, "queueing_ms"));
  return terms;
}

Result<void> ReadText(const JsonReader& reader, std::string_view key, std::string* text) {
  TRY_ASSIGN(const JsonReader value, reader.At(key));
  TRY_ASSIGN(*text, value.AsString());
  return {};
}

Result<JournalMove> MoveFrom(const JsonReader& reader) {
  JournalMove move;
  TRY(ReadText(reader, "pod", &move.pod));
  TRY(ReadText(reader, "from", &move.from));
  TRY(ReadText(reader, "to", &move.to));
  return move;
}

Result<Alternative> AlternativeFrom(const JsonReader& reader) {
  Alternative alternative;
  TRY_ASSIGN(const std::optional<JsonReader> move, reader.Find("move"));
  if (move) {
    TRY_ASSIGN(alternative.move, MoveFrom(*move));
  }
  TRY(ReadText(reader, "workload", &alternative.workload));
  TRY_ASSIGN(const JsonReader predicted, reader.At("predicted"));
  TRY_ASSIGN(alternative.predicted, TermsOf(predicted));
  TRY(ReadNumber(reader, "score", &alternative.score));
  return alternative;
}

Result<Refusal> RefusalFrom(const JsonReader& reader) {
  Refusal refusal;
  TRY(ReadText(reader, "workload", &refusal.workload));
  TRY(ReadText(reader, "node", &refusal.node));
  TRY(ReadText(reader, "reason", &refusal.reason));
  TRY_ASSIGN(const std::optional<JsonReader> pod, reader.Find("pod"));
  if (pod) {
    TRY_ASSIGN(refusal.pod, pod->AsString());
  }
  return refusal;
}

template <class Item>
Result<void> ReadList(const JsonReader& reader, std::string_view key,
                      Result<Item> (*read)(const JsonReader&), std::vector<Item>* items) {
  TRY_ASSIGN(const JsonReader list, reader.At(key));
  TRY_ASSIGN(const std::vector<JsonReader> elements, list.Elements());
  for (const JsonReader& element : elements) {
    TRY_ASSIGN(Item item, read(element));
    items->push_back(std::move(item));
  }
  return {};
}

template <class Integer>
Result<void> ReadInteger(const JsonReader& reader, std::string_view key, Integer* number) {
  TRY_ASSIGN(const JsonReader value, reader.At(key));
  TRY_ASSIGN(const int64_t read, value.AsInt());
  *number = static_cast<Integer>(read);
  return {};
}

Result<void> ReadTerms(const JsonReader& reader, std::string_view key, Terms* terms) {
  TRY_ASSIGN(const JsonReader value, reader.At(key));
  TRY_ASSIGN(*terms, TermsOf(value));
  return {};
}

Result<void> ReadWhoAndWhen(const JsonReader& reader, JournalRow* row) {
  int64_t at_ns = 0;
  TRY(ReadInteger(reader, "at_ns", &at_ns));
  row->at = std::chrono::nanoseconds(at_ns);
  TRY(ReadText(reader, "application", &row->application));
  TRY(ReadText(reader, "kind", &row->kind));
  TRY(ReadText(reader, "mode", &row->mode));
  TRY(ReadText(reader, "policy", &row->policy));
  TRY(ReadText(reader, "baseline", &row->baseline));
  TRY(ReadText(reader, "objective", &row->objective));
  TRY(ReadInteger(reader, "plan", &row->plan));
  TRY(ReadInteger(reader, "step", &row->step));
  TRY(ReadInteger(reader, "state_version", &row->state_version));
  return ReadInteger(reader, "allowed_cells", &row->allowed_cells);
}

Result<void> ReadOutcome(const JsonReader& reader, JournalRow* row) {
  std::string fate;
  TRY(ReadText(reader, "fate", &fate));
  const std::optional<Fate> named = FateNamed(fate);
  if (!named) return reader.Refuse("holds an unknown fate");
  row->fate = *named;
  TRY(ReadText(reader, "failure", &row->failure));
  TRY_ASSIGN(const std::optional<JsonReader> move, reader.Find("move"));  // Earlier rows lack it.
  if (move) TRY(ReadText(reader, "move", &row->move));
  TRY_ASSIGN(const std::optional<JsonReader> measured, reader.Find("measured"));
  if (measured) {
    TRY_ASSIGN(row->measured, TermsOf(*measured));
  }
  return {};
}

}  // namespace

std::string ToJson(const std::vector<std::pair<std::string, double>>& scores) {
  OrderedJson json = OrderedJson::array();
  for (const auto& [name, score] : scores) json.push_back(OrderedJson::array({name, score}));
  return Dump(json);
}

std::string ToJson(const Terms& terms) { return Dump(JsonOf(terms)); }

Result<Terms> TermsFrom(std::string_view text, std::string_view source_name) {
  TRY_ASSIGN(const Json json, ParseJson(text, source_name));
  return TermsOf(JsonReader(json, source_name));
}

std::string ToJson(const JournalRow& row) {
  OrderedJson json{{"at_ns", row.at.count()},
                   {"application", row.application},
                   {"kind", row.kind},
                   {"mode", row.mode},
                   {"policy", row.policy},
                   {"baseline", row.baseline},
                   {"objective", row.objective},
                   {"plan", row.plan},
                   {"step", row.step},
                   {"state_version", static_cast<int64_t>(row.state_version)},
                   {"allowed_cells", row.allowed_cells},
                   {"seen", JsonOf(row.seen)},
                   {"chosen", JsonOf(row.chosen)},
                   {"predicted", JsonOf(row.predicted)},
                   {"predicted_gain_ms", row.predicted_gain_ms},
                   {"step_cost_ms", row.step_cost_ms},
                   {"plan_gain_ms", JsonOf(row.plan_gain_ms)},
                   {"baseline_plan_gain_ms", JsonOf(row.baseline_plan_gain_ms)},
                   {"baseline_choice", JsonOf(row.baseline_choice)},
                   {"verdict", {{"allowed", row.verdict.allowed}, {"reason", row.verdict.reason}}}};
  json["considered"] = OrderedJson::array();
  for (const Alternative& one : row.considered) json["considered"].push_back(JsonOf(one));
  json["refused"] = OrderedJson::array();
  for (const Refusal& one : row.refused) {
    json["refused"].push_back(
        {{"workload", one.workload}, {"pod", one.pod}, {"node", one.node}, {"reason", one.reason}});
  }
  json["refused_count"] = row.refused_count;
  json["fate"] = FateName(row.fate);
  json["failure"] = row.failure;
  json["move"] = row.move;
  json["measured"] = row.measured ? JsonOf(*row.measured) : OrderedJson(nullptr);
  return Dump(json);
}

Result<JournalRow> JournalRowFrom(std::string_view text, std::string_view source_name) {
  TRY_ASSIGN(const Json json, ParseJson(text, source_name));
  const JsonReader reader(json, source_name);
  JournalRow row;
  TRY(ReadWhoAndWhen(reader, &row));
  TRY(ReadTerms(reader, "seen", &row.seen));
  TRY(ReadTerms(reader, "predicted", &row.predicted));
  TRY_ASSIGN(row.predicted_gain_ms, NumberAt(reader, "predicted_gain_ms"));
  TRY_ASSIGN(row.step_cost_ms, NumberAt(reader, "step_cost_ms"));
  TRY(ReadNumber(reader, "plan_gain_ms", &row.plan_gain_ms));
  TRY(ReadNumber(reader, "baseline_plan_gain_ms", &row.baseline_plan_gain_ms));
  TRY(ReadList(reader, "chosen", MoveFrom, &row.chosen));
  TRY(ReadList(reader, "baseline_choice", MoveFrom, &row.baseline_choice));
  TRY(ReadList(reader, "considered", AlternativeFrom, &row.considered));
  TRY(ReadList(reader, "refused", RefusalFrom, &row.refused));
  TRY(ReadInteger(reader, "refused_count", &row.refused_count));
  TRY_ASSIGN(const JsonReader verdict, reader.At("verdict"));
  TRY_ASSIGN(const JsonReader allowed, verdict.At("allowed"));
  TRY_ASSIGN(row.verdict.allowed, allowed.AsBool());
  TRY(ReadText(verdict, "reason", &row.verdict.reason));
  TRY(ReadOutcome(reader, &row));
  return row;
}

}  // namespace rudderfish
