// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/files.h"
#include "report/report_figures.h"
#include "report/report_page.h"
#include "report/svg.h"

namespace rudderfish {
namespace {

constexpr size_t kMovesListed = 25;

std::string Percent(const std::optional<double>& share) {
  if (!share) return "\u2013";
  return *share < 0 ? SignedNumber(100 * *share) : fmt::format("{:.1f}", 100 * *share);
}

std::string Micros(double us) {
  if (us < 100) return fmt::format("{:.1f} \u00b5s", us);
  if (us < 1000) return fmt::format("{:.0f} \u00b5s", us);
  return us < 10000 ? fmt::format("{:.1f} ms", us / 1000) : fmt::format("{:.0f} ms", us / 1000);
}

class Page {
 public:
  Page(const Evaluation& evaluation, const Comparison& comparison,
       std::span<const StartState> starts, const ReportOptions& options)
      : evaluation_(evaluation),
        comparison_(comparison),
        starts_(starts),
        options_(options),
        policies_(evaluation, comparison) {
    CHECK_EQ(starts.size(), evaluation.starts.size());
  }

  std::string Html() const {
    return ReportPage(PlainHeadline(), Header() + Results() + Mechanism() + Learning() + Plan() +
                                           Table() + Making());
  }

 private:
  const std::string& Name(int policy) const { return evaluation_.policies[policy].name; }
  const PolicySummary& Of(int policy) const { return comparison_.policies[policy]; }

  // The headline with what is won or lost marked by `open` and `close`.
  std::string Headline(std::string_view good, std::string_view bad, std::string_view close,
                       bool escape) const {
    const auto name = [&](int policy) { return escape ? EscapeXml(Name(policy)) : Name(policy); };
    if (!comparison_.verdict) {
      return fmt::format("{} takes {} ms of latency to {} ms", name(policies_.candidate),
                         MsText(Of(policies_.candidate).mean_initial_ms),
                         MsText(Of(policies_.candidate).mean_final_ms));
    }
    const Comparison::Verdict& verdict = *comparison_.verdict;
    const std::string difference = MsText(std::abs(verdict.paired.difference_ms));
    switch (verdict.finding) {
      case Finding::kBetter:
        return fmt::format("{} ends {}{} ms below{} {}", name(verdict.candidate), good, difference,
                           close, name(verdict.baseline));
      case Finding::kWorse:
        return fmt::format("{} ends {}{} ms above{} {}: not better", name(verdict.candidate), bad,
                           difference, close, name(verdict.baseline));
      case Finding::kBreaksLimit:  // There is no limit.
      case Finding::kUndecided:
        break;
    }
    return fmt::format("No difference shown between {} and {}", name(verdict.candidate),
                       name(verdict.baseline));
  }

  std::string PlainHeadline() const { return Headline("", "", "", false); }

  std::string Header() const {
    const std::string lede = comparison_.verdict
                                 ? comparison_.verdict->text
                                 : fmt::format(
                                       "One policy from {} held-out starts; with a second "
                                       "one there would be a verdict.",
                                       evaluation_.start_count());
    return fmt::format(
        "<header>\n<p class=\"eyebrow\">Evaluation \u00b7 {}</p>\n<h1>{}</h1>\n"
        "<p class=\"lede\">{}</p>\n</header>\n{}",
        EscapeXml(evaluation_.scenario),
        Headline("<span class=\"good\">", "<span class=\"bad\">", "</span>", true),
        EscapeXml(WithTrueMinus(lede)), Tiles());
  }

  // The verdict's text is also for terminals and keeps to ASCII.
  static std::string WithTrueMinus(std::string text) {
    for (size_t at = 0; (at = text.find('-', at)) != std::string::npos; ++at) {
      const bool number = at + 1 < text.size() && text[at + 1] >= '0' && text[at + 1] <= '9' &&
                          (at == 0 || text[at - 1] == ' ' || text[at - 1] == '[');
      if (number) text.replace(at, 1, "\u2212");
    }
    return text;
  }

  std::string Tiles() const {
    const int candidate = policies_.candidate;
    const PolicySummary& summary = Of(candidate);
    std::string tiles = ReportTile(
        fmt::format("{:.0f} \u2192 {:.0f} ms", summary.mean_initial_ms, summary.mean_final_ms),
        fmt::format("mean latency before and after {}, {:.1f} moves a plan", Name(candidate),
                    summary.mean_moves));
    if (comparison_.verdict) {
      const Comparison::Verdict& verdict = *comparison_.verdict;
      tiles += ReportTile(SignedNumber(verdict.paired.difference_ms) + " ms",
                          fmt::format("against {}, 95 % interval {}", Name(verdict.baseline),
                                      SignedIntervalText(verdict.paired.difference_ci)));
      tiles += ReportTile(
          fmt::format("{:.0f} %", 100 * verdict.paired.probability_of_improvement),
          fmt::format(
              "probability of improvement: to end lower than {} on a start; a tie counts half",
              Name(verdict.baseline)));
    }
    if (summary.share_of_best && !comparison_.verdict) {
      tiles +=
          ReportTile(Percent(summary.share_of_best) + " %", "of the gain of the best plan found");
    }
    // A policy that plans does so at its first decision, and the others cost it nothing.
    tiles +=
        ReportTile(Micros(evaluation_.times[candidate].plan_mean_us),
                   fmt::format("a plan of {}, all its decisions; 99 of 100 within {}",
                               Name(candidate), Micros(evaluation_.times[candidate].plan_p99_us)));
    return "<ul class=\"tiles\">\n" + tiles + "</ul>\n";
  }

  std::string Results() const {
    std::string html =
        ReportSection("From the same starts",
                      fmt::format("Every policy starts from the same {} held-out states and "
                                  "decides move by move until it stops.",
                                  evaluation_.start_count()));
    std::string pair;
    if (comparison_.verdict) {
      const Comparison::Verdict& verdict = *comparison_.verdict;
      pair += ReportFigure(
          fmt::format("{} against {}", Name(verdict.candidate), Name(verdict.baseline)),
          "Paired difference in final latency with its 95 % interval. Left of the line is better.",
          DifferenceFigure(evaluation_, comparison_));
    }
    pair +=
        ReportFigure("Where each policy ends", "Mean final latency with its 95 % interval, in ms.",
                     IntervalFigure(evaluation_, comparison_, policies_));
    html += "<div class=\"pair\">\n" + pair + "</div>\n";
    if (comparison_.verdict) {
      const Comparison::Verdict& verdict = *comparison_.verdict;
      html += ReportFigure(
          "Start by start",
          fmt::format("One bar a start, sorted: final latency of {} minus that of {}. A "
                      "mean can hide a bad day; this cannot.",
                      Name(verdict.candidate), Name(verdict.baseline)),
          StartsFigure(evaluation_, comparison_), "wide");
    }
    return html;
  }

  std::string Mechanism() const {
    return "<div class=\"pair\">\n" +
           ReportFigure("How low they end, and how often",
                        "Share of episodes that end at or below a latency. Further left is better.",
                        DistributionFigure(evaluation_, policies_)) +
           ReportFigure(
               "What each move brings",
               "Mean latency after so many moves; a plan that has stopped keeps its latency.",
               MovesFigure(evaluation_, comparison_, policies_)) +
           "</div>\n";
  }

  std::string Learning() const {
    std::vector<LearningCurve> drawable;
    size_t runs = 1;
    for (const LearningCurve& curve : options_.curves) {
      const bool points =
          !curve.runs.empty() && std::all_of(curve.runs.begin(), curve.runs.end(),
                                             [](const auto& run) { return run.size() > 1; });
      if (points) drawable.push_back(curve);
      runs = std::max(runs, curve.runs.size());
    }
    if (drawable.empty()) return {};
    const std::string band =
        runs > 1
            ? fmt::format(
                  " Line: mean over {} training seeds; band: from the lowest to the highest.", runs)
            : std::string();
    return ReportSection(
               "How it learned",
               "Measured while training, on starts of its own that are neither trained on nor "
               "evaluated on here.") +
           ReportFigure("Learning curve", "The policy alone, without search." + band,
                        LearningFigure(drawable, evaluation_, policies_), "wide");
  }

  static std::string MoveRows(const EvaluatedEpisode& episode) {
    std::string rows;
    double latency_ms = episode.initial.latency_ms;
    const size_t shown = std::min(episode.decisions.size(), kMovesListed);
    for (size_t i = 0; i < shown; ++i) {
      const MadeDecision& decision = episode.decisions[i];
      latency_ms -= decision.predicted_ms;
      rows += fmt::format(
          "<tr><td>{}</td><td class=\"left\"><span>{}</span></td><td class=\"left\"><span>{} "
          "\u2192</span> <span>{}</span></td><td>{}</td><td>{}</td></tr>\n",
          i + 1, EscapeXml(decision.pod), EscapeXml(decision.from), EscapeXml(decision.to),
          SignedNumber(-decision.predicted_ms), MsText(latency_ms));
    }
    if (shown < episode.decisions.size()) {
      rows += fmt::format(
          "<tr><td></td><td class=\"left\">and {} more</td><td></td><td>{}</td><td>{}</td></tr>\n",
          episode.decisions.size() - shown, SignedNumber(episode.final.latency_ms - latency_ms),
          MsText(episode.final.latency_ms));
    }
    return rows;
  }

  std::string Plan() const {
    const EvaluatedEpisode* episode = TypicalEpisode(evaluation_, policies_.candidate);
    if (episode == nullptr) return {};
    const EvaluatedStart& start = evaluation_.starts[episode->start];
    return ReportSection(
               "A typical plan",
               fmt::format("What {} does from start {} ({}): the episode whose gain is the "
                           "median of its episodes.",
                           Name(policies_.candidate), start.line, start.pattern)) +
           ReportFigure(
               "Pods on nodes, before and after",
               "Numbers give the order of moves: dashed where a pod leaves, outlined where it "
               "arrives.",
               PlacementFigure(starts_[episode->start].state, *episode), "wide") +
           ReportFigure("The moves", "Change in mean request latency that the model predicts.",
                        "<div class=\"scroll\"><table><thead><tr><th>move</th><th "
                        "class=\"left\">pod</th><th "
                        "class=\"left\">from \u2192 to</th>"
                        "<th>change, ms</th><th>latency after, ms</th></tr></thead><tbody>\n" +
                            MoveRows(*episode) + "</tbody></table></div>");
  }

  std::string TableRow(std::string_view css, const std::string& name, const PolicySummary& summary,
                       const std::string& times) const {
    const bool proven = Of(0).proven_starts > 0;
    return fmt::format(
        "<tr class=\"{}\"><th class=\"left\" scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td>"
        "<td>{}</td><td>{}</td><td>{}</td>{}<td>{:.1f}</td>{}</tr>\n",
        css, EscapeXml(name), MsText(summary.mean_final_ms),
        EscapeXml(IntervalText(summary.mean_final_ci, 1)), MsText(summary.iqm_final_ms),
        MsText(summary.worst_final_ms), SignedNumber(summary.worst_change_ms),
        Percent(summary.share_of_best),
        proven ? "<td>" + Percent(summary.share_of_optimum) + "</td>" : "", summary.mean_moves,
        times);
  }

  std::string Table() const {
    const bool proven = Of(0).proven_starts > 0;
    std::string rows;
    for (int p : policies_.by_final) {
      const EvaluatedPolicy& policy = evaluation_.policies[p];
      const std::string name = policy.training_seeds > 1 ? fmt::format("{} ({} seeds)", policy.name,
                                                                       policy.training_seeds)
                                                         : policy.name;
      const bool parts = !comparison_.patterns.empty();
      rows += TableRow(
          fmt::format("{}{}", parts ? "whole" : "", p == policies_.candidate ? " candidate" : ""),
          name, Of(p),
          fmt::format("<td>{}</td><td>{}</td><td>{}</td>", Micros(evaluation_.times[p].p50_us),
                      Micros(evaluation_.times[p].p99_us),
                      Micros(evaluation_.times[p].plan_mean_us)));
      for (const Comparison::Pattern& pattern : comparison_.patterns) {
        const bool last = &pattern == &comparison_.patterns.back();
        rows += TableRow(fmt::format("part{}{}", last ? " last" : "",
                                     p == policies_.candidate ? " candidate" : ""),
                         pattern.name, pattern.policies[p], "<td></td><td></td><td></td>");
      }
    }
    return ReportSection(
               "All figures",
               "Latencies in ms. IQM: mean of the middle half. Worst: the largest final latency, "
               "and the largest rise from a start (below zero: no start was made worse). Won: of "
               "what the best plan found here won from each start.") +
           "<figure><div class=\"scroll\"><table><thead><tr><th>policy</th><th>mean</th>"
           "<th>95 % interval</th><th>IQM</th><th>worst</th><th>worst rise</th><th>won, %</th>" +
           (proven ? "<th>of optimum, %</th>" : "") +
           "<th>moves</th><th>decision<br>median</th><th>99 "
           "%</th><th>plan</th></tr></thead><tbody>\n" +
           rows + "</tbody></table></div></figure>\n";
  }

  std::string Making() const {
    std::string starts;
    for (const Comparison::Pattern& pattern : comparison_.patterns) {
      starts += fmt::format("{}{} {}", starts.empty() ? ": " : ", ", pattern.starts, pattern.name);
    }
    std::string seeds;
    for (const EvaluatedPolicy& policy : evaluation_.policies) {
      if (policy.training_seeds > 1) {
        seeds +=
            fmt::format("{}{}: {}", seeds.empty() ? "" : ", ", policy.name, policy.training_seeds);
      }
    }
    return "<h2>How this was made</h2>\n<dl>\n" +
           ReportFact("Scenario", EscapeXml(evaluation_.scenario)) +
           ReportFact("Starts", EscapeXml(fmt::format("{}{}", evaluation_.start_count(), starts))) +
           ReportFact("Seed", fmt::format("{}", evaluation_.seed)) +
           ReportFact("Training seeds", EscapeXml(seeds)) +
           ReportFact("Intervals",
                      "95 %, percentile bootstrap: starts are resampled within their call pattern, "
                      "training seeds across all starts") +
           ReportFact("Baseline",
                      comparison_.verdict
                          ? "the policy with the lowest mean final latency besides the candidate"
                          : "") +
           ReportFact("Command", options_.command.empty()
                                     ? std::string()
                                     : "<code>" + EscapeXml(options_.command) + "</code>") +
           "</dl>\n" +
           fmt::format(
               "<footer>Made by rudderfish{}. Latencies are those of the simulator's model; "
               "times of decisions are of the machine that ran this.</footer>\n",
               options_.version.empty() ? "" : " " + EscapeXml(options_.version));
  }

  const Evaluation& evaluation_;
  const Comparison& comparison_;
  std::span<const StartState> starts_;
  const ReportOptions& options_;
  ReportPolicies policies_;
};

}  // namespace

std::string ReportHtml(const Evaluation& evaluation, const Comparison& comparison,
                       std::span<const StartState> starts, const ReportOptions& options) {
  return Page(evaluation, comparison, starts, options).Html();
}

Result<void> WriteReport(const Evaluation& evaluation, const Comparison& comparison,
                         std::span<const StartState> starts, const ReportOptions& options,
                         const std::filesystem::path& path) {
  return WriteFileAtomically(path, ReportHtml(evaluation, comparison, starts, options));
}

}  // namespace rudderfish
