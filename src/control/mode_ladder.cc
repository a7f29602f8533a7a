// SPDX-License-Identifier: Apache-2.0
#include "control/mode_ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "base/log.h"

namespace rudderfish {
namespace {

constexpr Duration kBetweenLooksAtCanary = std::chrono::seconds(2);
constexpr Duration kBetweenLooksAtEnforcing = std::chrono::minutes(1);  // Of many more records.

std::string LineOf(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string RefusedJson(const std::string& error, const std::vector<std::string>& missing = {}) {
  return LineOf({{"error", error}, {"missing", missing}});
}

Mode StepFrom(Mode mode, int steps) { return static_cast<Mode>(static_cast<int>(mode) + steps); }

}  // namespace

Result<std::unique_ptr<ModeLadder>> ModeLadder::Open(const Kind& kind, Settings settings,
                                                     ModeEvidence* evidence, SqliteModes* modes) {
  std::unique_ptr<ModeLadder> ladder(new ModeLadder(kind, evidence, modes));
  TRY_ASSIGN(const std::optional<KeptMode> kept, modes->ModeOf(kind.name));
  const Result<void> begun = ladder->Begin(std::move(settings), kept);
  // Decisions go on without a journal that cannot be written yet; the mode is kept once it can be.
  if (!begun && begun.error().code != ErrorCode::kUnavailable) return tl::unexpected(begun.error());
  return ladder;
}

Result<void> ModeLadder::Configure(Settings settings) {
  const KeptMode before = kept_;
  return Begin(std::move(settings), before);
}

Result<void> ModeLadder::Begin(Settings settings, const std::optional<KeptMode>& before) {
  settings_ = std::move(settings);
  kept_ = {
      .configured = settings_.mode, .policy = settings_.policy, .objective = settings_.objective};
  if (before && before->configured == settings_.mode) return Take(*before);
  kept_ = Next(settings_.mode, "as configured");
  return Keep();
}

Result<void> ModeLadder::Take(const KeptMode& kept) {
  if (kept == kept_ || kept.configured != settings_.mode) return {};
  const bool is_same = kept.policy == settings_.policy && kept.objective == settings_.objective;
  if (is_same) {
    kept_ = kept;
    return Keep();
  }
  // The evidence was another's. What is served stays served.
  kept_.serves = kept.serves;
  kept_ = Next(std::min(kept.mode, settings_.mode),
               fmt::format("policy {} for {} had reached {}", kept.policy, kept.objective,
                           ModeName(kept.mode)));
  LogWarning("{} begins in {}: {}", kind_.name, ModeName(mode()), kept_.why);
  return Keep();
}

KeptMode ModeLadder::Next(Mode mode, std::string why) const {
  KeptMode next = kept_;
  next.mode = mode;
  next.since = UnixNow();
  next.serves = mode != Mode::kOff && (kept_.serves || mode >= Mode::kCanary);
  next.why = std::move(why);
  return next;
}

Result<void> ModeLadder::Keep() {
  Result<void> written = modes_->KeepMode(kind_.name, kept_);
  unkept_ = written ? "" : written.error().message;
  return written;
}

// Down goes also where the journal cannot be written: the mode is kept once it can be.
Result<void> ModeLadder::Set(Mode mode, std::string why) {
  KeptMode next = Next(mode, std::move(why));
  KeptMode before = std::exchange(kept_, std::move(next));
  Result<void> kept = Keep();
  if (kept || kept_.mode < before.mode) {
    if (!kept) LogWarning("{}: {}", kind_.name, unkept_);
    return {};
  }
  kept_ = std::move(before);
  unkept_.clear();
  return kept;
}

Result<std::vector<std::string>> ModeLadder::Missing(Mode to, int64_t from) const {
  if (to <= Mode::kShadow) return std::vector<std::string>();  // Nothing is touched there.
  return evidence_->Missing(kept_, to, from);
}

Result<ModeLadder::Request> ModeLadder::Understand(std::string_view text) const {
  std::istringstream words{std::string(text)};
  std::string word, name;
  words >> word;
  Request request{.is_up = word == "promote"};
  while (words >> word) {
    if (word == "force") {
      request.is_forced = true;
    } else if (word == "from" && request.is_up) {
      if (!(words >> request.from) || request.from < 1) {
        return Invalid("from: expected the number of a {}, as `decisions` shows them",
                       kind_.record);
      }
    } else {
      name = word;
    }
  }
  const bool is_up = request.is_up;
  const Mode now = kept_.mode;
  if (is_up ? now == Mode::kEnforce : now == Mode::kOff) {
    return Invalid("{} is in {}: there is nothing {}", kind_.name, ModeName(now),
                   is_up ? "above it" : "below it");
  }
  request.to = StepFrom(now, is_up ? 1 : -1);
  if (!name.empty()) {
    TRY_ASSIGN(request.to, ModeNamed(name));
  }
  if (is_up ? request.to <= now : request.to >= now) {
    return Invalid("{} is in {}, and {} is not {} it", kind_.name, ModeName(now),
                   ModeName(request.to), is_up ? "above" : "below");
  }
  return request;
}

std::string ModeLadder::Answer(std::string_view text, const MissingRights& missing_rights) {
  const Result<Request> request = Understand(text);
  if (!request) return RefusedJson(request.error().message);
  const Mode now = kept_.mode, to = request->to;
  std::vector<std::string> missing;
  if (request->is_up) {
    Result<std::vector<std::string>> lacks = Missing(to, request->from);
    if (!lacks) return RefusedJson(lacks.error().message);
    missing = *std::move(lacks);
    if (missing_rights) {
      for (std::string& right : missing_rights(to)) missing.push_back(std::move(right));
    }
  }
  const std::string counted =
      request->from == 0 ? "" : fmt::format(", by {}s from {} on", kind_.record, request->from);
  if (!missing.empty() && !request->is_forced) {
    return RefusedJson(
        fmt::format("{} stays in {}; missing for {}{}: {}. Use --force to promote "
                    "without this",
                    kind_.name, ModeName(now), ModeName(to), counted, fmt::join(missing, "; ")),
        missing);
  }
  const std::string why =
      fmt::format("{} from {} by the command line{}", request->is_up ? "promoted" : "demoted",
                  ModeName(now), missing.empty() ? counted : ", without evidence");
  if (const Result<void> set = Set(to, why); !set) return RefusedJson(set.error().message);
  LogInfo("{}: {}, {}", kind_.name, ModeName(to), why);
  return LineOf({{"ok", true},
                 {"kind", kind_.name},
                 {"from", ModeName(now)},
                 {"mode", ModeName(to)},
                 {"why", why},
                 {"missing", missing}});
}

Result<std::optional<std::string>> ModeLadder::LookAtActing(Instant now) {
  const Duration between =
      kept_.mode == Mode::kCanary ? kBetweenLooksAtCanary : kBetweenLooksAtEnforcing;
  if (kept_.mode < Mode::kCanary || now - looked_at_ < between) return std::optional<std::string>();
  looked_at_ = now;
  constexpr UnixMillis kWindow = std::chrono::milliseconds(kTrialWindow).count();
  TRY_ASSIGN(std::optional<std::string> worse,
             evidence_->WhyWorse(std::max(kept_.since, UnixNow() - kWindow)));
  if (!worse) return worse;
  TRY(Set(Mode::kShadow, *worse));
  LogWarning("{}: back to shadow, {}", kind_.name, *worse);
  return worse;
}

OrderedJson ModeLadder::Describe() const {
  OrderedJson json{
      {"mode", ModeName(kept_.mode)},    {"since_ms", kept_.since}, {"why", kept_.why},
      {"serves", kept_.serves},          {"policy", kept_.policy},  {"objective", kept_.objective},
      {"evidence", OrderedJson(nullptr)}};
  Result<OrderedJson> evidence = evidence_->Describe(kept_);
  if (!evidence) {
    json["problem"] = evidence.error().message;
    return json;
  }
  json["evidence"] = *std::move(evidence);
  if (kept_.mode == Mode::kEnforce) return json;
  const Mode next = StepFrom(kept_.mode, 1);
  const Result<std::vector<std::string>> missing = Missing(next, 0);
  json["next"] = {
      {"mode", ModeName(next)},
      {"missing", missing ? OrderedJson(*missing) : OrderedJson::array({missing.error().message})}};
  return json;
}

}  // namespace rudderfish
