// SPDX-License-Identifier: Apache-2.0
#include "cloud/data_path.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/suggest.h"
#include "base/text_table.h"

namespace rudderfish {
namespace {

std::string_view StateName(RegionState state) {
  switch (state) {
    case RegionState::kHealthy:
      return "healthy";
    case RegionState::kUnhealthy:
      return "unhealthy";
    case RegionState::kUnseen:
      break;
  }
  return "unknown";
}

// In the order of the backends.
Result<std::vector<double>> WantedShares(const std::vector<WeightedBackend>& backends,
                                         const std::vector<RegionShare>& wanted) {
  std::vector<std::string> known;
  for (const WeightedBackend& one : backends) known.push_back(one.region);
  for (const RegionShare& one : wanted) {
    if (std::find(known.begin(), known.end(), one.region) != known.end()) continue;
    return Invalid(
        "no backend is the region {}; there are {}{}", one.region, fmt::join(known, ", "),
        DidYouMean(one.region, std::vector<std::string_view>(known.begin(), known.end())));
  }
  std::vector<double> shares;
  for (const WeightedBackend& backend : backends) {
    const auto one = std::find_if(wanted.begin(), wanted.end(), [&](const RegionShare& share) {
      return share.region == backend.region;
    });
    if (one == wanted.end())
      return Invalid("the split names no share for {}; 0 takes it out", backend.region);
    shares.push_back(one->share);
  }
  return shares;
}

}  // namespace

std::vector<double> SharesOf(const std::vector<WeightedBackend>& backends) {
  double sum = 0;
  for (const WeightedBackend& one : backends) sum += one.weight;
  std::vector<double> shares;
  for (const WeightedBackend& one : backends)
    shares.push_back(sum > 0 ? one.weight / sum : 1.0 / static_cast<double>(backends.size()));
  return shares;
}

Result<EnactedSplit> EnactSplit(DataPath* path, const std::vector<RegionShare>& wanted,
                                const SplitLimits& limits, Enacting enacting) {
  EnactedSplit split{.path = path->name()};
  TRY_ASSIGN(split.before, path->Read());
  TRY_ASSIGN(const std::vector<double> shares, WantedShares(split.before, wanted));
  std::vector<std::string> regions;
  std::vector<RegionState> states;
  for (const WeightedBackend& one : split.before) {
    regions.push_back(one.region);
    states.push_back(one.state);
  }
  if (limits.floor * static_cast<double>(regions.size()) > 1) {
    return Invalid("a floor of {} for each of {} regions is more than all requests",
                   ShareText(limits.floor), regions.size());
  }
  const std::vector<double> now = SharesOf(split.before);
  split.guarded =
      GuardSplit({.regions = regions, .now = now, .wanted = shares, .states = states}, limits);
  if (split.guarded.held) return split;
  split.weights = WeightsOf(split.guarded.shares, path->weight_total());
  // The same shares in other numbers change nothing.
  if (WeightsOf(now, path->weight_total()) == split.weights) {
    split.weights.clear();
    return split;
  }
  TRY_ASSIGN(split.request, path->RequestOf(split.weights));
  if (enacting == Enacting::kDryRun) return split;
  TRY(path->Write(split.weights));
  TRY_ASSIGN(split.after, path->Read());
  for (size_t i = 0; i < split.weights.size(); ++i) {
    if (i < split.after.size() && split.after[i].name == split.before[i].name &&
        split.after[i].weight == split.weights[i])
      continue;
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: {} was given the weight {} and has {} now; somebody else writes there, too",
                split.path, split.before[i].name, split.weights[i],
                i < split.after.size() ? fmt::format("{}", split.after[i].weight) : "none");
  }
  return split;
}

std::string SplitText(const EnactedSplit& split) {
  using Align = TextTable::Align;
  const std::vector<double> now = SharesOf(split.before);
  std::vector<TextTable::Column> columns = {
      {"REGION"}, {"BACKEND"}, {"HEALTH"}, {"WEIGHT", Align::kRight}, {"SHARE", Align::kRight}};
  if (!split.weights.empty()) {
    columns.push_back({"NEW WEIGHT", Align::kRight});
    columns.push_back({"NEW SHARE", Align::kRight});
  }
  TextTable table(columns, 2);
  for (size_t i = 0; i < split.before.size(); ++i) {
    const WeightedBackend& one = split.before[i];
    std::vector<std::string> row = {one.region, one.name, std::string(StateName(one.state)),
                                    fmt::format("{}", one.weight), ShareText(now[i])};
    if (!split.weights.empty()) {
      row.push_back(fmt::format("{}", split.weights[i]));
      row.push_back(ShareText(split.guarded.shares[i]));
    }
    table.Row(std::move(row));
  }
  std::string text = split.path + "\n\n" + table.Text();
  if (!split.guarded.notes.empty()) text += "\n";
  for (const std::string& note : split.guarded.notes) text += note + "\n";
  return text;
}

OrderedJson SplitJson(const EnactedSplit& split) {
  const std::vector<double> now = SharesOf(split.before);
  OrderedJson backends = OrderedJson::array();
  for (size_t i = 0; i < split.before.size(); ++i) {
    const WeightedBackend& one = split.before[i];
    OrderedJson backend{{"region", one.region},
                        {"backend", one.name},
                        {"health", StateName(one.state)},
                        {"weight", one.weight},
                        {"share", now[i]}};
    backend["new_weight"] =
        split.weights.empty() ? OrderedJson(nullptr) : OrderedJson(split.weights[i]);
    backend["new_share"] = split.weights.empty() || split.guarded.shares.empty()
                               ? OrderedJson(nullptr)
                               : OrderedJson(split.guarded.shares[i]);
    backends.push_back(std::move(backend));
  }
  return {{"schema_version", 1},
          {"path", split.path},
          {"backends", std::move(backends)},
          {"notes", split.guarded.notes},
          {"request", split.request.empty() ? OrderedJson(nullptr) : OrderedJson(split.request)},
          {"written", split.written()}};
}

}  // namespace rudderfish
