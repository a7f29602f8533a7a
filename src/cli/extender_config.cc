// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <string_view>

#include "base/one_line.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "net/listen_address.h"
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

// What kube-scheduler can ask at: what is said, or where we listen if that is one place.
Result<std::string> AddressOf(const ExtenderConfig& config, const Arguments& arguments) {
  if (const auto said = arguments.Text("address")) {
    const size_t colon = said->rfind(':');
    const bool has_host = colon != std::string::npos && colon > 0 &&
                          said->find_first_of("/@?# \t\n\"'\\") == std::string::npos;
    uint16_t port = 0;
    const char* const end = said->data() + said->size();
    const auto read = std::from_chars(said->data() + (has_host ? colon + 1 : 0), end, port);
    if (!has_host || read.ec != std::errc() || read.ptr != end || port == 0) {
      return Invalid(
          "--address: expected HOST:PORT, such as rudderfish.kube-system.svc:8888, "
          "found '{}'",
          OneLine(*said));
    }
    return *said;
  }
  TRY_ASSIGN(const ListenAddress listen, ParseListenAddress(config.listen));
  const std::string_view problem = listen.is_unix() ? "a socket file"
                                   : listen.ip == "0.0.0.0" || listen.ip == "::"
                                       ? "every address of its machine"
                                   : listen.port == 0 ? "any free port"
                                                      : "";
  if (problem.empty()) return config.listen;
  return Invalid(
      "extender.listen: '{}' is {}, at which kube-scheduler cannot ask: say where it "
      "finds us by --address HOST:PORT",
      config.listen, problem);
}

std::string Fragment(const ExtenderConfig& config, std::string_view address, int64_t weight,
                     int64_t percentage) {
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
      percentage, config.tls ? "https" : "http", address);
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
  TRY_ASSIGN(const std::string address, AddressOf(extender, arguments));
  TRY(Print(Fragment(extender, address, weight, percentage)));
  return ExitStatus::kDone;
}

}  // namespace

CommandSpec ExtenderConfigCommand() {
  return {.name = "extender-config",
          .summary = "Print the extender section for kube-scheduler's configuration",
          .options =
              {{"-c,--config", "FILE",
                "configuration file whose section `extender` is used (default: built-in defaults)"},
               {"--address", "HOST:PORT",
                "address at which kube-scheduler reaches the extender, for example a Service "
                "(default: the listen address of `extender`)"},
               {"--weight", "N",
                "weight of our score relative to kube-scheduler's; the default 121 always "
                "outweighs them"},
               {"--percentage-of-nodes", "N",
                "percentageOfNodesToScore: kube-scheduler stops filtering once this share of nodes "
                "is feasible (default 100). 0 lets kube-scheduler choose: 10 % of 5,000 nodes, all "
                "of 100"}},
          .details =
              "`run` with a section `extender` answers the requests that kube-scheduler then sends "
              "(docs/placement.md). In clusters of thousands of nodes, scoring all nodes slows "
              "kube-scheduler down; lower --percentage-of-nodes there.",
          .examples = {"extender-config --config rudderfish.yaml --weight 2"},
          .run = RunExtenderConfig};
}

}  // namespace rudderfish
