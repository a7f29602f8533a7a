// SPDX-License-Identifier: Apache-2.0
#include "run/placement_modes.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "base/log.h"

namespace rudderfish {
namespace {

constexpr std::string_view kPlacementKind = "placement";
constexpr Duration kBetweenCanaryLooks = std::chrono::seconds(2);

std::string RefusedJson(const std::string& error, const std::vector<std::string>& missing = {}) {
  const OrderedJson json{{"error", error}, {"missing", missing}};
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

OrderedJson JsonOf(const MeanSum& sum) {
  const std::optional<double> half = sum.half95();
  OrderedJson json{{"count", sum.count}, {"mean", sum.mean()}};
  json["interval95"] =
      half ? OrderedJson{sum.mean() - *half, sum.mean() + *half} : OrderedJson(nullptr);
  json["text"] = InMillionths(sum);
  return json;
}

OrderedJson JsonOf(const GroupEvidence& group) {
  return {{"pods", group.pods},
          {"failed_or_evicted", group.bad},
          {"measured_change", JsonOf(group.change)}};
}

}  // namespace

Result<std::unique_ptr<PlacementModes>> PlacementModes::Open(const PlacementConfig& config,
                                                             std::string policy,
                                                             std::string objective,
                                                             SqliteJournal* journal) {
  TRY(journal->Evidence());  // To read all of it takes a while, and is better done now.
  std::unique_ptr<PlacementModes> modes(
      new PlacementModes(config, std::move(policy), std::move(objective), journal));
  TRY_ASSIGN(const std::optional<KeptMode> kept, journal->ModeOf(kPlacementKind));
  if (!kept || kept->configured != config.mode) {
    TRY(modes->Set(config.mode, "as configured"));
    return modes;
  }
  TRY(modes->Take(*kept));
  return modes;
}

Result<void> PlacementModes::Take(const KeptMode& kept) {
  if (kept == kept_ || kept.configured != config_.mode) return {};
  if (kept.policy == policy_ && kept.objective == objective_) {
    kept_ = kept;
  } else {
    // The evidence was another's. Pods that name us are placed as before.
    kept_.serves = kept.serves;
    kept_ = Next(std::min(kept.mode, config_.mode),
                 fmt::format("it was {} for {} that had come to {}", kept.policy, kept.objective,
                             ModeName(kept.mode)));
    LogWarning("placement begins in {}: {}", ModeName(mode()), kept_.why);
  }
  return journal_->KeepMode(kPlacementKind, kept_);
}

PlacementModes::PlacementModes(const PlacementConfig& config, std::string policy,
                               std::string objective, SqliteJournal* journal)
    : config_(config),
      policy_(std::move(policy)),
      objective_(std::move(objective)),
      journal_(journal) {
  kept_.configured = config.mode;
  kept_.policy = policy_;
  kept_.objective = objective_;
}

KeptMode PlacementModes::Next(Mode mode, std::string why) const {
  KeptMode next = kept_;
  next.mode = mode;
  next.since = UnixNow();
  next.serves = mode != Mode::kOff && (kept_.serves || mode >= Mode::kCanary);
  next.why = std::move(why);
  return next;
}

Result<void> PlacementModes::Set(Mode mode, std::string why) {
  KeptMode next = Next(mode, std::move(why));
  TRY(journal_->KeepMode(kPlacementKind, next));
  kept_ = std::move(next);
  return {};
}

EvidenceQuestion PlacementModes::QuestionFrom(int64_t number) const {
  return {
      .policy = policy_, .objective = objective_, .schedulers = config_.compare, .from = number};
}

Result<PlacementModes::Evidence> PlacementModes::Read(int64_t from) const {
  Evidence evidence;
  TRY_ASSIGN(const EvidenceTable* const table, journal_->Evidence());
  evidence.shadow = table->Shadowed(QuestionFrom(from));
  if (kept_.mode == Mode::kCanary) evidence.trial = table->Trial(kept_.since);
  if (!evidence.shadow.differences.empty()) {
    TRY_ASSIGN(evidence.shadow.difference,
               journal_->DifferenceInWords(evidence.shadow.differences.front()));
  }
  return evidence;
}

Result<PlacementModes::Request> PlacementModes::Understand(std::string_view text) const {
  std::istringstream words{std::string(text)};
  std::string word, name;
  words >> word;
  Request request{.is_up = word == "promote"};
  while (words >> word) {
    if (word == "force") {
      request.is_forced = true;
    } else if (word == "from" && request.is_up) {
      if (!(words >> request.from) || request.from < 1)
        return Invalid("from: expected the number of a comparison, as `decisions` shows them");
    } else {
      name = word;
    }
  }
  const bool is_up = request.is_up;
  const Mode now = kept_.mode;
  if (is_up ? now == Mode::kEnforce : now == Mode::kOff) {
    return Invalid("placement is in {}: there is nothing {}", ModeName(now),
                   is_up ? "above it" : "below it");
  }
  request.to = static_cast<Mode>(static_cast<int>(now) + (is_up ? 1 : -1));
  if (name.empty()) return request;
  TRY_ASSIGN(request.to, ModeNamed(name));
  if (is_up ? request.to <= now : request.to >= now) {
    return Invalid("placement is in {}, and {} is not {} it", ModeName(now), ModeName(request.to),
                   is_up ? "above" : "below");
  }
  return request;
}

std::string PlacementModes::Answer(std::string_view text) {
  const Result<Request> request = Understand(text);
  if (!request) return RefusedJson(request.error().message);
  const Mode now = kept_.mode, to = request->to;
  std::vector<std::string> missing;
  if (request->is_up) {
    const Result<Evidence> evidence = Read(request->from);
    if (!evidence) return RefusedJson(evidence.error().message);
    missing = WhatIsMissing(to, evidence->shadow, evidence->trial);
  }
  const std::string counted =
      request->from == 0 ? "" : fmt::format(", by comparisons from {} on", request->from);
  if (!missing.empty() && !request->is_forced) {
    return RefusedJson(
        fmt::format("placement stays in {}; for {}{} there is missing: {}. --force does without",
                    ModeName(now), ModeName(to), counted.empty() ? "" : counted + ",",
                    fmt::join(missing, "; ")),
        missing);
  }
  const std::string why =
      fmt::format("{} from {} by the command line{}", request->is_up ? "promoted" : "demoted",
                  ModeName(now), missing.empty() ? counted : ", without evidence");
  if (const Result<void> set = Set(to, why); !set) return RefusedJson(set.error().message);
  LogInfo("placement: {}, {}", ModeName(to), why);
  const OrderedJson json{
      {"ok", true}, {"kind", kPlacementKind}, {"from", ModeName(now)}, {"mode", ModeName(to)},
      {"why", why}, {"missing", missing}};
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

Result<std::optional<std::string>> PlacementModes::LookAtCanary(Instant now) {
  if (kept_.mode != Mode::kCanary || now - looked_at_ < kBetweenCanaryLooks)
    return std::optional<std::string>();
  looked_at_ = now;
  TRY_ASSIGN(const EvidenceTable* const table, journal_->Evidence());
  std::optional<std::string> worse = WhyWorse(table->Trial(kept_.since));
  if (!worse) return worse;
  *worse = fmt::format("the canary did worse than its control group: {}", *worse);
  TRY(Set(Mode::kShadow, *worse));
  LogWarning("placement: back to shadow, {}", *worse);
  return worse;
}

// Those that count, and those that placed pods beside them.
OrderedJson PlacementModes::SchedulersJson() const {
  OrderedJson json = OrderedJson::array();
  const Result<const EvidenceTable*> table = journal_->Evidence();
  if (!table) return json;
  EvidenceQuestion question = QuestionFrom(0);
  question.schedulers.clear();
  for (const SchedulerEvidence& one : (*table)->ByScheduler(question)) {
    const auto& named = config_.compare;
    json.push_back({{"scheduler", one.scheduler},
                    {"counts", std::find(named.begin(), named.end(), one.scheduler) != named.end()},
                    {"decisions", one.decisions()},
                    {"rules_equal", one.equal},
                    {"rules_different", one.different},
                    {"rules_unclear", one.unclear},
                    {"unmodelled", one.unmodelled}});
  }
  return json;
}

OrderedJson PlacementModes::Describe() const {
  OrderedJson json{{"mode", ModeName(kept_.mode)},
                   {"since_ms", kept_.since},
                   {"why", kept_.why},
                   {"serves", kept_.serves},
                   {"objective", objective_}};
  const Result<Evidence> read = Read(0);
  if (!read) {
    json["problem"] = read.error().message;
    return json;
  }
  const ShadowEvidence& shadow = read->shadow;
  json["shadowed"] = {{"decisions", shadow.decisions()},
                      {"rules_equal", shadow.equal},
                      {"rules_different", shadow.different},
                      {"rules_unclear", shadow.unclear},
                      {"unmodelled", shadow.unmodelled},
                      {"same_choice", shadow.same_choice},
                      {"differences", shadow.differences},
                      {"newest_difference", shadow.difference},
                      {"predicted_gain", JsonOf(shadow.gain)},
                      {"model_error", JsonOf(shadow.error)},
                      {"started", shadow.started},
                      {"failed", shadow.failed},
                      {"evicted", shadow.evicted}};
  json["schedulers"] = SchedulersJson();
  if (kept_.mode == Mode::kCanary) {
    json["canary"] = {{"share", config_.canary},
                      {"canary", JsonOf(read->trial.canary)},
                      {"control", JsonOf(read->trial.control)}};
  }
  if (kept_.mode == Mode::kEnforce) return json;
  const Mode next = static_cast<Mode>(static_cast<int>(kept_.mode) + 1);
  json["next"] = {{"mode", ModeName(next)}, {"missing", WhatIsMissing(next, shadow, read->trial)}};
  return json;
}

}  // namespace rudderfish
