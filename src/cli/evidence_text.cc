// SPDX-License-Identifier: Apache-2.0
#include "cli/evidence_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/text_table.h"

namespace rudderfish {
namespace {

constexpr std::string_view kNeverMeasured =
    "evidence: none yet: no change of the cluster has been measured before and after";

// Of ModelCorrection::factors.
std::string PartName(int part) {
  const std::string& term = TermNames()[part + 1];
  return term.substr(0, term.find("_ms"));
}

}  // namespace

OrderedJson EvidenceJson(const std::vector<EvidenceSum>& sums) {
  OrderedJson list = OrderedJson::array();
  for (const EvidenceSum& sum : sums) {
    OrderedJson one{{"application", sum.application},
                    {"term", sum.term},
                    {"changes_measured", sum.count},
                    {"mean_error_ms", sum.mean_ms()},
                    {"mean_absolute_error_ms", sum.mean_absolute_ms()}};
    one["mean_error_interval95_ms"] =
        sum.interval_ms()
            ? OrderedJson{sum.mean_ms() - *sum.interval_ms(), sum.mean_ms() + *sum.interval_ms()}
            : OrderedJson(nullptr);
    list.push_back(std::move(one));
  }
  return list;
}

OrderedJson CorrectionsJson(const std::vector<ModelCorrection>& corrections) {
  OrderedJson list = OrderedJson::array();
  for (const ModelCorrection& one : corrections) {
    OrderedJson factors = OrderedJson::object();
    for (int i = 0; i < ModelCorrection::kParts; ++i) {
      const ModelCorrection::Factor& factor = one.factors[i];
      factors[PartName(i)] = {{"factor", factor.value},
                              {"interval95", {factor.low, factor.high}},
                              {"at_bound", factor.is_at_bound},
                              {"was_predicted", factor.was_predicted}};
    }
    list.push_back({{"application", one.application},
                    {"changes", one.changes},
                    {"factors", factors},
                    {"mean_absolute_error_ms", one.error_ms},
                    {"corrected_mean_absolute_error_ms", one.corrected_error_ms},
                    {"helps", one.Helps()}});
  }
  return list;
}

// What would be right, as far as it is known.
std::string CorrectionsText(const std::vector<ModelCorrection>& corrections) {
  std::string text;
  for (const ModelCorrection& one : corrections) {
    std::string sum;
    for (int i = 0; i < ModelCorrection::kParts; ++i) {
      const ModelCorrection::Factor& factor = one.factors[i];
      if (!factor.was_predicted) continue;
      sum += fmt::format("{}{:.2f} [{:.2f}, {:.2f}]{} x {}", sum.empty() ? "" : " + ", factor.value,
                         factor.low, factor.high, factor.is_at_bound ? " (or further from 1)" : "",
                         PartName(i));
    }
    if (sum.empty()) continue;
    text += fmt::format(
        "corrected: {}: measured changes are {} of the predicted ones; mean size of the error "
        "{:.2f} ms, {:.2f} ms with these factors, from {}{}\n",
        one.application, sum, one.error_ms, one.corrected_error_ms, Counted(one.changes, "change"),
        one.Helps() ? "" : ": too few, or no better");
  }
  return text;
}

std::string EvidenceText(const std::vector<EvidenceSum>& sums) {
  if (sums.empty()) return fmt::format("{}\n", kNeverMeasured);
  using Align = TextTable::Align;
  TextTable table({{"APPLICATION"},
                   {"TERM"},
                   {"MEASURED", Align::kRight},
                   {"MEAN ERROR", Align::kRight},
                   {"95 % INTERVAL", Align::kRight},
                   {"MEAN SIZE", Align::kRight}},
                  2);
  for (const EvidenceSum& sum : sums) {
    const std::optional<double> half = sum.interval_ms();
    table.Row(
        {sum.application, sum.term.substr(0, sum.term.find("_ms")), std::to_string(sum.count),
         fmt::format("{:+.2f} ms", sum.mean_ms()),
         half ? fmt::format("{:+.2f} to {:+.2f} ms", sum.mean_ms() - *half, sum.mean_ms() + *half)
              : "-",
         fmt::format("{:.2f} ms", sum.mean_absolute_ms())});
  }
  return "evidence: predictions of the model against measured signals, for changes that the "
         "cluster made itself\n" +
         table.Text();
}

}  // namespace rudderfish
