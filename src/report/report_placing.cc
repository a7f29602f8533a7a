// SPDX-License-Identifier: Apache-2.0
#include "report/report_placing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "evaluation/placement_comparison.h"
#include "report/published_html.h"
#include "report/report_figures.h"
#include "report/report_page.h"
#include "report/svg.h"

namespace rudderfish {
namespace {

constexpr std::string_view kDrawn[] = {"objective", "active_nodes", "chosen_latency",
                                       "call_latency", "imbalance_cpu"};

class PlacingPage {
 public:
  PlacingPage(const PlacementEvaluation& evaluation, const OrderedJson& quotes,
              const ReportOptions& options)
      : evaluation_(evaluation), quotes_(quotes), options_(options) {}

  std::string Html() const {
    return ReportPage(Headline("", "", ""),
                      Header() + Figures() + Table() + PublishedHtml(quotes_) + Making());
  }

 private:
  const EvaluatedPlacement& Candidate() const { return evaluation_.policies.back(); }
  const EvaluatedPlacement& Baseline() const {
    return evaluation_.policies[std::max(0, evaluation_.baseline)];
  }
  bool compares() const { return evaluation_.baseline >= 0; }

  double MeanOf(const EvaluatedPlacement& policy, std::string_view metric) const {
    return Mean(policy.Runs(metric, evaluation_.episodes).values);
  }

  // Whether any policy has some of it: without users there is no latency.
  bool IsSeen(std::string_view metric) const {
    return std::any_of(
        evaluation_.policies.begin(), evaluation_.policies.end(),
        [&](const EvaluatedPlacement& policy) { return MeanOf(policy, metric) > 0; });
  }

  // What is won or lost stands between the first or the second, and the last.
  std::string Headline(std::string_view good, std::string_view bad, std::string_view close) const {
    const auto safe = [&](const std::string& name) {
      return close.empty() ? name : EscapeXml(name);
    };
    const std::string name = safe(Candidate().name), baseline = safe(Baseline().name);
    if (!compares()) return fmt::format("{} in {}", name, safe(evaluation_.scenario));
    const double base = MeanOf(Baseline(), "objective");
    const std::string much =
        base > 0 ? fmt::format("{:.1f} % ", 100 * std::abs(evaluation_.difference) / base) : "";
    switch (evaluation_.finding) {
      case Finding::kBetter:
        return fmt::format("{} places with {}{}less {}{} than {}", name, good, much,
                           evaluation_.objective, close, baseline);
      case Finding::kWorse:
        return fmt::format("{} places with {}{}more {}{} than {}: not better", name, bad, much,
                           evaluation_.objective, close, baseline);
      case Finding::kBreaksLimit:  // There is no limit.
      case Finding::kUndecided:
        break;
    }
    return fmt::format("No difference shown between {} and {}", name, baseline);
  }

  std::string Header() const {
    return fmt::format(
               "<header>\n<p class=\"eyebrow\">Placing pods \u00b7 {} \u00b7 {}</p>\n<h1>{}</h1>\n"
               "<p class=\"lede\">{}</p>\n</header>\n",
               EscapeXml(evaluation_.scenario), EscapeXml(evaluation_.objective),
               Headline("<span class=\"good\">", "<span class=\"bad\">", "</span>"),
               EscapeXml(compares() ? PlacementVerdict(evaluation_)
                                    : "One policy; with a second one there would be a verdict.")) +
           Tiles();
  }

  std::string Tiles() const {
    std::string tiles;
    const auto tile = [&](std::string_view metric, int decimals, std::string_view what) {
      tiles +=
          ReportTile(fmt::format("{:.{}f}", MeanOf(Candidate(), metric), decimals),
                     compares() ? fmt::format("{} of {}; {:.{}f} of {}", what, Candidate().name,
                                              MeanOf(Baseline(), metric), decimals, Baseline().name)
                                : std::string(what));
    };
    tile("objective", 4, evaluation_.objective);
    tile("active_nodes", 2, fmt::format("active nodes of {}", evaluation_.nodes));
    if (IsSeen("chosen_latency")) {
      tile("chosen_latency", 1, "ms between users and the nodes chosen");
      tile("hard_misses", 1, "bindings above the hard limit of latency");
    } else {
      tile("imbalance_cpu", 4, "imbalance of CPU");
      tile("makespan", 0, "s makespan");
    }
    return "<ul class=\"tiles\">\n" + tiles + "</ul>\n";
  }

  std::string SeriesOf(int policy) const {
    if (policy + 1 == static_cast<int>(evaluation_.policies.size())) return "s0";
    return policy == evaluation_.baseline ? "s1" : "s2";
  }

  std::string Figure(const Metric& measure) const {
    IntervalAxis axis{.title = fmt::format("{} of every policy", measure.title),
                      .description = fmt::format("Mean {} with 95 % interval.", measure.title),
                      .label = measure.unit.empty()
                                   ? std::string(measure.title)
                                   : fmt::format("{} ({})", measure.title, measure.unit),
                      .least_pad = std::pow(10.0, -measure.decimals)};
    std::vector<IntervalRow> rows;
    for (size_t p = 0; p < evaluation_.policies.size(); ++p) {
      const EvaluatedPlacement& policy = evaluation_.policies[p];
      const RunMatrix runs = policy.Runs(measure.name, evaluation_.episodes);
      IntervalRow row{.name = policy.name,
                      .series = SeriesOf(static_cast<int>(p)),
                      .value = Mean(runs.values),
                      .interval = BootstrapMean(runs, {})};
      row.text = fmt::format("{:.{}f}", row.value, measure.decimals);
      axis.description += fmt::format(" {}: {}.", policy.name, row.text);
      rows.push_back(std::move(row));
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const IntervalRow& a, const IntervalRow& b) { return a.value < b.value; });
    return ReportFigure(fmt::format("Mean {}", measure.title),
                        "Means over episodes with their 95 % intervals. Less is better.",
                        IntervalFigure(rows, axis));
  }

  std::string Figures() const {
    std::string html;
    for (const Metric& measure : PlacementMetrics()) {
      const bool drawn =
          std::find(std::begin(kDrawn), std::end(kDrawn), measure.name) != std::end(kDrawn);
      if (drawn && IsSeen(measure.name)) html += Figure(measure);
    }
    return "<div class=\"pair\">\n" + html + "</div>\n";
  }

  std::string Table() const {
    std::string head, rows;
    for (const EvaluatedPlacement& policy : evaluation_.policies)
      head += fmt::format("<th>{}</th>", EscapeXml(policy.name));
    const auto row = [&](const std::string& title, const auto& cell) {
      rows += fmt::format("<tr class=\"part\"><th class=\"left\" scope=\"row\">{}</th>", title);
      for (const EvaluatedPlacement& policy : evaluation_.policies)
        rows += fmt::format("<td>{}</td>", cell(policy));
      rows += "</tr>\n";
    };
    for (const Metric& measure : PlacementMetrics()) {
      if (measure.name == "call_latency" && !IsSeen(measure.name)) continue;  // No calls.
      const std::string unit = measure.unit.empty() ? "" : fmt::format(" ({})", measure.unit);
      row(fmt::format("{}{}", measure.title, unit), [&](const EvaluatedPlacement& policy) {
        return fmt::format("{:.{}f}", MeanOf(policy, measure.name), measure.decimals);
      });
    }
    row("a decision, p50 (\u00b5s)", [](const EvaluatedPlacement& policy) {
      return fmt::format("{:.1f}", policy.decide_p50_us);
    });
    row("a decision, p99 (\u00b5s)", [](const EvaluatedPlacement& policy) {
      return fmt::format("{:.1f}", policy.decide_p99_us);
    });
    row("all decisions (ms)", [](const EvaluatedPlacement& policy) {
      return fmt::format("{:.3g}", 1000 * policy.decide_s);
    });
    row("overhead: of the makespan (%)", [&](const EvaluatedPlacement& policy) {
      return fmt::format("{:.2g}", 100 * policy.Overhead(evaluation_.episodes));
    });
    return ReportSection(
               "All figures",
               "Means of an episode. A decision is one answer to where a pod goes, on "
               "the machine that ran this; overhead is what they take of simulated time.") +
           "<figure><div class=\"scroll\"><table><thead><tr><th></th>" + head +
           "</tr></thead><tbody>\n" + rows + "</tbody></table></div></figure>\n";
  }

  std::string Making() const {
    return "<h2>How this was made</h2>\n<dl>\n" +
           ReportFact("Scenario", EscapeXml(evaluation_.scenario)) +
           ReportFact("Objective", EscapeXml(evaluation_.objective)) +
           ReportFact("Episodes", fmt::format("{}", evaluation_.episodes)) +
           ReportFact("Seed", fmt::format("{}", evaluation_.seed)) +
           ReportFact("Training seeds", fmt::format("{}", Candidate().training_seeds)) +
           ReportFact("Intervals",
                      "95 %, percentile bootstrap over episodes and training seeds, paired") +
           ReportFact("Baseline",
                      compares() ? "the best of the others on sixteen episodes of its own" : "") +
           ReportFact("Command", options_.command.empty()
                                     ? std::string()
                                     : "<code>" + EscapeXml(options_.command) + "</code>") +
           "</dl>\n" +
           fmt::format(
               "<footer>Made by rudderfish{}. Pods, nodes and latencies are those of the "
               "simulator; times of decisions are of the machine that ran this.</footer>\n",
               options_.version.empty() ? "" : " " + EscapeXml(options_.version));
  }

  const PlacementEvaluation& evaluation_;
  const OrderedJson& quotes_;
  const ReportOptions& options_;
};

}  // namespace

std::string PlacingReportHtml(const PlacementEvaluation& evaluation, const OrderedJson& quotes,
                              const ReportOptions& options) {
  return PlacingPage(evaluation, quotes, options).Html();
}

Result<void> WritePlacingReport(const PlacementEvaluation& evaluation, const OrderedJson& quotes,
                                const ReportOptions& options, const std::filesystem::path& path) {
  return WriteFileAtomically(path, PlacingReportHtml(evaluation, quotes, options));
}

}  // namespace rudderfish
