// SPDX-License-Identifier: Apache-2.0
#include "kube/opt_outs.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string_view>

#include "base/one_line.h"

namespace rudderfish::kube {
namespace {

constexpr double kMostSeconds = 1e10;
constexpr size_t kValueTold = 40;

struct OptOutKey {
  std::string_view key, consent;  // No consent: the annotation itself says no.
  bool takes_duration = false;
};
constexpr OptOutKey kKeys[] = {
    {"rudderfish.io/do-not-move", "false"},
    {"karpenter.sh/do-not-disrupt", "false", true},
    {"cluster-autoscaler.kubernetes.io/safe-to-evict", "true"},
    {"descheduler.alpha.kubernetes.io/request-evict-only", ""},
    {"kubernetes.io/config.mirror", ""},
};

// As Go writes durations: "30m", "1h30m", "1.5h"; nothing if it is none.
std::optional<int64_t> SecondsOf(std::string_view text) {
  struct Unit {
    std::string_view name;
    double seconds;
  };
  // What begins with the name of another unit comes first.
  constexpr Unit kUnits[] = {{"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9},
                             {"h", 3600},  {"m", 60},    {"s", 1}};
  double sum = 0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    double number = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (error != std::errc() || !(number >= 0)) return std::nullopt;
    text.remove_prefix(end - text.data());
    const Unit* unit = nullptr;
    for (const Unit& one : kUnits) {
      if (unit == nullptr && text.starts_with(one.name)) unit = &one;
    }
    if (unit == nullptr) return std::nullopt;
    text.remove_prefix(unit->name.size());
    sum += number * unit->seconds;
  }
  if (!(sum <= kMostSeconds)) return std::nullopt;
  return static_cast<int64_t>(std::ceil(sum));
}

}  // namespace

Result<std::vector<OptOut>> ReadOptOuts(const Fields& object) {
  TRY_ASSIGN(const Labels annotations, object.TextMap("metadata.annotations"));
  std::vector<OptOut> found;
  for (const OptOutKey& key : kKeys) {
    const std::string* value = FindLabel(annotations, key.key);
    if (value == nullptr || (!key.consent.empty() && *value == key.consent)) continue;
    OptOut made{fmt::format("is annotated {}{}{}", key.key, value->empty() ? "" : "=",
                            OneLine(*value, kValueTold)),
                {}};
    if (key.takes_duration) made.for_s = SecondsOf(*value);
    found.push_back(std::move(made));
  }
  return found;
}

}  // namespace rudderfish::kube
