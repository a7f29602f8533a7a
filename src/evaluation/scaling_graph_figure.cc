// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "evaluation/scaling_figures.h"

// Who calls whom as columns from the client to the right: a workload stands as deep as the deepest
// call of it. Within a column, workloads stand near those that call them.

namespace rudderfish {
namespace {

constexpr double kGraphWidth = 1100, kBoxHeight = 46, kBoxGap = 22, kBoxWidth = 178;
constexpr double kWidestFlow = 14, kThinnestFlow = 1.2;

struct PlacedNode {
  SvgPoint corner;  // Upper left.

  double middle() const { return corner.y + kBoxHeight / 2; }
};

// [depth] Nodes from top to bottom.
std::vector<std::vector<int>> ColumnsOf(const ScalingSummary& summary) {
  int deepest = 0;
  for (const ServedNode& node : summary.nodes) deepest = std::max(deepest, node.depth);
  std::vector<std::vector<int>> columns(deepest + 1);
  for (size_t n = 0; n < summary.nodes.size(); ++n)
    columns[summary.nodes[n].depth].push_back(static_cast<int>(n));
  return columns;
}

// By the mean height of their callers and of those they call, a few times over.
std::vector<PlacedNode> PlaceNodes(const ScalingSummary& summary, double* height) {
  std::vector<std::vector<int>> columns = ColumnsOf(summary);
  size_t tallest = 1;
  for (const auto& column : columns) tallest = std::max(tallest, column.size());
  *height = static_cast<double>(tallest) * (kBoxHeight + kBoxGap) - kBoxGap;
  const double step =
      columns.size() > 1 ? (kGraphWidth - kBoxWidth) / static_cast<double>(columns.size() - 1) : 0;
  std::vector<PlacedNode> placed(summary.nodes.size());
  const auto place = [&] {
    for (size_t c = 0; c < columns.size(); ++c) {
      const auto count = static_cast<double>(columns[c].size());
      const double gap = (*height - count * kBoxHeight) / count;
      double y = gap / 2;
      for (const int node : columns[c]) {
        placed[node].corner = {step * static_cast<double>(c), y};
        y += kBoxHeight + gap;
      }
    }
  };
  place();
  for (int round = 0; round < 6; ++round) {
    std::vector<double> pull(summary.nodes.size()), weight(summary.nodes.size());
    for (const ServedEdge& edge : summary.edges) {
      pull[edge.from] += placed[edge.to].middle();
      pull[edge.to] += placed[edge.from].middle();
      ++weight[edge.from];
      ++weight[edge.to];
    }
    for (auto& column : columns) {
      std::stable_sort(column.begin(), column.end(), [&](int a, int b) {
        const double x = weight[a] > 0 ? pull[a] / weight[a] : placed[a].middle();
        const double y = weight[b] > 0 ? pull[b] / weight[b] : placed[b].middle();
        return x < y;
      });
    }
    place();
  }
  return placed;
}

void DrawNode(const ServedNode& node, const PlacedNode& at, double requests_per_s, double most_busy,
              Svg* svg) {
  const double busy = node.slot_s * requests_per_s;
  const std::string calls = fmt::format("{:.3g} calls/s", node.calls_per_request * requests_per_s);
  svg->BeginGroup(node.client ? "client" : "served",
                  node.client ? fmt::format("{}: {:.3g} requests/s", node.name, requests_per_s)
                              : fmt::format("{}: {}, {:.2f} slots busy", node.name, calls, busy));
  svg->Rect(at.corner, kBoxWidth, kBoxHeight, 8, "box");
  svg->Text({at.corner.x + 12, at.corner.y + 19},
            FitText(node.name, 12, kBoxWidth - 18, Keep::kBeginning), "row-name");
  svg->Text({at.corner.x + 12, at.corner.y + 35},
            node.client ? fmt::format("{:.3g} requests/s", requests_per_s) : calls, "hint");
  if (!node.client) {
    svg->Text({at.corner.x + kBoxWidth - 12, at.corner.y + 35}, fmt::format("{:.2f} busy", busy),
              "hint", TextAnchor::kEnd);
    svg->Rect({at.corner.x, at.corner.y + kBoxHeight - 4}, kBoxWidth, 4, 2, "meter");
    if (most_busy > 0 && busy > 0) {
      svg->Rect({at.corner.x, at.corner.y + kBoxHeight - 4},
                std::max(2.0, kBoxWidth * busy / most_busy), 4, 2, "meter-busy");
    }
  }
  svg->EndGroup();
}

}  // namespace

std::string CallGraphFigure(const ScalingSummary& summary, double requests_per_s) {
  double height = 0, most_calls = 0, most_busy = 0;
  const std::vector<PlacedNode> placed = PlaceNodes(summary, &height);
  std::string description;
  for (const ServedNode& node : summary.nodes)
    most_busy = std::max(most_busy, node.slot_s * requests_per_s);
  for (const ServedEdge& edge : summary.edges) {
    most_calls = std::max(most_calls, edge.calls_per_request);
    description +=
        fmt::format("{} calls {} {:.3g} times a request. ", summary.nodes[edge.from].name,
                    summary.nodes[edge.to].name, edge.calls_per_request);
  }
  Svg svg(kGraphWidth, height + 8, "Call graph", description);
  for (const ServedEdge& edge : summary.edges) {
    const PlacedNode &from = placed[edge.from], &to = placed[edge.to];
    const double width =
        std::max(kThinnestFlow, kWidestFlow * std::sqrt(edge.calls_per_request / most_calls));
    svg.BeginGroup(
        "flows", fmt::format("{} \u2192 {}: {:.3g} calls/s", summary.nodes[edge.from].name,
                             summary.nodes[edge.to].name, edge.calls_per_request * requests_per_s));
    svg.Flow({from.corner.x + kBoxWidth, from.middle()}, {to.corner.x, to.middle()}, width, "flow");
    svg.EndGroup();
  }
  for (size_t n = 0; n < summary.nodes.size(); ++n)
    DrawNode(summary.nodes[n], placed[n], requests_per_s, most_busy, &svg);
  return std::move(svg).Finish();
}

}  // namespace rudderfish
