// SPDX-License-Identifier: Apache-2.0
#include "report/report_experiment.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "report/front_html.h"
#include "report/published_html.h"
#include "report/report_page.h"
#include "report/svg.h"

namespace rudderfish {
namespace {

struct Tally {
  int better = 0, worse = 0, pairs = 0;
};

// Digits that tell apart what is compared: the more the smaller it is.
int DecimalsFor(const OrderedJson& pair) {
  const double size = std::abs(pair["baseline_iqm"].get<double>());
  return size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4;
}

std::string RowOf(const OrderedJson& pair, Tally* tally) {
  const OrderedJson& better = pair["better"];
  ++tally->pairs;
  tally->better += !better.is_null() && better.get<bool>() ? 1 : 0;
  tally->worse += !better.is_null() && !better.get<bool>() ? 1 : 0;
  const int decimals = DecimalsFor(pair);
  const ConfidenceInterval interval{pair["difference_ci95"][0].get<double>(),
                                    pair["difference_ci95"][1].get<double>()};
  return fmt::format(
      "<tr class=\"part\"><th class=\"left\" scope=\"row\">{}</th><td>{:.{}f}</td><td>{:.{}f}</td>"
      "<td>{} {}</td><td class=\"left\"><b class=\"verdict {}\">{}</b></td></tr>\n",
      EscapeXml(pair["baseline"].get<std::string>()), pair["baseline_iqm"].get<double>(), decimals,
      pair["candidate_iqm"].get<double>(), decimals,
      SignedNumber(pair["difference"].get<double>(), decimals),
      SignedIntervalText(interval, decimals),
      better.is_null()     ? "open"
      : better.get<bool>() ? "good"
                           : "bad",
      better.is_null()     ? "not shown"
      : better.get<bool>() ? "better"
                           : "worse");
}

std::string RowsOf(const ReportedCell& cell, Tally* tally) {
  CHECK(!cell.pairs->empty());
  const OrderedJson& first = (*cell.pairs)[0];
  const auto unit = first["unit"].get<std::string>();
  std::string rows = fmt::format(
      "<tr class=\"whole\"><th class=\"left\" colspan=\"5\"><a href=\"{}\">{}</a>: "
      "{}{}</th></tr>\n",
      EscapeXml(cell.link), EscapeXml(cell.name), EscapeXml(first["metric"].get<std::string>()),
      unit.empty() ? "" : fmt::format(" ({})", EscapeXml(unit)));
  for (const OrderedJson& pair : *cell.pairs) {
    if (pair["metric"] == first["metric"]) rows += RowOf(pair, tally);
  }
  return rows;
}

}  // namespace

std::string ExperimentPage(std::string_view experiment, const std::vector<ReportedCell>& cells,
                           const OrderedJson& fronts, const OrderedJson& quotes,
                           const ReportOptions& options) {
  CHECK(!cells.empty());
  Tally tally;
  std::string rows;
  for (const ReportedCell& cell : cells) rows += RowsOf(cell, &tally);
  const auto candidate = (*cells[0].pairs)[0]["candidate"].get<std::string>();
  const std::string title = fmt::format("{}: {} is better in {} of {} comparisons", experiment,
                                        candidate, tally.better, tally.pairs);
  std::string html = fmt::format(
      "<header>\n<p class=\"eyebrow\">Experiment \u00b7 {}</p>\n<h1>{} is better in {} of {} "
      "comparisons</h1>\n<p class=\"lede\">Worse in {}. The others show no difference: the 95 % "
      "interval includes 0, there are too few episodes or, when scaling, it is cheaper only "
      "because more requests are late.</p>\n</header>\n",
      EscapeXml(experiment), EscapeXml(candidate), tally.better, tally.pairs, tally.worse);
  html += ReportSection("Cell by cell",
                        fmt::format("Paired differences of {} to each of the others, with 95 % "
                                    "intervals; interquartile means. Each cell has a page of its "
                                    "own; all metrics are in report.json.",
                                    candidate)) +
          "<figure><div class=\"scroll\"><table><thead><tr><th>against</th><th>baseline</th><th>" +
          EscapeXml(candidate) +
          "</th><th>difference</th><th class=\"left\">verdict</th></tr></thead><tbody>\n" + rows +
          "</tbody></table></div></figure>\n" + FrontsHtml(fronts) + PublishedHtml(quotes) +
          "<h2>How this was made</h2>\n<dl>\n" +
          ReportFact("Command", options.command.empty()
                                    ? std::string()
                                    : "<code>" + EscapeXml(options.command) + "</code>") +
          ReportFact("Version", EscapeXml(options.version)) + "</dl>\n";
  return ReportPage(title, html);
}

}  // namespace rudderfish
