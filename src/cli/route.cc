// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/one_line.h"
#include "base/text_table.h"
#include "cli/cluster_source.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "cloud/data_path.h"

// `route` shows and sets the split of a service's requests between regions by hand, through the
// guard and the enactors that decisions about routing take.

namespace rudderfish {
namespace {

constexpr Duration kReadNow{};  // How old signals are that were read for this command.

// What the options name, and what it needs to be asked.
struct RouteTarget {
  std::optional<ClusterConnection> cluster;
  std::unique_ptr<SplitEnactor> enactor;
};

// The one that names the data path.
Result<std::string_view> PathOption(const Arguments& arguments) {
  std::string_view named;
  std::vector<std::string_view> options(kObjectPaths.begin(), kObjectPaths.end());
  options.push_back("haproxy");
  for (const std::string_view option : options) {
    if (!arguments.Has(option)) continue;
    if (!named.empty()) TRY(arguments.Exclude(named, option));
    named = option;
  }
  if (!named.empty()) return named;
  return Invalid("name what routes the requests: --haproxy SOCKET, or --{} NAMESPACE/NAME",
                 fmt::join(kObjectPaths, ", --"));
}

Result<DataPath> ObjectPathOf(const Arguments& arguments, std::string_view option) {
  std::optional<int> rule;
  if (arguments.Has("rule")) {
    TRY_ASSIGN(const int64_t number, arguments.Integer("rule", 0, 0, 15));
    rule = static_cast<int>(number);
  }
  std::vector<std::string> may_change;
  if (arguments.Has("may-change")) {
    TRY_ASSIGN(may_change, arguments.List("may-change"));
  }
  return OfOption(option, ObjectPath(option, *arguments.Text(option), rule, std::move(may_change)));
}

Result<DataPath> HaproxyPathOf(const Arguments& arguments) {
  for (const std::string_view other : {"rule", "may-change", "kubeconfig", "context", "healthy"})
    TRY(arguments.Exclude("haproxy", other));
  HaproxyChoice choice;
  TRY_ASSIGN(choice.backend,
             arguments.RequiredText("backend", "the backend whose servers are the regions"));
  TRY(OfOption("backend", CheckHaproxyName(choice.backend)));
  TRY_ASSIGN(choice.socket, OfOption("haproxy", ParseStreamPeer(*arguments.Text("haproxy"))));
  return DataPath(std::move(choice));
}

Result<RouteTarget> TargetOf(const Arguments& arguments) {
  RouteTarget target;
  TRY_ASSIGN(const std::string_view option, PathOption(arguments));
  if (option == "haproxy") {
    TRY_ASSIGN(const DataPath path, HaproxyPathOf(arguments));
    target.enactor = MakeEnactor(path, nullptr, nullptr);
    return target;
  }
  TRY(arguments.Require("backend", "haproxy"));
  TRY_ASSIGN(const DataPath path, ObjectPathOf(arguments, option));
  TRY_ASSIGN(target.cluster, ConnectToCluster(arguments));
  target.enactor = MakeEnactor(path, target.cluster->client.get(), nullptr);
  return target;
}

// What stands, with the word of --healthy.
Result<StandingWeights> ReadStanding(const Arguments& arguments, const RouteTarget& target,
                                     const std::vector<RegionBackend>& map) {
  TRY_ASSIGN(StandingWeights standing, target.enactor->Read());
  if (arguments.Has("healthy")) {
    TRY_ASSIGN(const std::vector<std::string> healthy, arguments.List("healthy"));
    TellHealth(healthy, map, &standing);
  }
  return standing;
}

Result<std::vector<RegionBackend>> RegionsOf(const Arguments& arguments) {
  if (!arguments.Has("regions")) return std::vector<RegionBackend>{};
  return OfOption("regions", ParseRegionBackends(*arguments.Text("regions")));
}

// A percentage as a share.
Result<double> PercentOf(const Arguments& arguments, std::string_view option, double fallback,
                         int64_t low) {
  if (!arguments.Has(option)) return fallback;
  TRY_ASSIGN(const int64_t percent, arguments.Integer(option, 0, low, 100));
  return static_cast<double>(percent) / 100;
}

Result<SplitLimits> LimitsOf(const Arguments& arguments) {
  SplitLimits limits;
  TRY_ASSIGN(limits.step, PercentOf(arguments, "step", limits.step, 1));
  TRY_ASSIGN(limits.floor, PercentOf(arguments, "floor", limits.floor, 0));
  return limits;
}

std::string Percent(double share) { return fmt::format("{:.4g} %", share * 100); }

OrderedJson SplitJson(const Split& split) {
  OrderedJson json = OrderedJson::object();
  for (const RegionShare& one : split) json[one.region] = one.share;
  return json;
}

OrderedJson StandingJson(const StandingWeights& standing, const std::vector<RegionBackend>& map) {
  OrderedJson backends = OrderedJson::array();
  for (const StandingBackend& one : standing.backends) {
    backends.push_back({{"name", one.name},
                        {"weight", one.weight},
                        {"healthy", one.is_healthy},
                        {"health", one.health}});
  }
  return {{"target", standing.target},
          {"split", SplitJson(SplitOf(standing, map))},
          {"backends", backends},
          {"notes", standing.notes}};
}

Result<void> PrintStanding(const StandingWeights& standing, const std::vector<RegionBackend>& map) {
  const Split split = SplitOf(standing, map);
  TextTable table({{"REGION"},
                   {"BACKEND"},
                   {"WEIGHT", TextTable::Align::kRight},
                   {"SHARE", TextTable::Align::kRight},
                   {"HEALTHY"},
                   {"WHY"}});
  for (size_t i = 0; i < standing.backends.size(); ++i) {
    const StandingBackend& one = standing.backends[i];
    table.Row({split.empty() ? "-" : OneLine(split[i].region, 100), OneLine(one.name, 100),
               fmt::format("{}", one.weight), split.empty() ? "-" : Percent(split[i].share),
               one.is_healthy ? "yes" : "no", one.health});
  }
  std::string text = fmt::format("{}\n{}", standing.target, table.Text());
  if (split.empty()) text += "all weights are 0: it serves no requests\n";
  for (const std::string& note : standing.notes) text += fmt::format("note: {}\n", note);
  return Print(text);
}

Result<ExitStatus> ShowSplit(const Arguments& arguments, OutputFormat format) {
  for (const std::string_view option : {"to", "step", "floor"}) {
    if (arguments.Has(option))
      return Invalid("--{}: is for `route set`; `route show` changes nothing", option);
  }
  if (arguments.Has("apply"))
    return Invalid("--apply: is for `route set`; `route show` changes nothing");
  TRY_ASSIGN(const std::vector<RegionBackend> map, RegionsOf(arguments));
  TRY_ASSIGN(const RouteTarget target, TargetOf(arguments));
  TRY_ASSIGN(const StandingWeights standing, ReadStanding(arguments, target, map));
  if (format == OutputFormat::kJson) {
    OrderedJson json = StandingJson(standing, map);
    json["schema_version"] = 1;
    TRY(Print(json.dump(1) + "\n"));
  } else {
    TRY(PrintStanding(standing, map));
  }
  return ExitStatus::kDone;
}

// Everything that `set` has to say, as it says it.
struct SetReport {
  StandingWeights before;
  Split wanted;
  SplitPlan plan;
  std::string request;                   // Empty: nothing to send.
  std::optional<StandingWeights> after;  // None: nothing was sent.
};

Result<void> PrintReport(const SetReport& report, const std::vector<RegionBackend>& map,
                         OutputFormat format) {
  if (format == OutputFormat::kJson) {
    OrderedJson json{
        {"schema_version", 1},
        {"before", StandingJson(report.before, map)},
        {"wanted", SplitJson(report.wanted)},
        {"allowed", SplitJson(report.plan.review.split)},
        {"reasons", report.plan.review.reasons},
        {"weights", report.plan.weights},
        {"request", report.request.empty() ? OrderedJson(nullptr) : OrderedJson(report.request)},
        {"after", report.after ? StandingJson(*report.after, map) : OrderedJson(nullptr)}};
    return Print(json.dump(1) + "\n");
  }
  std::string text;
  if (!report.after) {
    text =
        fmt::format("{}\nnow:     {}\n", report.before.target,
                    report.plan.standing.empty() ? "no requests" : SplitText(report.plan.standing));
    text += fmt::format("wanted:  {}\n", SplitText(report.wanted));
    if (!report.plan.review.split.empty())
      text += fmt::format("allowed: {}\n", SplitText(report.plan.review.split));
  }
  for (const std::string& reason : report.plan.review.reasons)
    text += fmt::format("guard: {}\n", reason);
  if (report.after) {
    TRY(Print(text));
    return PrintStanding(*report.after, map);
  }
  if (report.request.empty())
    text += "nothing to send: the allowed split stands already\n";
  else
    text += fmt::format("\n{}\nnothing was sent; --apply sends this request\n", report.request);
  return Print(text);
}

Result<ExitStatus> SetSplit(const Arguments& arguments, OutputFormat format) {
  TRY_ASSIGN(const std::string to,
             arguments.RequiredText("to", "the share of each region, as in eu=60,us=40"));
  SetReport report;
  TRY_ASSIGN(report.wanted, OfOption("to", ParseSplit(to)));
  TRY_ASSIGN(const std::vector<RegionBackend> map, RegionsOf(arguments));
  TRY_ASSIGN(const SplitLimits limits, LimitsOf(arguments));
  TRY_ASSIGN(const RouteTarget target, TargetOf(arguments));
  TRY_ASSIGN(report.before, ReadStanding(arguments, target, map));
  TRY_ASSIGN(report.plan, PlanSplit(report.before, report.wanted, map, target.enactor->weight_sum(),
                                    kReadNow, limits));
  if (report.plan.changes) report.request = target.enactor->Request(report.plan.weights);
  const bool applies = arguments.Has("apply");
  if (applies && report.plan.changes) {
    TRY_ASSIGN(report.after, EnactSplit(target.enactor.get(), report.plan));
  }
  TRY(PrintReport(report, map, format));
  return applies && report.plan.review.is_frozen ? ExitStatus::kFailed : ExitStatus::kDone;
}

Result<ExitStatus> RunRoute(const Arguments& arguments, const Session& /*session*/) {
  constexpr std::string_view kVerbs[] = {"show", "set"};
  TRY_ASSIGN(const OutputFormat format, OutputFormatOf(arguments));
  TRY_ASSIGN(const int verb, ChoiceOf(arguments.operands()[0], kVerbs));
  return verb == 0 ? ShowSplit(arguments, format) : SetSplit(arguments, format);
}

}  // namespace

CommandSpec RouteCommand() {
  return {
      .name = "route",
      .summary = "Show or set the split of requests between regions on a route or load balancer",
      .operands = {{.name = "show|set"}},
      .options =
          {{"--httproute", "NS/NAME", "HTTPRoute of the Gateway API whose backends are regions"},
           {"--virtualservice", "NS/NAME",
            "VirtualService of Istio whose destinations are regions"},
           {"--destinationrule", "NS/NAME",
            "DestinationRule of Istio whose `distribute` names localities that are regions"},
           {"--dnsendpoint", "NS/NAME", "DNSEndpoint of ExternalDNS with a record for each region"},
           {"--propagationpolicy", "NS/NAME",
            "PropagationPolicy of Karmada whose clusters are regions: splits replicas"},
           {"--placementscores", "NAME[/SCORE]",
            "AddOnPlacementScores of Open Cluster Management, one for each cluster: scores are "
            "shares"},
           {"--rule", "N", "rule of the route, from 0 (default: the only one)"},
           {"--haproxy", "SOCKET", "HAProxy's runtime API: path of its socket, or HOST:PORT"},
           {"--backend", "NAME", "backend of HAProxy whose servers are regions"},
           {"--regions", "REGION=BACKEND,...",
            "backend of each region (default: the backend of the region's name)"},
           {"--to", "REGION=PERCENT,...", "share of each region; they sum to 100"},
           {"--apply", "", "send the request (default: print it)"},
           {"--step", "PERCENT", "largest change of a share, in points (default 10)"},
           {"--floor", "PERCENT", "share that a healthy region keeps for probing (default 1)"},
           {"--may-change", "MANAGER,...",
            "field managers other than kubectl whose weights may be changed"},
           {"--healthy", "REGION,...",
            "regions that are healthy, where the object does not show it (all others get nothing)"},
           {"--kubeconfig", "FILE", "kubeconfig file (default $KUBECONFIG or ~/.kube/config)"},
           {"--context", "NAME", "context of the kubeconfig (default: the current context)"},
           {"-o,--output", "table|json", "output format (default: table)"}},
      .details =
          "A guard limits what is set: one step per command, a floor for probing, and nothing for "
          "a region that is not healthy. A region of an HTTPRoute or a VirtualService is healthy "
          "while its Service has a ready endpoint, one of HAProxy while its server runs. Other "
          "objects do not show it, so that --healthy names the regions. Without --apply the exact "
          "request is printed and nothing is sent (docs/routing.md).",
      .examples = {"route show --httproute shop/web",
                   "route set --httproute shop/web --regions eu=web-eu,us=web-us --to eu=60,us=40",
                   "route set --haproxy /run/haproxy/admin.sock --backend web --to eu=60,us=40 "
                   "--apply"},
      .run = RunRoute};
}

}  // namespace rudderfish
