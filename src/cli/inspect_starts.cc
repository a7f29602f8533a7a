// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"
#include "base/json.h"
#include "base/text_table.h"
#include "cli/inspection.h"
#include "cli/output.h"
#include "scenario/start_states.h"

namespace rudderfish {
namespace {

using Align = TextTable::Align;

struct Range {
  double low = 1e300, high = -1e300;

  void Add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  std::string Text(int decimals) const {
    if (low == high) return fmt::format("{:.{}f}", low, decimals);
    return fmt::format("{:.{}f} to {:.{}f}", low, decimals, high, decimals);
  }
  OrderedJson ToJson() const { return OrderedJson::array({low, high}); }
};

// Lines of one configuration and pattern.
struct Group {
  int64_t lines = 0;
  Range nodes, pods, cpu_free, memory_free_gib, latency_ms;
};

struct Summary {
  int64_t lines = 0;
  std::map<std::pair<std::string, std::string>, Group> groups;  // By config and pattern.
  std::set<std::string> further_keys;
};

constexpr std::string_view kKnownKeys[] = {"config", "pattern", "latency_between_layer", "nodes",
                                           "pods"};

Result<void> AddLine(const JsonReader& root, Summary* summary) {
  TRY_ASSIGN(const JsonReader config, root.At("config"));
  TRY_ASSIGN(const std::string config_name, config.AsString());
  TRY_ASSIGN(const JsonReader pattern, root.At("pattern"));
  TRY_ASSIGN(const std::string pattern_name, pattern.AsString());
  Group& group = summary->groups[{config_name, pattern_name}];
  ++group.lines;
  ++summary->lines;

  TRY_ASSIGN(const JsonReader nodes, root.At("nodes"));
  TRY_ASSIGN(const std::vector<JsonReader> node_list, nodes.Elements());
  group.nodes.Add(static_cast<double>(node_list.size()));
  double cpu = 0, memory = 0;
  std::set<std::string> names;
  for (const JsonReader& node : node_list) {
    TRY_ASSIGN(const JsonReader name, node.At("name"));
    TRY_ASSIGN(std::string node_name, name.AsString());
    names.insert(std::move(node_name));
    TRY_ASSIGN(const FreeOfNode free, ReadFreeOfNode(node));
    cpu += free.cores;
    memory += free.gib;
  }
  group.cpu_free.Add(cpu);
  group.memory_free_gib.Add(memory);
  TRY_ASSIGN(const JsonReader pods, root.At("pods"));
  TRY_ASSIGN(const std::vector<JsonReader> pod_list, pods.Elements());
  group.pods.Add(static_cast<double>(pod_list.size()));
  for (const JsonReader& pod : pod_list) {
    TRY_ASSIGN(const JsonReader node, pod.At("node"));
    TRY_ASSIGN(const std::string name, node.AsString());
    if (!names.contains(name))
      return node.Refuse(fmt::format("no node of the line is called \"{}\"", name));
  }

  TRY_ASSIGN(const JsonReader latency, root.At("latency_between_layer"));
  TRY_ASSIGN(const auto rows, latency.Members());
  for (const auto& [from, row] : rows) {
    TRY_ASSIGN(const auto cells, row.Members());
    for (const auto& [to, cell] : cells) {
      TRY_ASSIGN(const double ms, cell.AsDouble());
      group.latency_ms.Add(ms);
    }
  }
  TRY_ASSIGN(const auto members, root.Members());
  for (const auto& [key, value] : members) {
    const bool known =
        std::find(std::begin(kKnownKeys), std::end(kKnownKeys), key) != std::end(kKnownKeys);
    if (!known) summary->further_keys.insert(key);
  }
  return {};
}

Result<Summary> Summarize(const std::filesystem::path& path) {
  TRY_ASSIGN(const std::string text, ReadFile(path));
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return Invalid("{}: is empty; expected one start state a line", path.string());
  }
  Summary summary;
  int number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string where = fmt::format("{}:{}", path.string(), number);
    TRY_ASSIGN(const Json line, ParseJsonLine(std::string_view(text).substr(begin, end - begin),
                                              path.string(), number));
    TRY(AddLine(JsonReader(line, where), &summary));
    begin = end + 1;
  }
  return summary;
}

std::string AsJson(const std::filesystem::path& path, const Summary& summary) {
  OrderedJson json{{"kind", "start_states"}, {"file", path.string()}, {"lines", summary.lines}};
  OrderedJson& groups = json["groups"] = OrderedJson::array();
  for (const auto& [key, group] : summary.groups) {
    groups.push_back({{"config", key.first},
                      {"pattern", key.second},
                      {"lines", group.lines},
                      {"nodes", group.nodes.ToJson()},
                      {"pods", group.pods.ToJson()},
                      {"cpu_free", group.cpu_free.ToJson()},
                      {"mem_free", group.memory_free_gib.ToJson()},
                      {"latency_between_layer", group.latency_ms.ToJson()}});
  }
  json["further_keys"] = summary.further_keys;
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace

Result<std::string> InspectStartStates(const std::filesystem::path& path, OutputFormat format) {
  TRY_ASSIGN(const Summary summary, Summarize(path));
  if (format == OutputFormat::kJson) return AsJson(path, summary);
  std::string text =
      fmt::format("{}: {}\n\n", path.string(), Counted(summary.lines, "start state"));
  TextTable table({{"CONFIG"},
                   {"PATTERN"},
                   {"STARTS", Align::kRight},
                   {"NODES", Align::kRight},
                   {"PODS", Align::kRight},
                   {"CORES FREE", Align::kRight},
                   {"GiB FREE", Align::kRight},
                   {"LATENCY BETWEEN LAYERS ms", Align::kRight}},
                  2);
  for (const auto& [key, group] : summary.groups) {
    table.Row({key.first, key.second, Grouped(group.lines), group.nodes.Text(0), group.pods.Text(0),
               group.cpu_free.Text(1), group.memory_free_gib.Text(1), group.latency_ms.Text(1)});
  }
  text += table.Text();
  if (!summary.further_keys.empty()) {
    std::string keys;
    for (const std::string& key : summary.further_keys) keys += (keys.empty() ? "" : ", ") + key;
    text += fmt::format("\nFurther keys, which are not read: {}\n", keys);
  }
  return text;
}

}  // namespace rudderfish
