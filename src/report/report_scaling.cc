// SPDX-License-Identifier: Apache-2.0
#include "report/report_scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "evaluation/scaling_difference.h"
#include "report/figure_parts.h"
#include "report/report_page.h"
#include "report/scaling_figures.h"

namespace rudderfish {
namespace {

std::string Violations(double share) {
  return fmt::format("{:.{}f} %", 100 * share, share < 0.0995 ? 2 : 1);
}

double CostPercent(const ScalingLoadSummary& load) {
  const double base = load.policies[load.baseline].core_hours;
  return base > 0 ? 100 * load.difference().core_hours / base : 0;
}

std::string CostWords(const ScalingLoadSummary& load) {
  const double percent = CostPercent(load);
  const std::string text = fmt::format("{:.1f}", std::abs(percent));
  if (text == "0.0") return "as many core-hours";
  return fmt::format("{} % {} core-hours", text, percent < 0 ? "fewer" : "more");
}

std::string ViolationWords(const ScalingDifference& difference) {
  return fmt::format("violations {} points {}", SignedNumber(100 * difference.violation_share, 2),
                     SignedIntervalText({100 * difference.violation_share_ci95.low,
                                         100 * difference.violation_share_ci95.high},
                                        2));
}

// Why, after "not better".
std::string Reason(const ScalingLoadSummary& load) {
  const ScalingDifference& difference = load.difference();
  if (!load.baseline_qualifies())
    return "no other policy has as few violations, so that costs are not compared";
  switch (load.finding()) {
    case Finding::kWorse:
      return "it costs more";
    case Finding::kBreaksLimit:
      return "its violations are more than 0.1 points above";
    case Finding::kBetter:
    case Finding::kUndecided:
      break;
  }
  if (load.episodes < kEpisodesForFinding) {
    return fmt::format("nothing can be shown on {}: at least {} are needed",
                       CountText(load.episodes, "episode"), kEpisodesForFinding);
  }
  if (difference.core_hours_ci95.high < 0)
    return "it is cheaper, but violations may be more than 0.1 points above";
  return "that it costs less is not shown: the interval holds 0";
}

class ScalingPage {
 public:
  ScalingPage(const ScalingSummary& summary, const ReportOptions& options)
      : summary_(summary), options_(options) {
    for (const ScalingLoadSummary& load : summary.loads) compared_ += load.baseline >= 0 ? 1 : 0;
  }

  std::string Html() const {
    std::string html = Header() + Verdicts();
    for (size_t load = 0; load < summary_.loads.size(); ++load)
      html += Load(static_cast<int>(load));
    return ReportPage(Headline("", "", ""), html + Table() + Application() + Making());
  }

 private:
  const std::string& Candidate() const { return summary_.loads[0].policies.back().name; }

  int Better() const {
    return static_cast<int>(std::count_if(
        summary_.loads.begin(), summary_.loads.end(),
        [](const auto& load) { return load.baseline >= 0 && load.finding() == Finding::kBetter; }));
  }

  // What is won or lost stands between the first or the second, and the last.
  std::string Headline(std::string_view good, std::string_view bad, std::string_view close) const {
    const auto safe = [&](const std::string& name) {
      return close.empty() ? name : EscapeXml(name);
    };
    const std::string name = safe(Candidate());
    if (compared_ == 0) return fmt::format("{} under {}", name, safe(LoadNames()));
    if (summary_.loads.size() > 1) {
      const int better = Better();
      return fmt::format("{} beats the best of the others on {}{} of {} loads{}", name,
                         better > 0 ? good : bad, better, compared_, close);
    }
    const ScalingLoadSummary& load = summary_.loads[0];
    const std::string baseline = safe(load.policies[load.baseline].name);
    if (load.candidate_alone_keeps_limit() && load.finding() == Finding::kBetter) {
      return fmt::format("{} alone keeps violations of {} {}within {:.3g} %{}", name,
                         safe(load.load), good, 100 * load.late_max, close);
    }
    if (!load.baseline_qualifies())
      return fmt::format("No other policy has as few violations as {}", name);
    if (load.finding() == Finding::kUndecided)
      return fmt::format("{} is not shown to be better than {}", name, baseline);
    if (load.finding() == Finding::kBetter) {
      return fmt::format("{} serves {} with {}{}{} than {}", name, safe(load.load), good,
                         CostWords(load), close, baseline);
    }
    if (load.finding() == Finding::kWorse) {
      return fmt::format("{} needs {}{}{} than {}: not better", name, bad, CostWords(load), close,
                         baseline);
    }
    return fmt::format("{} has {}more violations{} than {}: not better", name, bad, close,
                       baseline);
  }

  std::string LoadNames() const {
    std::string names;
    for (const ScalingLoadSummary& load : summary_.loads)
      names += (names.empty() ? "" : ", ") + load.load;
    return names;
  }

  std::string Header() const {
    return fmt::format(
               "<header>\n<p class=\"eyebrow\">Scaling \u00b7 {}</p>\n<h1>{}</h1>\n"
               "<p class=\"lede\">{}</p>\n</header>\n",
               EscapeXml(summary_.scenario),
               Headline("<span class=\"good\">", "<span class=\"bad\">", "</span>"),
               compared_ > 0
                   ? "Better is cheaper, with 95 % confidence, at violations at most 0.1 points "
                     "above the baseline\u2019s. The baseline is, on each load, the cheapest of "
                     "the others with no more violations. Where none qualifies, the page says so, "
                     "and the candidate is better only if it alone keeps the limit on violations. "
                     "A violation is a request answered later than its endpoint\u2019s target, or "
                     "not at all."
                   : "One policy; with a second one there would be a verdict.") +
           Tiles();
  }

  std::string Tiles() const {
    double core_hours = 0, base_hours = 0, late = 0, base_late = 0, changes = 0, base_changes = 0;
    const auto loads = static_cast<double>(summary_.loads.size());
    for (const ScalingLoadSummary& load : summary_.loads) {
      const ScalingPolicySummary& one = load.policies.back();
      const ScalingPolicySummary& base =
          load.policies[load.baseline < 0 ? load.candidate() : load.baseline];
      core_hours += one.core_hours;
      base_hours += base.core_hours;
      late += one.violation_share / loads;
      base_late += base.violation_share / loads;
      changes += one.changes / loads;
      base_changes += base.changes / loads;
    }
    std::string tiles = ReportTile(
        fmt::format("{:.2f}", core_hours / loads),
        compared_ > 0 ? fmt::format("core-hours an episode of {}; {:.2f} of the baselines",
                                    Candidate(), base_hours / loads)
                      : "core-hours an episode");
    if (compared_ > 0 && base_hours > 0) {
      tiles += ReportTile(SignedNumber(100 * (core_hours / base_hours - 1)) + " %",
                          "core-hours against the baselines, all loads together");
    }
    tiles += ReportTile(
        Violations(late),
        compared_ > 0 ? fmt::format("late or failed requests, mean over loads; {} of the baselines",
                                    Violations(base_late))
                      : "late or failed requests, mean over loads");
    tiles += ReportTile(
        fmt::format("{:.0f}", changes),
        compared_ > 0
            ? fmt::format("changes of replicas an episode; {:.0f} of the baselines", base_changes)
            : "changes of replicas an episode");
    return "<ul class=\"tiles\">\n" + tiles + "</ul>\n";
  }

  std::string VerdictRow(const ScalingLoadSummary& load) const {
    const ScalingDifference& difference = load.difference();
    const std::string_view css = load.finding() == Finding::kBetter      ? "good"
                                 : load.finding() == Finding::kUndecided ? "open"
                                                                         : "bad";
    std::string words = fmt::format(
        "{} against {}: {} ({} {}), {}", load.policies.back().name,
        load.policies[load.baseline].name, CostWords(load), SignedNumber(difference.core_hours, 3),
        SignedIntervalText(difference.core_hours_ci95, 3), ViolationWords(difference));
    if (load.candidate_alone_keeps_limit() && load.finding() == Finding::kBetter) {
      words +=
          fmt::format("; no other policy keeps violations within {:.3g} %", 100 * load.late_max);
    } else if (load.finding() != Finding::kBetter) {
      words += "; " + Reason(load);
    }
    return fmt::format(
        "<tr><th class=\"left\" scope=\"row\">{}</th><td class=\"left\"><b class=\"verdict {}\">{}"
        "</b></td><td class=\"left words\">{}.</td></tr>\n",
        EscapeXml(load.load), css, load.finding() == Finding::kBetter ? "better" : "not better",
        EscapeXml(words));
  }

  std::string Verdicts() const {
    if (compared_ == 0) return {};
    std::string rows;
    for (const ScalingLoadSummary& load : summary_.loads)
      if (load.baseline >= 0) rows += VerdictRow(load);
    return ReportSection("Load by load",
                         fmt::format("{} episode{} of each load; every policy meets the same "
                                     "requests, so that differences are paired.",
                                     summary_.episodes, summary_.episodes == 1 ? "" : "s")) +
           "<figure><div class=\"scroll\"><table class=\"verdicts\"><tbody>\n" + rows +
           "</tbody></table></div></figure>\n" +
           ReportFigure(fmt::format("{} against its baselines", Candidate()),
                        "Paired differences with their 95 % intervals. Left of the line is better.",
                        LoadDifferencesFigure(summary_), "wide");
  }

  std::string Load(int position) const {
    const ScalingLoadSummary& load = summary_.loads[position];
    const bool latencies =
        std::any_of(load.policies.begin(), load.policies.end(),
                    [](const auto& policy) { return !policy.latency_ms.empty(); });
    std::string html =
        ReportSection("Under " + load.load,
                      fmt::format("{:.1f} requests per second on average{}.", load.requests_per_s,
                                  load.is_replay() ? "; " + HeldOutText(load) : ""));
    std::string pair;
    if (latencies) {
      pair += ReportFigure("How long answers take",
                           "Share of all requests answered within a time; each nine has the same "
                           "room. Further left is better.",
                           LatencyFigure(summary_, position));
    }
    pair += ReportFigure("Cost against violations",
                         "No policy lies below and left of the dashed front. Violations are "
                         "logarithmic above 0.1 %.",
                         ParetoFigure(summary_, position));
    html += "<div class=\"pair\">\n" + pair + "</div>\n";
    if (load.policies.back().timeline.empty()) return html;
    html += ReportFigure(
        "One episode",
        fmt::format("Episode {}{}.", load.episode_shown,
                    load.baseline >= 0 ? ": that with the median difference in core-hours" : ""),
        TimelineFigure(summary_, position), "wide");
    return html + ReportFigure(
                      "Replicas of every workload",
                      "In that episode, from its beginning to its end; each row has its own scale.",
                      ReplicasFigure(summary_, position), "wide");
  }

  std::string TableRow(const ScalingLoadSummary& load, int p) const {
    const ScalingPolicySummary& policy = load.policies[p];
    const bool candidate = p == load.candidate();
    std::string against = "<td></td><td></td>";
    if (p == load.baseline) against = "<td colspan=\"2\">baseline</td>";
    if (policy.against_baseline) {
      const ScalingDifference& d = *policy.against_baseline;
      against = fmt::format(
          "<td>{} {}</td><td>{} {}</td>", SignedNumber(d.core_hours, 3),
          SignedIntervalText(d.core_hours_ci95, 3), SignedNumber(100 * d.violation_share, 2),
          SignedIntervalText({100 * d.violation_share_ci95.low, 100 * d.violation_share_ci95.high},
                             2));
    }
    return fmt::format(
        "<tr class=\"part{}{}\"><th class=\"left\" scope=\"row\">{}</th><td>{:.3f}</td><td>{:.2f}"
        "</td><td>{:.2f}</td>{}<td>{}</td><td>{:.0f} %</td><td>{}</td><td>{:.1f}</td>{}</tr>\n",
        candidate ? " candidate" : "", candidate ? " last" : "", EscapeXml(policy.name),
        policy.core_hours, policy.pod_hours, policy.node_hours,
        summary_.draws_power() ? fmt::format("<td>{:.0f} Wh</td>", policy.energy_wh) : "",
        Violations(policy.violation_share), 100 * summary_.BudgetOf(policy),
        LatencyText(policy.p95_ms), policy.changes, against);
  }

  std::string Table() const {
    std::string rows;
    for (const ScalingLoadSummary& load : summary_.loads) {
      rows += fmt::format("<tr class=\"whole\"><th class=\"left\" colspan=\"{}\">{}</th></tr>\n",
                          summary_.draws_power() ? 11 : 10, EscapeXml(load.load));
      for (int p = 0; p < static_cast<int>(load.policies.size()); ++p) rows += TableRow(load, p);
    }
    return ReportSection(
               "All figures",
               fmt::format(
                   "Means of an episode; p95 of all requests, the mean over episodes of each "
                   "one\u2019s. Node-hours are of the nodes that the replicas fit on; the budget "
                   "is {:.3g} % of requests late or failed. Differences are to the baseline of "
                   "the load, with 95 % intervals; those of violations in points.",
                   100 * summary_.late_max)) +
           fmt::format(
               "<figure><div class=\"scroll\"><table><thead><tr><th>policy</th><th>core-hours</th>"
               "<th>pod-hours</th><th>node-hours</th>{}<th>violations</th><th>of budget</th>"
               "<th>p95</th><th>changes</th><th>core-hours against the baseline</th>"
               "<th>violations</th></tr></thead><tbody>\n",
               summary_.draws_power() ? "<th>energy</th>" : "") +
           rows + "</tbody></table></div></figure>\n";
  }

  std::string Application() const {
    const double requests_per_s = summary_.requests_per_s();
    return ReportSection("The application", "Who calls whom to answer requests.") +
           ReportFigure(
               "Call graph with load",
               fmt::format("At {:.1f} requests per second{}. Lines are as wide as calls are "
                           "many; bars show how much of the work is whose.",
                           requests_per_s,
                           summary_.loads.size() > 1 ? ", the mean of the loads" : ""),
               CallGraphFigure(summary_, requests_per_s), "wide");
  }

  std::string Making() const {
    return "<h2>How this was made</h2>\n<dl>\n" +
           ReportFact("Scenario", EscapeXml(summary_.scenario)) +
           ReportFact("Episodes", fmt::format("{} of each load", summary_.episodes)) +
           ReportFact("Seed", fmt::format("{}", summary_.seed)) +
           ReportFact("Judge",
                      "the event simulator, request by request; metrics one interval old") +
           ReportFact("Intervals", "95 %, percentile bootstrap over episodes, paired") +
           ReportFact(
               "Hypervolume",
               "share of the rectangle up to the dearest and the latest policy, each a tenth "
               "further, that somebody dominates; violations on the scale of the figure") +
           ReportFact("Command", options_.command.empty()
                                     ? std::string()
                                     : "<code>" + EscapeXml(options_.command) + "</code>") +
           "</dl>\n" +
           fmt::format(
               "<footer>Made by rudderfish{}. Requests, latencies and pods are those of the "
               "event simulator.</footer>\n",
               options_.version.empty() ? "" : " " + EscapeXml(options_.version));
  }

  const ScalingSummary& summary_;
  const ReportOptions& options_;
  int compared_ = 0;
};

}  // namespace

std::string ScalingReportHtml(const ScalingSummary& summary, const ReportOptions& options) {
  return ScalingPage(summary, options).Html();
}

Result<void> WriteScalingReport(const ScalingSummary& summary, const ReportOptions& options,
                                const std::filesystem::path& path) {
  return WriteFileAtomically(path, ScalingReportHtml(summary, options));
}

}  // namespace rudderfish
