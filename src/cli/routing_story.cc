// SPDX-License-Identifier: Apache-2.0
#include "cli/routing_story.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/text_table.h"
#include "cli/controller_client.h"
#include "cli/decision_text.h"
#include "cli/standing_text.h"
#include "cli/terminal.h"
#include "control/routing_decision_json.h"
#include "task/split_prediction.h"

namespace rudderfish {
namespace {

constexpr double kSeen = 0.0005;  // Of a share: less is no change.
constexpr int kStoryColumns = 100;
constexpr const char* kPartColumns[SplitPrediction::kParts] = {"NODES", "EGRESS", "CARBON", "LATE",
                                                               "WAIT"};

using Align = TextTable::Align;

std::string PercentText(double share) { return fmt::format("{:.4g} %", 100 * share); }

std::string UnitsText(double units) {
  return std::isfinite(units) ? fmt::format("{:.3f}", units) : "-";
}

double Sum(const std::vector<double>& parts) {
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

std::string RouteHeadline(const RoutingDecision& row) {
  const std::string subject = row.capacity ? row.route : "route " + row.route;
  const std::string allowed = SharesText(row, &RoutedRegion::allowed);
  switch (row.fate) {
    case Fate::kRecorded:
      return fmt::format("{} would be set to {} ({}: nothing was touched)", subject, allowed,
                         row.mode);
    case Fate::kRefused:
      return fmt::format("{} is not changed: {}", subject, row.verdict.reason);
    case Fate::kFailed:
      return fmt::format("{} was not set to {}: {}", subject, allowed, row.failure);
    case Fate::kDone:
      return fmt::format("{} was set to {}", subject, allowed);
    case Fate::kInFlight:
      return fmt::format("{} is being set to {}", subject, allowed);
    case Fate::kStayed:
      return fmt::format("{} stays: {} is what is wanted and allowed", subject, allowed);
    case Fate::kUnknown:
      break;
  }
  return fmt::format("{}: the controller exited before it learned the outcome", subject);
}

// The region that gains most, against the one that loses most: what makes the difference.
std::string WhyShift(const RoutingDecision& row) {
  const RoutedRegion *up = nullptr, *down = nullptr;
  for (const RoutedRegion& one : row.regions) {
    const double change = one.wanted - one.now;
    if (change > kSeen && (up == nullptr || change > up->wanted - up->now)) up = &one;
    if (change < -kSeen && (down == nullptr || change < down->wanted - down->now)) down = &one;
  }
  if (up == nullptr || down == nullptr) return "";
  if (!down->is_healthy) return fmt::format("Why: {} is not healthy.", down->region);
  if (up->one_more.size() != SplitPrediction::kParts ||
      down->one_more.size() != up->one_more.size())
    return "";
  int largest = 0;
  for (int i = 1; i < SplitPrediction::kParts; ++i) {
    const auto gain = [&](int part) {
      return down->one_more[static_cast<size_t>(part)] - up->one_more[static_cast<size_t>(part)];
    };
    if (gain(i) > gain(largest)) largest = i;
  }
  const auto at = static_cast<size_t>(largest);
  const double difference = down->one_more[at] - up->one_more[at];
  return fmt::format(
      "Why: one request more costs {} units in {} and {} in {}{}.", UnitsText(Sum(down->one_more)),
      down->region, UnitsText(Sum(up->one_more)), up->region,
      difference > 0 ? fmt::format("; most of the difference is {}, {} higher",
                                   SplitPartName(largest), UnitsText(difference))
                     : "; the policy wants it for another reason, as it looks ahead");
}

std::string RegionTable(const RoutingDecision& row) {
  std::vector<TextTable::Column> columns{
      {"  REGION"}, {"NOW", Align::kRight}, {"WANTED", Align::kRight}, {"ALLOWED", Align::kRight}};
  if (!row.baseline.empty()) columns.push_back({"BASELINE", Align::kRight});
  columns.push_back({"HEALTHY"});
  columns.push_back({"ONE MORE", Align::kRight});
  for (int i = 0; i < SplitPrediction::kParts; ++i) {
    columns.push_back({kPartColumns[i], Align::kRight});
  }
  TextTable table(std::move(columns));
  for (const RoutedRegion& one : row.regions) {
    std::vector<std::string> cells{"  " + one.region, PercentText(one.now), PercentText(one.wanted),
                                   PercentText(one.allowed)};
    if (!row.baseline.empty()) cells.push_back(PercentText(one.baseline));
    cells.emplace_back(one.is_healthy ? "yes" : "no");
    cells.push_back(one.one_more.empty() ? "-" : UnitsText(Sum(one.one_more)));
    for (size_t i = 0; i < SplitPrediction::kParts; ++i)
      cells.push_back(i < one.one_more.size() ? UnitsText(one.one_more[i]) : "-");
    table.Row(std::move(cells));
  }
  return table.Text();
}

std::string LatencyLine(const RoutingDecision& row) {
  if (row.predicted_now_ms <= 0) return "";
  std::string text = fmt::format("response time: {:.1f} ms now by the Model", row.predicted_now_ms);
  if (row.measured_now_ms) text += fmt::format(", {:.1f} ms measured", *row.measured_now_ms);
  text += fmt::format("; {:.1f} ms predicted for what is allowed", row.predicted_ms);
  if (row.measured_ms) text += fmt::format(", {:.1f} ms measured afterwards", *row.measured_ms);
  return text + "\n";
}

std::string RoutingEvidenceText(const OrderedJson& evidence) {
  std::string text;
  const auto percent = [](const OrderedJson& sum) {
    if (sum["count"].get<int64_t>() == 0) return std::string("not measured");
    const double mean = 100 * sum["mean"].get<double>();
    if (sum["interval95"].is_null()) return fmt::format("{:+.1f} %", mean);
    return fmt::format("{:+.1f} % [{:+.1f}, {:+.1f}]", mean,
                       100 * sum["interval95"][0].get<double>(),
                       100 * sum["interval95"][1].get<double>());
  };
  for (const OrderedJson& one : evidence["routes"]) {
    text += fmt::format(
        "shadowed   {}: {} decisions; {} would change the split and gain {:.3g} units a request; "
        "the Model's response time against the measured one {}\n",
        one["route"].get<std::string>(), one["decisions"].dump(),
        one["predicted_gain"]["count"].dump(), one["predicted_gain"]["mean"].get<double>(),
        percent(one["model_error"]));
    if (!one.contains("changes")) continue;
    const OrderedJson& changes = one["changes"];
    text +=
        fmt::format("set        {}: {} splits, {} could not be; measured against predicted {}\n",
                    one["route"].get<std::string>(), changes["set"].dump(),
                    changes["not_set"].dump(), percent(changes["beyond_predicted"]));
  }
  return text;
}

std::string OfShares(const OrderedJson& shares) {
  std::string text;
  for (const auto& [region, share] : shares.items())
    text += fmt::format("{}{} {:.4g}", text.empty() ? "" : ", ", region, 100 * share.get<double>());
  return text.empty() ? "-" : text;
}

std::string CapacityText(const OrderedJson& capacity) {
  if (capacity.empty()) return "";
  TextTable fleets({{"CAPACITY"},
                    {"OF"},
                    {"READY", Align::kRight},
                    {"STARTING", Align::kRight},
                    {"AIM", Align::kRight}});
  const auto count = [](const OrderedJson& value) { return value.is_null() ? "-" : value.dump(); };
  for (const OrderedJson& one : capacity) {
    const auto service = one.value("service", "");
    fleets.Row({one["region"].get<std::string>() + (service.empty() ? "" : "/" + service),
                one["target"].get<std::string>(), count(one["ready"]), count(one["starting"]),
                count(one["aim"])});
  }
  return "\n" + fleets.Text();
}

}  // namespace

std::string SharesText(const RoutingDecision& decision, double RoutedRegion::*share) {
  if (decision.capacity) {
    const RoutedCapacity& capacity = *decision.capacity;
    const int count = share == &RoutedRegion::now      ? capacity.now
                      : share == &RoutedRegion::wanted ? capacity.wanted
                                                       : capacity.allowed;
    return Counted(count, capacity.unit);
  }
  std::string text;
  for (const RoutedRegion& one : decision.regions)
    text += fmt::format("{}{} {:.4g}", text.empty() ? "" : ", ", one.region, 100 * one.*share);
  return text;
}

std::string RoutingStory(const StoredRouting& stored, UnixMillis now) {
  const RoutingDecision& row = stored.row;
  std::string text = fmt::format("{}\n", Bold(RouteHeadline(row)));
  text += fmt::format("decision {} of {}, {} ago ({} UTC), by {}\n\n", stored.number, row.target,
                      Age(stored.written_at, now), DateAndTime(stored.written_at), row.policy);
  if (const std::string why = WhyShift(row); !why.empty()) text += Paragraph(why, kStoryColumns);
  if (row.predicted_now_ms > 0) {
    text += fmt::format("gain: {:+.3g} units a request against what stands", row.gain);
    if (row.gain_over_baseline)
      text += fmt::format(", {:+.3g} against {}", *row.gain_over_baseline, row.baseline);
    text += fmt::format("; {:.1f} requests a second\n", row.demand_per_s);
  }
  text += LatencyLine(row);
  for (const std::string& reason : row.reasons) text += fmt::format("guard: {}\n", reason);
  if (row.capacity) {
    return text + fmt::format("{}s: {} ready or starting, {} wanted, {} allowed\n",
                              row.capacity->unit, row.capacity->now, row.capacity->wanted,
                              row.capacity->allowed);
  }
  text += fmt::format("\nRegions, and what one request more would cost there, in units:\n{}",
                      RegionTable(row));
  if (!row.request.empty()) {
    const bool is_unsent = row.fate == Fate::kRecorded || row.fate == Fate::kRefused;
    text += fmt::format("\nThe request{}:\n{}", is_unsent ? ", not sent" : "", row.request);
    if (text.back() != '\n') text += '\n';
  }
  return text;
}

OrderedJson RoutingDetails(const StoredRouting& stored) {
  OrderedJson json = OrderedJson::parse(ToJson(stored.row));
  for (const char* known : {"mode", "policy", "allowed", "reason", "gain"}) json.erase(known);
  json["measured_ms"] =
      stored.row.measured_ms ? OrderedJson(*stored.row.measured_ms) : OrderedJson(nullptr);
  json["gain_units"] = stored.row.gain;
  return json;
}

std::string RoutingText(const OrderedJson& routing) {
  const auto baseline = routing["baseline"].get<std::string>();
  std::string text =
      fmt::format("routing    {}; policy {}{}\n", ModeText(routing),
                  routing["policy"].get<std::string>(),
                  baseline.empty() ? "" : fmt::format("; baseline for comparison: {}", baseline)) +
      StandingText(routing["standing"], RoutingEvidenceText) + "\n";
  TextTable routes({{"ROUTE"}, {"NOW"}, {"WANTED"}, {"LAST DECISION"}, {"READ", Align::kRight}});
  std::string problems;
  for (const OrderedJson& one : routing["routes"]) {
    routes.Row({one["name"].get<std::string>(), OfShares(one["split"]), OfShares(one["wanted"]),
                one.contains("fate") ? one["fate"].get<std::string>() : "-",
                one["read_age_s"].is_null()
                    ? "never"
                    : fmt::format("{:.1f} s ago", one["read_age_s"].get<double>())});
    const auto problem = one["problem"].get<std::string>();
    if (!problem.empty())
      problems += fmt::format("route {}: {}\n", one["name"].get<std::string>(), problem);
    for (const OrderedJson& note : one["notes"]) {
      problems +=
          fmt::format("route {}: {}\n", one["name"].get<std::string>(), note.get<std::string>());
    }
  }
  const auto service_of = [](const OrderedJson& one) { return one.value("service", ""); };
  const auto& listed = routing["regions"];
  const bool share = !listed.empty() && !service_of(listed[0]).empty();  // Several share nodes.
  TextTable regions({{share ? "SERVICE AND REGION" : "REGION"},
                     {"DEMAND", Align::kRight},
                     {"LOAD", Align::kRight},
                     {share ? "PODS" : "NODES", Align::kRight},
                     {"WANTED", Align::kRight},
                     {"LATENCY", Align::kRight},
                     {"HEALTHY"}});
  const auto known = [](const OrderedJson& value, const std::string& unit) {
    return value.is_null() ? "-" : fmt::format("{:.1f}{}", value.get<double>(), unit);
  };
  for (const OrderedJson& one : routing["regions"]) {
    const OrderedJson& healthy = one["healthy"];
    const auto name = one["name"].get<std::string>();
    regions.Row({share ? service_of(one) + " " + name : name, known(one["demand_per_s"], "/s"),
                 known(one["load_per_s"], "/s"),
                 one["ready_nodes"].is_null() ? "-" : one["ready_nodes"].dump(),
                 one["wanted_nodes"].is_null() ? "-" : one["wanted_nodes"].dump(),
                 known(one["latency_ms"], " ms"),
                 healthy.is_null()     ? "-"
                 : healthy.get<bool>() ? "yes"
                                       : "no"});
  }
  text += routes.Text() + "\n" + regions.Text() + CapacityText(routing["capacity"]) +
          SignalsText(routing["signals"]);
  for (const OrderedJson& one : routing["capacity"]) {
    if (const auto why = one["problem"].get<std::string>(); !why.empty())
      problems += fmt::format("capacity of {}: {}\n", one["region"].get<std::string>(), why);
  }
  for (const OrderedJson& one : routing["signal_troubles"])
    problems += fmt::format("signal {}\n", one.get<std::string>());
  const auto problem = routing["problem"].get<std::string>();
  if (!problem.empty()) problems += fmt::format("{}; the splits that stand are kept\n", problem);
  return text + (problems.empty() ? "" : "\n" + problems);
}

}  // namespace rudderfish
