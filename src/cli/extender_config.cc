// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <chrono>
#include <string_view>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "run/config.h"

namespace rudderfish {
namespace {

// By which one grade counts more than kube-scheduler's own scores together can differ by: 1,200, of
// the default profile. So the best node is taken, not only one that is not the worst.
constexpr int64_t kPointsOfAGrade = 10;  // Times the weight.
constexpr int64_t kWeightThatDecides = 121;
constexpr int64_t kWeightMax = 1000;

constexpr std::string_view kTlsFragment =
    R"(  enableHTTPS: true
  tlsConfig:                    # Files where kube-scheduler runs:
    caFile: /etc/kubernetes/rudderfish/ca.crt        # who signed our certificate,
    certFile: /etc/kubernetes/rudderfish/client.crt  # and what it shows us, signed by `client_ca`.
    keyFile: /etc/kubernetes/rudderfish/client.key
)";

std::string Fragment(const ExtenderConfig& config, int64_t weight, int64_t percentage) {
  std::string text = fmt::format(
      R"(# Merge this into kube-scheduler's configuration (--config). Start it with
#   --feature-gates=OpportunisticBatching=false
# or pods that are equal to the one before are placed by its answers, and we are not asked.
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: {:<5} # Of the nodes, shown to us; the more, the longer it takes.
extenders:
- urlPrefix: {}://{}
  prioritizeVerb: prioritize
)",
      percentage, config.tls ? "https" : "http", config.listen);
  if (config.limits.any()) text += "  filterVerb: filter\n";
  text += fmt::format(
      R"(  weight: {:<21} # A grade counts {} points; all else 1,200 at most.
  httpTimeout: {}ms            # What scheduling waits for us at most, should we hang.
  nodeCacheCapable: true
  ignorable: true               # When we are not there, scheduling goes on without us.
)",
      weight, weight * kPointsOfAGrade,
      std::chrono::ceil<std::chrono::milliseconds>(config.timeout).count());
  if (config.tls) text += kTlsFragment;
  return text;
}

Result<ExitStatus> RunExtenderConfig(const Arguments& arguments, const Session&) {
  ExtenderConfig extender;
  if (const auto path = arguments.Text("config")) {
    TRY_ASSIGN(const Config config, LoadConfig(*path));
    if (!config.extender) return Invalid("{}: has no section `extender`", *path);
    extender = *config.extender;
  }
  TRY_ASSIGN(const int64_t weight, arguments.Integer("weight", kWeightThatDecides, 1, kWeightMax));
  TRY_ASSIGN(const int64_t percentage, arguments.Integer("percentage-of-nodes", 100, 0, 100));
  TRY(Print(Fragment(extender, weight, percentage)));
  return ExitStatus::kDone;
}

}  // namespace

CommandSpec ExtenderConfigCommand() {
  return {
      .name = "extender-config",
      .summary = "print what to merge into kube-scheduler's configuration",
      .options = {{"-c,--config", "FILE",
                   "whose section `extender` counts; without it what holds by default"},
                  {"--weight", "N",
                   "of our grades beside kube-scheduler's scores; 121 by default, which decides"},
                  {"--percentage-of-nodes", "N",
                   "of the nodes: kube-scheduler looks for so many that may take the pod, scores "
                   "them and asks about them; 100 by default, 0 is its own choice: 10 % of 5,000, "
                   "all of 100"}},
      .details =
          "`run` with a section `extender` answers what kube-scheduler then asks "
          "(docs/placement.md). In clusters of thousands of nodes all of them are too many for it "
          "where many pods come: see --percentage-of-nodes.",
      .examples = {"extender-config --config rudderfish.yaml --weight 2"},
      .run = RunExtenderConfig};
}

}  // namespace rudderfish
