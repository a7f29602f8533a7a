// SPDX-License-Identifier: Apache-2.0
#include "report/report_routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "evaluation/judge.h"
#include "evaluation/outcome_text.h"
#include "evaluation/routing_comparison.h"
#include "report/report_figures.h"
#include "report/report_page.h"
#include "report/routing_figures.h"
#include "report/svg.h"

namespace rudderfish {
namespace {

class RoutingPage {
 public:
  RoutingPage(const RoutingEvaluation& evaluation, const RoutingRecord& record,
              const ReportOptions& options)
      : evaluation_(evaluation), record_(record), options_(options) {
    for (int v = 0; v < static_cast<int>(evaluation.variants.size()); ++v) {
      outcomes_.push_back(OutcomesOf(evaluation, v));
      baselines_.push_back(BaselineOf(evaluation, v));
      if (baselines_.back() >= 0)
        findings_.push_back(
            Judge(outcomes_.back(), RoutingRule(evaluation_.limits), baselines_.back()));
    }
  }

  std::string Html() const {
    std::string html = Header() + Verdicts();
    for (int v = 0; v < static_cast<int>(outcomes_.size()); ++v) html += Variant(v);
    return ReportPage(Headline("", "", ""), html + Table() + Making());
  }

 private:
  bool compares() const { return !findings_.empty(); }
  const std::string& Candidate() const { return evaluation_.policies.back(); }

  // What is won or lost stands between the first or the second, and the last.
  std::string Headline(std::string_view good, std::string_view bad, std::string_view close) const {
    const auto safe = [&](const std::string& name) {
      return close.empty() ? name : EscapeXml(name);
    };
    const std::string name = safe(Candidate());
    if (!compares()) return fmt::format("{} in {}", name, safe(evaluation_.scenario));
    if (findings_.size() > 1) {
      const auto better = std::count(findings_.begin(), findings_.end(), Finding::kBetter);
      return fmt::format("{} beats the best of the others in {}{} of {} variants{}", name,
                         better > 0 ? good : bad, better, findings_.size(), close);
    }
    const std::string baseline = safe(evaluation_.policies[baselines_[0]]);
    const double base = Mean(outcomes_[0].of(baselines_[0], 0).values);
    const double percent = 100 * DifferenceIn(outcomes_[0], 0, baselines_[0]).mean / base;
    switch (findings_[0]) {
      case Finding::kBetter:
        return fmt::format("{} serves {} at {}{:.1f} % less{} than {}", name,
                           safe(evaluation_.variants[0]), good, -percent, close, baseline);
      case Finding::kWorse:
        return fmt::format("{} costs {}{:.1f} % more{} than {}: not better", name, bad, percent,
                           close, baseline);
      case Finding::kBreaksLimit:
        return fmt::format("{} has {}more late requests{} than {}: not better", name, bad, close,
                           baseline);
      case Finding::kUndecided:
        break;
    }
    return fmt::format("{} is not shown to be better than {}", name, baseline);
  }

  std::string Header() const {
    return fmt::format(
        "<header>\n<p class=\"eyebrow\">Routing \u00b7 {} \u00b7 {}</p>\n<h1>{}</h1>\n"
        "<p class=\"lede\">{}</p>\n</header>\n",
        EscapeXml(evaluation_.scenario), CountText(evaluation_.regions, "region"),
        Headline("<span class=\"good\">", "<span class=\"bad\">", "</span>"),
        compares()
            ? "Better is a smaller objective, with 95 % confidence, at late requests at most 0.1 "
              "points above the baseline\u2019s. The baseline is the best of the others on "
              "episodes of its own. The objective is what a request costs in the mean, in units "
              "of what it costs in an ideal region."
            : "One policy; with a second one there would be a verdict.");
  }

  std::string Verdicts() const {
    if (!compares()) return {};
    std::string rows;
    for (size_t v = 0; v < outcomes_.size(); ++v) {
      const bool better = findings_[v] == Finding::kBetter;
      rows += fmt::format(
          "<tr><th class=\"left\" scope=\"row\">{}</th><td class=\"left\"><b class=\"verdict "
          "{}\">{}</b></td><td class=\"left words\">{}</td></tr>\n",
          EscapeXml(evaluation_.variants[v]),
          better                                ? "good"
          : findings_[v] == Finding::kUndecided ? "open"
                                                : "bad",
          better ? "better" : "not better",
          EscapeXml(VerdictText(outcomes_[v], RoutingRule(evaluation_.limits), baselines_[v])));
    }
    return ReportSection("Variant by variant",
                         fmt::format("{} of each variant; every policy meets the same demand, "
                                     "prices and faults, so that differences are paired.",
                                     CountText(evaluation_.episodes, "episode"))) +
           "<figure><div class=\"scroll\"><table class=\"verdicts\"><tbody>\n" + rows +
           "</tbody></table></div></figure>\n";
  }

  std::string Objectives(int variant) const {
    const Outcomes& outcomes = outcomes_[variant];
    const std::vector<std::string> series = RoutingSeries(evaluation_, variant);
    IntervalAxis axis{.title = "Objective of every policy",
                      .description = "Mean objective with 95 % interval.",
                      .label = "objective",
                      .least_pad = 1e-4};
    std::vector<IntervalRow> rows;
    for (int p = 0; p < static_cast<int>(outcomes.policies.size()); ++p) {
      const RunMatrix& runs = outcomes.of(p, 0);
      IntervalRow row{.name = outcomes.policies[p].name,
                      .series = series[p],
                      .value = Mean(runs.values),
                      .interval = BootstrapMean(runs, outcomes.resampling)};
      row.text = fmt::format("{:.4f}", row.value);
      axis.description += fmt::format(" {}: {}.", row.name, row.text);
      rows.push_back(std::move(row));
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const IntervalRow& a, const IntervalRow& b) { return a.value < b.value; });
    return IntervalFigure(rows, axis);
  }

  std::string Variant(int v) const {
    const std::string costs =
        ReportFigure("Objective", "Means over episodes with their 95 % intervals. Less is better.",
                     Objectives(v)) +
        ReportFigure("What a request costs", "The parts of the mean objective.",
                     CostPartsFigure(evaluation_, v));
    const std::string late =
        ReportFigure("Cost against late requests",
                     "No policy lies below and left of the dashed front.",
                     RoutingParetoFigure(evaluation_, v)) +
        ReportFigure("How long answers take",
                     fmt::format("Share of all requests of {} answered within a time; each nine "
                                 "has the same room. Further left is better.",
                                 CountText(record_.episodes, "episode")),
                     RoutingLatencyFigure(evaluation_, record_, v));
    return ReportSection("Under " + evaluation_.variants[v], "") + "<div class=\"pair\">\n" +
           costs + "</div>\n<div class=\"pair\">\n" + late + "</div>\n" +
           ReportFigure(
               "One episode by region",
               fmt::format("Episode {}{}.", record_.variants[v].episode_shown,
                           compares() ? ": that with the median difference to the baseline" : ""),
               RegionsFigure(evaluation_, record_, v), "wide");
  }

  std::string Table() const {
    std::string head, rows;
    for (const Metric& metric : outcomes_[0].metrics)
      head += fmt::format("<th>{}</th>", EscapeXml(metric.title));
    for (size_t v = 0; v < outcomes_.size(); ++v) {
      const Outcomes& outcomes = outcomes_[v];
      rows += fmt::format("<tr class=\"whole\"><th class=\"left\" colspan=\"{}\">{}</th></tr>\n",
                          outcomes.metrics.size() + 1, EscapeXml(evaluation_.variants[v]));
      for (int p = 0; p <= outcomes.candidate(); ++p) {
        const bool last = p == outcomes.candidate();
        rows += fmt::format("<tr class=\"part{}\"><th class=\"left\" scope=\"row\">{}</th>",
                            last ? " candidate last" : "", EscapeXml(outcomes.policies[p].name));
        for (int m = 0; m < static_cast<int>(outcomes.metrics.size()); ++m) {
          rows += fmt::format("<td>{:.{}f}</td>", Mean(outcomes.of(p, m).values),
                              outcomes.metrics[m].decimals);
        }
        rows += "</tr>\n";
      }
    }
    return ReportSection("All figures",
                         "Means of an episode; costs are per request, in units of the objective.") +
           "<figure><div class=\"scroll\"><table><thead><tr><th></th>" + head +
           "</tr></thead><tbody>\n" + rows + "</tbody></table></div></figure>\n";
  }

  std::string Making() const {
    return "<h2>How this was made</h2>\n<dl>\n" +
           ReportFact("Scenario", EscapeXml(evaluation_.scenario)) +
           ReportFact("Regions", fmt::format("{}", evaluation_.regions)) +
           ReportFact("Episodes", fmt::format("{} of each variant", evaluation_.episodes)) +
           ReportFact("Seed", fmt::format("{}", evaluation_.seed)) +
           ReportFact("Training seeds", fmt::format("{}", outcomes_[0].policies.back().seeds)) +
           ReportFact("Intervals",
                      "95 %, percentile bootstrap over episodes and training seeds, paired") +
           ReportFact("Command", options_.command.empty()
                                     ? std::string()
                                     : "<code>" + EscapeXml(options_.command) + "</code>") +
           "</dl>\n" +
           fmt::format(
               "<footer>Made by rudderfish{}. Demand, queues, prices and faults are those "
               "of the simulator of regions.</footer>\n",
               options_.version.empty() ? "" : " " + EscapeXml(options_.version));
  }

  const RoutingEvaluation& evaluation_;
  const RoutingRecord& record_;
  const ReportOptions& options_;
  std::vector<Outcomes> outcomes_;  // [variant]
  std::vector<int> baselines_;      // [variant]
  std::vector<Finding> findings_;   // [variant], if there is anything to compare with.
};

}  // namespace

std::string RoutingReportHtml(const RoutingEvaluation& evaluation, const RoutingRecord& record,
                              const ReportOptions& options) {
  return RoutingPage(evaluation, record, options).Html();
}

Result<void> WriteRoutingReport(const RoutingEvaluation& evaluation, const RoutingRecord& record,
                                const ReportOptions& options, const std::filesystem::path& path) {
  return WriteFileAtomically(path, RoutingReportHtml(evaluation, record, options));
}

}  // namespace rudderfish
