// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/one_line.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "cloud/data_path.h"
#include "cloud/haproxy.h"
#include "cloud/http_route.h"
#include "kube/kubeconfig.h"

// `route` shows how a data path splits requests between regions, and changes it by hand: through
// the same guard, and by the same request, that a policy's split takes.

namespace rudderfish {
namespace {

constexpr double kDefaultChange = 10, kDefaultFloor = 1;  // Percent.

// REGION=BACKEND,..., by backend.
Result<std::map<std::string, std::string>> RegionsByBackend(const Arguments& arguments) {
  std::map<std::string, std::string> regions;
  if (!arguments.Has("regions")) return regions;
  TRY_ASSIGN(const std::vector<std::string> items, arguments.List("regions"));
  for (const std::string& item : items) {
    const size_t equals = item.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == item.size())
      return Invalid("--regions: expected REGION=BACKEND, found `{}`", OneLine(item));
    const std::string backend = item.substr(equals + 1);
    if (!regions.emplace(backend, item.substr(0, equals)).second)
      return Invalid("--regions: {} is named twice", OneLine(backend));
  }
  return regions;
}

Result<double> PercentOf(const Arguments& arguments, std::string_view option, double fallback,
                         double low, double high) {
  const std::optional<std::string> text = arguments.Text(option);
  if (!text) return fallback;
  double value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error == std::errc() && end == text->data() + text->size() && value >= low && value <= high)
    return value;
  return Invalid("--{}: expected a percentage from {} to {}, found `{}`", option, low, high,
                 OneLine(*text));
}

Result<SplitLimits> LimitsOf(const Arguments& arguments) {
  SplitLimits limits;
  TRY_ASSIGN(const double change, PercentOf(arguments, "max-change", kDefaultChange, 0.1, 100));
  TRY_ASSIGN(const double floor, PercentOf(arguments, "floor", kDefaultFloor, 0, 50));
  limits.change_max = change / 100;
  limits.floor = floor / 100;
  return limits;
}

struct OpenedPath {
  std::unique_ptr<Clock> clock = std::make_unique<SystemClock>();
  std::unique_ptr<kube::ApiClient> client;  // Of a route in a cluster.
  std::unique_ptr<DataPath> path;
};

Result<OpenedPath> OpenRoute(const Arguments& arguments, std::string name) {
  if (arguments.Has("socket")) return Invalid("--socket: only for haproxy/BACKEND");
  OpenedPath opened;
  const kube::KubeconfigChoice choice{.kubeconfig = arguments.Text("kubeconfig").value_or(""),
                                      .context = arguments.Text("context").value_or("")};
  HttpRouteOptions options{.name = std::move(name), .take_over = arguments.Has("take-over")};
  TRY_ASSIGN(options.regions, RegionsByBackend(arguments));
  if (arguments.Has("rule")) {
    TRY_ASSIGN(const int64_t rule, arguments.Integer("rule", 0, 0, 15));
    options.rule = static_cast<int>(rule);
  }
  TRY_ASSIGN(kube::ClusterAccess access,
             kube::FindCluster(choice, kube::KubeEnvironment::OfProcess()));
  options.name_space = arguments.Text("namespace")
                           .value_or(access.name_space.empty() ? "default" : access.name_space);
  TRY_ASSIGN(opened.client, kube::ApiClient::Open(std::move(access), opened.clock.get()));
  opened.path = std::make_unique<HttpRoutePath>(opened.client.get(), std::move(options));
  return opened;
}

Result<OpenedPath> OpenHaproxy(const Arguments& arguments, std::string backend) {
  for (const char* other : {"namespace", "rule", "take-over", "kubeconfig", "context"}) {
    if (arguments.Has(other)) return Invalid("--{}: only for httproute/NAME", other);
  }
  OpenedPath opened;
  HaproxyOptions options{.backend = std::move(backend)};
  TRY_ASSIGN(options.socket,
             arguments.RequiredText("socket", "the stats socket of HAProxy, a path or HOST:PORT"));
  TRY_ASSIGN(options.regions, RegionsByBackend(arguments));
  opened.path = std::make_unique<HaproxyPath>(std::move(options));
  return opened;
}

Result<OpenedPath> OpenPath(const Arguments& arguments) {
  const std::string& operand = arguments.operands()[0];
  constexpr std::string_view kOfNames =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:";
  const size_t slash = operand.find('/');
  const std::string name = slash == std::string::npos ? "" : operand.substr(slash + 1);
  if (!name.empty() && name.find_first_not_of(kOfNames) == std::string::npos) {
    if (operand.starts_with("httproute/")) return OpenRoute(arguments, name);
    if (operand.starts_with("haproxy/")) return OpenHaproxy(arguments, name);
  }
  return Invalid("`{}`: expected httproute/NAME or haproxy/BACKEND", OneLine(operand));
}

Result<void> Report(const EnactedSplit& split, bool asked, OutputFormat format) {
  if (format == OutputFormat::kJson) return Print(SplitJson(split).dump(1) + "\n");
  std::string text = SplitText(split);
  if (split.written()) {
    text += "\nWritten, and read back.\n";
  } else if (!split.request.empty()) {
    text += fmt::format("\nNothing was written; --apply sends\n\n{}\n", split.request);
  } else if (asked && !split.guarded.held) {
    text += "\nNothing to change.\n";
  }
  return Print(text);
}

Result<ExitStatus> RunRoute(const Arguments& arguments, const Session& /*session*/) {
  TRY_ASSIGN(const OutputFormat format, OutputFormatOf(arguments));
  std::vector<RegionShare> wanted;
  if (const std::optional<std::string> to = arguments.Text("to")) {
    TRY_ASSIGN(wanted, OfOption("to", ParseSplit(*to)));
  } else if (arguments.Has("apply")) {
    return Invalid("--apply: name the split with --to");
  }
  TRY_ASSIGN(const SplitLimits limits, LimitsOf(arguments));
  TRY_ASSIGN(const OpenedPath opened, OpenPath(arguments));
  if (wanted.empty()) {
    EnactedSplit standing{.path = opened.path->name()};
    TRY_ASSIGN(standing.before, opened.path->Read());
    TRY(Report(standing, false, format));
    return ExitStatus::kDone;
  }
  TRY_ASSIGN(const EnactedSplit split,
             EnactSplit(opened.path.get(), wanted, limits,
                        arguments.Has("apply") ? Enacting::kWrite : Enacting::kDryRun));
  TRY(Report(split, true, format));
  return split.guarded.held ? ExitStatus::kFailed : ExitStatus::kDone;
}

}  // namespace

CommandSpec RouteCommand() {
  return {
      .name = "route",
      .summary = "Show or change how a data path splits requests between regions",
      .operands = {{.name = "httproute/NAME|haproxy/BACKEND"}},
      .options = {{"--to", "LIST",
                   "REGION=PERCENT for each region; 100 in all (default: only show)"},
                  {"--apply", "", "send the request; without it nothing is written"},
                  {"--regions", "LIST",
                   "REGION=BACKEND: which region a backend is (default: backends are regions)"},
                  {"--max-change", "PERCENT",
                   "most that a region gains or loses in this step (default 10)"},
                  {"--floor", "PERCENT", "least that a healthy region keeps (default 1)"},
                  {"--rule", "N", "rule of the HTTPRoute, from 0 (default: the only one)"},
                  {"--take-over", "", "also write weights that another field manager wrote last"},
                  {"--socket", "ADDRESS", "stats socket of HAProxy: a path, or HOST:PORT"},
                  {"-n,--namespace", "NS",
                   "namespace of the HTTPRoute (default: that of the kubeconfig's context)"},
                  {"--kubeconfig", "FILE",
                   "kubeconfig file (default $KUBECONFIG or ~/.kube/config)"},
                  {"--context", "NAME", "context of the kubeconfig (default: the current context)"},
                  {"-o,--output", "table|json", "output format (default: table)"}},
      .details =
          "Prints the split that stands, what the guard makes of the one that is wanted, and the "
          "exact request. A region whose backend is not healthy gets nothing, a healthy one keeps "
          "at least --floor, and no region gains or loses more than --max-change in a step; run it "
          "again for the next step. With --apply the request is sent and the result read back. A "
          "change that somebody else made in between is not overwritten (docs/routing.md).",
      .examples = {"route httproute/shop -n shop --regions eu=shop-eu,us=shop-us",
                   "route httproute/shop -n shop --regions eu=shop-eu,us=shop-us --to eu=60,us=40",
                   "route haproxy/shop --socket /run/haproxy/admin.sock --to eu=60,us=40 --apply"},
      .run = RunRoute};
}

}  // namespace rudderfish
