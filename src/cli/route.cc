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
#include "cloud/haproxy.h"
#include "cloud/http_route.h"

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

Result<HttpRouteChoice> HttpRouteOf(const Arguments& arguments) {
  const std::string text = *arguments.Text("httproute");
  const size_t slash = text.find('/');
  constexpr std::string_view kOfNames = "abcdefghijklmnopqrstuvwxyz0123456789-.";
  HttpRouteChoice choice;
  if (slash != std::string::npos) {
    choice.name_space = text.substr(0, slash);
    choice.name = text.substr(slash + 1);
  }
  for (const std::string& name : {choice.name_space, choice.name}) {
    if (name.empty() || name.find_first_not_of(kOfNames) != std::string::npos)
      return Invalid("--httproute: `{}`: expected NAMESPACE/NAME", OneLine(text));
  }
  if (arguments.Has("rule")) {
    TRY_ASSIGN(const int64_t rule, arguments.Integer("rule", 0, 0, 15));
    choice.rule = static_cast<int>(rule);
  }
  if (arguments.Has("may-change")) {
    TRY_ASSIGN(choice.may_change, arguments.List("may-change"));
  }
  return choice;
}

Result<RouteTarget> TargetOf(const Arguments& arguments) {
  TRY(arguments.Exclude("httproute", "haproxy"));
  RouteTarget target;
  if (arguments.Has("haproxy")) {
    for (const std::string_view other : {"rule", "may-change", "kubeconfig", "context"})
      TRY(arguments.Exclude("haproxy", other));
    HaproxyChoice choice;
    TRY_ASSIGN(choice.backend,
               arguments.RequiredText("backend", "the backend whose servers are the regions"));
    TRY(OfOption("backend", CheckHaproxyName(choice.backend)));
    TRY_ASSIGN(choice.socket, OfOption("haproxy", ParseStreamPeer(*arguments.Text("haproxy"))));
    target.enactor = std::make_unique<HaproxyEnactor>(std::move(choice));
    return target;
  }
  TRY(arguments.Require("backend", "haproxy"));
  if (!arguments.Has("httproute"))
    return Invalid("name what routes the requests: --httproute NAMESPACE/NAME or --haproxy SOCKET");
  TRY_ASSIGN(HttpRouteChoice choice, HttpRouteOf(arguments));
  TRY_ASSIGN(target.cluster, ConnectToCluster(arguments));
  target.enactor =
      std::make_unique<HttpRouteEnactor>(target.cluster->client.get(), std::move(choice));
  return target;
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
  TRY_ASSIGN(const StandingWeights standing, target.enactor->Read());
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
  TRY_ASSIGN(report.before, target.enactor->Read());
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
           {"--rule", "N", "rule of the HTTPRoute, from 0 (default: the only one)"},
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
           {"--kubeconfig", "FILE", "kubeconfig file (default $KUBECONFIG or ~/.kube/config)"},
           {"--context", "NAME", "context of the kubeconfig (default: the current context)"},
           {"-o,--output", "table|json", "output format (default: table)"}},
      .details =
          "A guard limits what is set: one step per command, a floor for probing, and nothing for "
          "a region that is not healthy. A region of an HTTPRoute is healthy if its Service has a "
          "ready endpoint, one of HAProxy if its server runs. Without --apply the exact request "
          "is printed and nothing is sent (docs/routing.md).",
      .examples = {"route show --httproute shop/web",
                   "route set --httproute shop/web --regions eu=web-eu,us=web-us --to eu=60,us=40",
                   "route set --haproxy /run/haproxy/admin.sock --backend web --to eu=60,us=40 "
                   "--apply"},
      .run = RunRoute};
}

}  // namespace rudderfish
