// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/scaling_figures.h"

// Who calls whom as columns from the client to the right: a workload stands as deep as the deepest
// call of it. Within a column, workloads stand near those that call them; a call that passes a
// column by has a lane of its own there.

namespace rudderfish {
namespace {

constexpr double kGraphWidth = 1100, kBoxHeight = 46, kBoxGap = 22, kBoxWidth = 196;
constexpr double kLaneHeight = 14;
constexpr double kWidestFlow = 14, kThinnestFlow = 1.2;

// What stands in a column: a workload's box, or the lane of a call.
struct Place {
  int column = 0;
  double height = kBoxHeight;
  SvgPoint corner;  // Upper left.

  double middle() const { return corner.y + height / 2; }
};

struct GraphLayout {
  std::vector<Place> places;  // Boxes first, in the order of the nodes.
  std::vector<std::vector<int>>
      ways;  // [edge] The places that a call comes through, ends included.
  std::vector<std::vector<int>> columns;
  double height = 0;
};

GraphLayout LayOutColumns(const ScalingSummary& summary) {
  GraphLayout layout;
  for (const ServedNode& node : summary.nodes) layout.places.push_back({.column = node.depth});
  for (const ServedEdge& edge : summary.edges) {
    std::vector<int> way = {edge.from};
    for (int c = summary.nodes[edge.from].depth + 1; c < summary.nodes[edge.to].depth; ++c) {
      way.push_back(static_cast<int>(layout.places.size()));
      layout.places.push_back({.column = c, .height = kLaneHeight});
    }
    way.push_back(edge.to);
    layout.ways.push_back(std::move(way));
  }
  for (size_t p = 0; p < layout.places.size(); ++p) {
    const auto column = static_cast<size_t>(layout.places[p].column);
    if (layout.columns.size() <= column) layout.columns.resize(column + 1);
    layout.columns[column].push_back(static_cast<int>(p));
  }
  return layout;
}

// By the mean height of those before and behind them, a few times over.
GraphLayout LayOut(const ScalingSummary& summary) {
  GraphLayout layout = LayOutColumns(summary);
  std::vector<Place>& places = layout.places;
  const auto filled = [&](const std::vector<int>& column) {
    double sum = 0;
    for (const int place : column) sum += places[place].height;
    return sum;
  };
  for (const auto& column : layout.columns) {
    const double gaps = kBoxGap * (static_cast<double>(column.size()) - 1);
    layout.height = std::max(layout.height, filled(column) + gaps);
  }
  const auto steps = static_cast<double>(layout.columns.size() - 1);
  const double step = steps > 0 ? (kGraphWidth - kBoxWidth) / steps : 0;
  const auto stack = [&] {
    for (const auto& column : layout.columns) {
      const double gap = (layout.height - filled(column)) / static_cast<double>(column.size());
      double y = gap / 2;
      for (const int place : column) {
        places[place].corner = {step * places[place].column, y};
        y += places[place].height + gap;
      }
    }
  };
  stack();
  for (int round = 0; round < 6; ++round) {
    std::vector<double> pull(places.size()), weight(places.size());
    for (const std::vector<int>& way : layout.ways) {
      for (size_t i = 1; i < way.size(); ++i) {
        pull[way[i - 1]] += places[way[i]].middle();
        pull[way[i]] += places[way[i - 1]].middle();
        ++weight[way[i - 1]];
        ++weight[way[i]];
      }
    }
    for (auto& column : layout.columns) {
      std::stable_sort(column.begin(), column.end(), [&](int a, int b) {
        const double x = weight[a] > 0 ? pull[a] / weight[a] : places[a].middle();
        const double y = weight[b] > 0 ? pull[b] / weight[b] : places[b].middle();
        return x < y;
      });
    }
    stack();
  }
  return layout;
}

void DrawNode(const ServedNode& node, const Place& at, double requests_per_s, double most_busy,
              Svg* svg) {
  const double busy = node.slot_s * requests_per_s;
  const std::string calls = fmt::format("{:.3g} calls/s", node.calls_per_request * requests_per_s);
  svg->BeginGroup(node.client ? "client" : "served",
                  node.client ? fmt::format("{}: {:.3g} requests/s", node.name, requests_per_s)
                              : fmt::format("{}: {}, {:.2f} slots busy", node.name, calls, busy));
  svg->Rect(at.corner, kBoxWidth, kBoxHeight, 8, "box");
  svg->Text({at.corner.x + 12, at.corner.y + 19},
            FitText(node.name, 14.2, kBoxWidth - 24, Keep::kBeginning), "row-name");
  svg->Text({at.corner.x + 12, at.corner.y + 35},
            node.client ? fmt::format("{:.3g} requests/s", requests_per_s) : calls, "hint");
  if (!node.client) {
    svg->Text({at.corner.x + kBoxWidth - 12, at.corner.y + 35},
              fmt::format("{:.2f} slots busy", busy), "hint", TextAnchor::kEnd);
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
  const GraphLayout layout = LayOut(summary);
  double most_calls = 0, most_busy = 0;
  std::string description;
  for (const ServedNode& node : summary.nodes)
    most_busy = std::max(most_busy, node.slot_s * requests_per_s);
  for (const ServedEdge& edge : summary.edges) {
    most_calls = std::max(most_calls, edge.calls_per_request);
    description +=
        fmt::format("{} calls {} {:.3g} times a request. ", summary.nodes[edge.from].name,
                    summary.nodes[edge.to].name, edge.calls_per_request);
  }
  Svg svg(kGraphWidth, layout.height + 8, "Call graph", description);
  for (size_t e = 0; e < summary.edges.size(); ++e) {
    const ServedEdge& edge = summary.edges[e];
    const double width =
        std::max(kThinnestFlow, kWidestFlow * std::sqrt(edge.calls_per_request / most_calls));
    svg.BeginGroup(
        "flows", fmt::format("{} \u2192 {}: {:.3g} calls/s", summary.nodes[edge.from].name,
                             summary.nodes[edge.to].name, edge.calls_per_request * requests_per_s));
    const std::vector<int>& way = layout.ways[e];
    for (size_t i = 1; i < way.size(); ++i) {
      const Place &from = layout.places[way[i - 1]], &to = layout.places[way[i]];
      const double left = from.corner.x + kBoxWidth;
      if (i > 1) svg.Flow({from.corner.x, from.middle()}, {left, from.middle()}, width, "flow");
      svg.Flow({left, from.middle()}, {to.corner.x, to.middle()}, width, "flow");
    }
    svg.EndGroup();
  }
  for (size_t n = 0; n < summary.nodes.size(); ++n)
    DrawNode(summary.nodes[n], layout.places[n], requests_per_s, most_busy, &svg);
  return std::move(svg).Finish();
}

}  // namespace rudderfish
