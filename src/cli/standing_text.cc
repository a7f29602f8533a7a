// SPDX-License-Identifier: Apache-2.0
#include "cli/standing_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text_table.h"
#include "cli/decision_text.h"
#include "cli/terminal.h"
#include "control/journal_reader.h"

namespace rudderfish {

std::string StandingText(const OrderedJson& standing,
                         const std::function<std::string(const OrderedJson&)>& evidence_text) {
  std::string text = fmt::format("standing   {}, {} ago: {}\n", standing["mode"].get<std::string>(),
                                 Age(standing["since_ms"].get<int64_t>(), UnixNow()),
                                 standing["why"].get<std::string>());
  if (standing["evidence"].is_null()) return text;
  text += evidence_text(standing["evidence"]);
  if (!standing.contains("next")) return text;
  const OrderedJson& next = standing["next"];
  const std::string heading = fmt::format("for {}", next["mode"].get<std::string>());
  if (next["missing"].empty()) return text + fmt::format("{:<10} nothing is missing\n", heading);
  for (const OrderedJson& missing : next["missing"])
    text += fmt::format("{:<10} missing: {}\n", heading, missing.get<std::string>());
  return text;
}

std::string SignalsText(const OrderedJson& signals) {
  if (signals.empty()) return "";
  using Align = TextTable::Align;
  TextTable table({{"SIGNAL"}, {"VALUES", Align::kRight}, {"AGE", Align::kRight}});
  for (const OrderedJson& one : signals) {
    const OrderedJson& age = one["age_s"];
    table.Row({one["name"].get<std::string>(), one["values"].dump(),
               age.is_null() ? "never" : fmt::format("{:.1f} s", age.get<double>())});
  }
  return "\n" + table.Text();
}

}  // namespace rudderfish
