// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/check.h"
#include "report/report_figures.h"
#include "report/svg.h"

namespace rudderfish {
namespace {

constexpr double kPanel = 530;
constexpr double kLegend = kFigureWidth - 300,
                 kLegendRow = 30;  // The rest is for what the bar means.
constexpr double kChip = 30, kChipHeight = 22, kChipGap = 5, kInset = 10;
constexpr int kNodesAcross = 4;    // Nodes side by side in a panel.
constexpr int kNodesShown = 24;    // More than these: only nodes that moves touch.
constexpr int kChipsPerNode = 16;  // More than these: one chip for each workload.
constexpr int kWorkloadColors = 8;
constexpr int kNoColor = -1;

// A pod, or several of one workload, or all those that are not told apart.
struct Chip {
  WorkloadId workload = kNone;
  int count = 1;
  std::string moves;  // "2" or "2,6": the moves that concern the pod; empty if none.
  std::string tooltip;
};

using Chips = std::vector<std::vector<Chip>>;  // [node]

// Two letters that tell workloads apart: of "machine-learning" ml, of "db" db.
std::vector<std::string> WorkloadCodes(const Catalog& catalog) {
  std::vector<std::string> codes;
  for (const Workload& workload : catalog.workloads) {
    std::string code;
    for (size_t i = 0; i < workload.name.size() && code.size() < 2; ++i) {
      const bool starts_word = i == 0 || workload.name[i - 1] == '-' || workload.name[i - 1] == '_';
      if (starts_word) code += workload.name[i];
    }
    if (code.size() < 2) code = workload.name.substr(0, 2);
    codes.push_back(code);
  }
  return codes;
}

// [workload] A colour for each; where there are too many to tell apart, for those that move.
std::vector<int> ColorsOf(const State& state, const EvaluatedEpisode& episode) {
  const int workloads = state.catalog->workload_count();
  std::vector<int> colors(workloads, kNoColor);
  int next = 0;
  if (workloads <= kWorkloadColors) {
    for (int& color : colors) color = next++;
  }
  for (const MadeDecision& decision : episode.decisions) {
    int& color = colors[state.pods.workload[decision.move.pod]];
    if (color == kNoColor && next < kWorkloadColors) color = next++;
  }
  return colors;
}

// Puts all chips of one workload from `first` on into one, and those without colour into another.
void Merge(const State& state, const std::vector<int>& colors, size_t first,
           std::vector<Chip>* chips) {
  std::map<WorkloadId, int> counts;
  int others = 0;
  for (size_t i = first; i < chips->size(); ++i) {
    const WorkloadId workload = (*chips)[i].workload;
    if (colors[workload] == kNoColor) {
      ++others;
    } else {
      ++counts[workload];
    }
  }
  chips->resize(first);
  for (const auto& [workload, count] : counts) {
    chips->push_back({workload, count, "",
                      fmt::format("{} of {}", count, state.catalog->workloads[workload].name)});
  }
  if (others > 0) chips->push_back({kNone, others, "", fmt::format("{} of others", others)});
}

Chips ChipsOf(const State& state, const std::vector<std::string>& moves_of,
              const std::vector<int>& colors) {
  Chips chips(state.nodes.size());
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    const NodeId node = state.pods.node[pod];
    if (node == kNone) continue;
    chips[node].push_back({state.pods.workload[pod], 1, moves_of[pod], PodName(state, pod)});
  }
  const bool many = state.catalog->workload_count() > kWorkloadColors;
  for (std::vector<Chip>& on_node : chips) {
    const auto unmoved = std::stable_partition(
        on_node.begin(), on_node.end(), [](const Chip& chip) { return !chip.moves.empty(); });
    if (many || on_node.size() > kChipsPerNode) {
      Merge(state, colors, unmoved - on_node.begin(), &on_node);
    }
  }
  return chips;
}

// Nodes that stand in the figure, by layer: all, or of many those that moves touch first.
std::vector<std::vector<NodeId>> NodesShown(const State& state, const EvaluatedEpisode& episode) {
  std::vector<bool> shown(state.nodes.size(), state.nodes.size() <= kNodesShown);
  int count = 0;
  for (const MadeDecision& decision : episode.decisions) {
    for (NodeId node : {decision.move.from, decision.move.to}) {
      if (shown[node] || count == kNodesShown) continue;
      shown[node] = true;
      ++count;
    }
  }
  std::vector<std::vector<NodeId>> layers(state.catalog->layer_count());
  for (NodeId node = 0; node < state.nodes.size(); ++node) {
    if (shown[node]) layers[state.kind_of(node).layer].push_back(node);
  }
  return layers;
}

class PlacementMap {
 public:
  PlacementMap(const State& before, const State& after, const EvaluatedEpisode& episode)
      : before_(before),
        after_(after),
        episode_(episode),
        moves_of_(before.pods.size()),
        colors_(ColorsOf(before, episode)),
        codes_(WorkloadCodes(*before.catalog)),
        nodes_(NodesShown(before, episode)) {
    for (size_t i = 0; i < episode.decisions.size(); ++i) {
      std::string& moves = moves_of_[episode.decisions[i].move.pod];
      moves += fmt::format("{}{}", moves.empty() ? "" : ",", i + 1);
    }
    chips_before_ = ChipsOf(before, moves_of_, colors_);
    chips_after_ = ChipsOf(after, moves_of_, colors_);
    for (const std::vector<NodeId>& layer : nodes_) {
      columns_ = std::max(columns_, std::min(static_cast<int>(layer.size()), kNodesAcross));
    }
    ArrangeLegend();
  }

  std::string Draw() {
    const double height = LegendTop() + 24 + (legend_.empty() ? 0 : legend_.back().corner.y);
    Svg svg(kFigureWidth, height, "Pods on nodes before and after", Description());
    DrawPanel(&svg, 0, fmt::format("before: {:.1f} ms", episode_.initial.latency_ms), before_,
              chips_before_, "leaving");
    DrawPanel(&svg, kFigureWidth - kPanel,
              fmt::format("after: {:.1f} ms", episode_.final.latency_ms), after_, chips_after_,
              "arrived");
    DrawLegend(&svg);
    return std::move(svg).Finish();
  }

 private:
  struct LegendEntry {
    WorkloadId workload = kNone;
    SvgPoint corner;  // From the legend's.
  };

  double NodeWidth() const { return (kPanel - 12.0 * (columns_ - 1)) / columns_; }

  int ChipsPerRow() const {
    return std::max(1,
                    static_cast<int>((NodeWidth() - 2 * kInset + kChipGap) / (kChip + kChipGap)));
  }

  // Of all nodes of a row of boxes in both panels, so that they line up.
  double RowHeight(const std::vector<NodeId>& layer, size_t first) const {
    size_t most = 1;
    for (size_t i = first; i < std::min(first + columns_, layer.size()); ++i) {
      most = std::max({most, chips_before_[layer[i]].size(), chips_after_[layer[i]].size()});
    }
    const int rows = (static_cast<int>(most) + ChipsPerRow() - 1) / ChipsPerRow();
    return 44 + rows * (kChipHeight + kChipGap);
  }

  double LayerHeight(const std::vector<NodeId>& layer) const {
    double height = 26;
    for (size_t i = 0; i < layer.size(); i += columns_) height += RowHeight(layer, i) + 12;
    return height;
  }

  double LegendTop() const {
    double top = 50;
    for (const std::vector<NodeId>& layer : nodes_) {
      if (!layer.empty()) top += LayerHeight(layer) + 6;
    }
    return top;
  }

  void DrawPanel(Svg* svg, double left, const std::string& title, const State& state,
                 const Chips& chips, std::string_view moved_css) const {
    svg->Text({left, 18}, title, "panel-title");
    double y = 44;
    for (LayerId id = 0; id < static_cast<LayerId>(nodes_.size()); ++id) {
      const std::vector<NodeId>& layer = nodes_[id];
      if (layer.empty()) continue;
      svg->Text({left, y + 12}, state.catalog->layers[id].name, "layer");
      svg->Line({left + TextWidth(state.catalog->layers[id].name, 13) + 10, y + 8},
                {left + kPanel, y + 8}, "grid");
      double top = y + 26;
      for (size_t i = 0; i < layer.size(); ++i) {
        const double x = left + static_cast<double>(i % columns_) * (NodeWidth() + 12);
        const double height = RowHeight(layer, i - i % columns_);
        DrawNode(svg, {x, top}, height, state, layer[i], chips[layer[i]], moved_css);
        if (i % columns_ == static_cast<size_t>(columns_) - 1) top += height + 12;
      }
      y += LayerHeight(layer) + 6;
    }
  }

  void DrawNode(Svg* svg, SvgPoint corner, double height, const State& state, NodeId node,
                const std::vector<Chip>& chips, std::string_view moved_css) const {
    const double width = NodeWidth();
    const auto used = static_cast<double>(state.nodes.allocatable[node].cpu_millis -
                                          state.nodes.free[node].cpu_millis);
    const double all = std::max(static_cast<double>(state.nodes.allocatable[node].cpu_millis), 1.0);
    svg->BeginGroup("node", fmt::format("{}: {:.1f} of {:.1f} cores requested",
                                        NodeName(state, node), used / 1000, all / 1000));
    svg->Rect(corner, width, height, 7, "box");
    svg->Text({corner.x + kInset, corner.y + 18},
              FitText(NodeName(state, node), 11, width - 2 * kInset, Keep::kEnd), "node-name");
    svg->Rect({corner.x + kInset, corner.y + height - 11}, width - 2 * kInset, 3, 1.5, "meter");
    svg->Rect({corner.x + kInset, corner.y + height - 11},
              (width - 2 * kInset) * std::clamp(used / all, 0.0, 1.0), 3, 1.5, "meter-fill");
    svg->EndGroup();
    for (size_t i = 0; i < chips.size(); ++i) {
      const int row = static_cast<int>(i) / ChipsPerRow();
      const int column = static_cast<int>(i) % ChipsPerRow();
      DrawChip(svg,
               {corner.x + kInset + column * (kChip + kChipGap),
                corner.y + 28 + row * (kChipHeight + kChipGap)},
               chips[i], moved_css);
    }
  }

  void DrawChip(Svg* svg, SvgPoint corner, const Chip& chip, std::string_view moved_css) const {
    const bool moved = !chip.moves.empty();
    const int color = chip.workload == kNone ? kNoColor : colors_[chip.workload];
    const std::string css = color == kNoColor ? "other" : fmt::format("w{}", color);
    std::string code = fmt::format("+{}", chip.count);
    if (chip.workload != kNone) {
      code = chip.count > 1 ? fmt::format("\u00d7{}", chip.count) : codes_[chip.workload];
    }
    svg->BeginGroup(fmt::format("{} {}", css, moved ? moved_css : ""),
                    moved ? fmt::format("{}, move {}", chip.tooltip, chip.moves) : chip.tooltip);
    svg->Rect(corner, kChip, kChipHeight, 5, "pod");
    svg->Text({corner.x + kChip / 2, corner.y + 15}, code, "code", TextAnchor::kMiddle);
    if (moved) {
      const double width = std::max(14.0, TextWidth(chip.moves, 9.5) + 6);
      svg->Rect({corner.x + kChip + 6 - width, corner.y - 6}, width, 14, 7, "badge");
      svg->Text({corner.x + kChip + 6 - width / 2, corner.y + 4.5}, chip.moves, "badge-text",
                TextAnchor::kMiddle);
    }
    svg->EndGroup();
  }

  // Every workload of which a chip is seen, in rows.
  void ArrangeLegend() {
    std::vector<bool> seen(before_.catalog->workload_count());
    for (const std::vector<NodeId>& layer : nodes_) {
      for (NodeId node : layer) {
        for (const Chips* chips : {&chips_before_, &chips_after_}) {
          for (const Chip& chip : (*chips)[node]) {
            if (chip.workload != kNone) seen[chip.workload] = true;
          }
        }
      }
    }
    SvgPoint at;
    for (WorkloadId w = 0; w < before_.catalog->workload_count(); ++w) {
      if (!seen[w]) continue;
      const double width = kChip + 8 + TextWidth(before_.catalog->workloads[w].name, 13) + 22;
      if (at.x > 0 && at.x + width > kLegend) at = {0, at.y + kLegendRow};
      legend_.push_back({w, at});
      at.x += width;
    }
  }

  void DrawLegend(Svg* svg) const {
    const double y = LegendTop();
    for (const LegendEntry& entry : legend_) {
      const std::string& name = before_.catalog->workloads[entry.workload].name;
      const SvgPoint corner{entry.corner.x, y + entry.corner.y};
      DrawChip(svg, corner, {entry.workload, 1, "", name}, "");
      svg->Text({corner.x + kChip + 8, corner.y + 15}, name, "name");
    }
    int hidden = before_.nodes.size();
    for (const std::vector<NodeId>& layer : nodes_) hidden -= static_cast<int>(layer.size());
    svg->Text({kFigureWidth, y + 15},
              hidden > 0
                  ? fmt::format("bar: share of cores requested; {} more nodes not shown", hidden)
                  : std::string("bar: share of the node's cores requested"),
              "hint", TextAnchor::kEnd);
  }

  std::string Description() const {
    std::string text;
    for (const MadeDecision& decision : episode_.decisions) {
      text += fmt::format("{} from {} to {}. ", decision.pod, decision.from, decision.to);
    }
    return text;
  }

  const State& before_;
  const State& after_;
  const EvaluatedEpisode& episode_;
  std::vector<std::string> moves_of_;  // [pod]
  std::vector<int> colors_;            // [workload]
  std::vector<std::string> codes_;     // [workload]
  std::vector<std::vector<NodeId>> nodes_;
  Chips chips_before_, chips_after_;
  std::vector<LegendEntry> legend_;
  int columns_ = 1;
};

}  // namespace

std::string PlacementFigure(const State& start, const EvaluatedEpisode& episode) {
  State after = start;
  for (const MadeDecision& decision : episode.decisions) {
    MovePod(decision.move.pod, decision.move.to, &after);
  }
  return PlacementMap(start, after, episode).Draw();
}

const EvaluatedEpisode* TypicalEpisode(const Evaluation& evaluation, int policy) {
  std::vector<const EvaluatedEpisode*> moved;
  for (const EvaluatedEpisode& episode : evaluation.policies[policy].episodes) {
    if (episode.training_seed == 0 && !episode.decisions.empty()) moved.push_back(&episode);
  }
  if (moved.empty()) return nullptr;
  const auto gain = [](const EvaluatedEpisode* e) {
    return e->initial.latency_ms - e->final.latency_ms;
  };
  std::stable_sort(
      moved.begin(), moved.end(),
      [&](const EvaluatedEpisode* a, const EvaluatedEpisode* b) { return gain(a) < gain(b); });
  return moved[moved.size() / 2];
}

}  // namespace rudderfish
