// SPDX-License-Identifier: Apache-2.0
#include "report/front_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "report/figure_parts.h"
#include "report/report_page.h"
#include "report/svg.h"

namespace rudderfish {
namespace {

constexpr int kFrontSeries = 6;     // Colours of the style sheet.
constexpr double kRowOfPoint = 20;  // Of the names beside the plot.

// The candidate is the series s0, the policy before it s1, the others recede.
std::string SeriesOf(size_t policy, size_t policies) {
  if (policy + 1 == policies) return "s0";
  return policy + 2 == policies ? "s1" : fmt::format("s{}", 2 + policy % kFrontSeries);
}

std::string PriceText(const OrderedJson& point) {
  return fmt::format("{:.0f} $/t", point["dollars_per_ton"].get<double>());
}

std::string FrontFigure(const OrderedJson& front) {
  const OrderedJson& policies = front["policies"];
  std::vector<PlottedPolicy> points;
  std::string description;
  for (size_t p = 0; p < policies.size(); ++p) {
    const auto name = policies[p]["policy"].get<std::string>();
    for (const OrderedJson& point : policies[p]["points"]) {
      const double cost = point["cost"].get<double>(),
                   carbon = point["carbon_g_per_million"].get<double>();
      const std::string words =
          fmt::format("{} at {}: {:.4f}, {:.2f} g, {:.2f} % late", name, PriceText(point), cost,
                      carbon, point["late_percent"].get<double>());
      description += words + ". ";
      points.push_back({.css = SeriesOf(p, policies.size()),
                        .name = name,
                        .value = PriceText(point),
                        .tooltip = words,
                        .x = cost,
                        .y = carbon});
    }
  }
  // Names stand in the order of their dots.
  std::stable_sort(points.begin(), points.end(),
                   [](const auto& a, const auto& b) { return a.y > b.y; });
  const auto corner = [&](const char* of, const char* axis) {
    return front[of][axis].get<double>();
  };
  const double pad_x = 0.05 * (corner("reference", "cost") - corner("ideal", "cost")),
               pad_y = 0.05 * (corner("reference", "carbon_g_per_million") -
                               corner("ideal", "carbon_g_per_million"));
  const double height = std::max(400.0, 84 + kRowOfPoint * static_cast<double>(points.size()));
  Svg svg(kWideFigure, height, "Cost against carbon", description);
  const PlotFrame frame{
      .left = 60, .top = 34, .right = kWideFigure - kKeyRoom, .bottom = height - 50};
  Plot plot(&svg, frame,
            {.low = corner("ideal", "cost") - pad_x,
             .high = corner("reference", "cost"),
             .label = "cost of a request without carbon"},
            {.low = corner("ideal", "carbon_g_per_million") - pad_y,
             .high = corner("reference", "carbon_g_per_million"),
             .label = "CO\u2082 of a million requests",
             .suffix = " g"});
  DrawFront(points, plot, &svg);
  DrawPolicies(points, plot, &svg);
  return std::move(svg).Finish();
}

std::string DifferenceCells(const OrderedJson& policy) {
  if (!policy.contains("difference")) return "<td></td><td class=\"left\"></td>";
  const OrderedJson &interval = policy["difference_ci95"], &better = policy["better"];
  return fmt::format("<td>{} {}</td><td class=\"left\"><b class=\"verdict {}\">{}</b></td>",
                     SignedNumber(policy["difference"].get<double>(), 3),
                     SignedIntervalText({interval[0].get<double>(), interval[1].get<double>()}, 3),
                     better.is_null()     ? "open"
                     : better.get<bool>() ? "good"
                                          : "bad",
                     better.is_null()     ? "not shown"
                     : better.get<bool>() ? "larger"
                                          : "smaller");
}

std::string VolumesTable(const OrderedJson& front) {
  const OrderedJson& policies = front["policies"];
  const auto candidate = EscapeXml(policies.back()["policy"].get<std::string>());
  std::string html = fmt::format(
      "<figure><div class=\"scroll\"><table><thead><tr><th class=\"left\">policy</th>"
      "<th>hypervolume</th><th>{} less this</th><th class=\"left\">{} "
      "is</th></tr></thead><tbody>\n",
      candidate, candidate);
  for (const OrderedJson& policy : policies) {
    const OrderedJson& interval = policy["hypervolume_ci95"];
    html += fmt::format(
        "<tr class=\"part\"><th class=\"left\" scope=\"row\">{}</th><td>{:.3f} [{:.3f}, "
        "{:.3f}]</td>{}</tr>\n",
        EscapeXml(policy["policy"].get<std::string>()), policy["hypervolume"].get<double>(),
        interval[0].get<double>(), interval[1].get<double>(), DifferenceCells(policy));
  }
  return html + "</tbody></table></div></figure>\n";
}

}  // namespace

std::string FrontsHtml(const OrderedJson& fronts) {
  std::string html;
  for (const OrderedJson& front : fronts) {
    const std::string where = fmt::format("{}, {}", front["scenario"].get<std::string>(),
                                          front["place"].get<std::string>());
    html += ReportSection(
                fmt::format("Cost against carbon: {}", where),
                fmt::format("Each dot is a policy at one price of carbon, in the mean of {} "
                            "episodes. The hypervolume is the share of the area up to the worst "
                            "of all dots, and a tenth beyond, that a policy's dots dominate: "
                            "more is better.",
                            front["episodes"].get<int>())) +
            ReportFigure("Everything else a request costs, and the carbon it emits",
                         "The price of each dot is what the objective says of a ton.",
                         FrontFigure(front)) +
            VolumesTable(front);
  }
  return html;
}

}  // namespace rudderfish
