// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "../support/tiny_scenario.h"
#include "base/check.h"
#include "compat/reach.h"
#include "policy/greedy.h"
#include "task/migration.h"

// Any bytes as a request of REACH's migrator: refused with a reason, or answered with a pod and a
// node of the request, in a consistent state.

namespace {

rudderfish::ReachWorld TinyWorld(rudderfish::ReachStrangers strangers) {
  const auto scenario = rudderfish::testing::TinyScenario();
  rudderfish::ReachWorld world{.catalog = scenario->catalog, .calls = scenario->patterns[0]};
  world.network.layers = scenario->catalog->layer_count();
  for (const auto& latency : scenario->latency_ms)
    world.network.latency_ms.push_back(latency.max());
  world.strangers = strangers;
  return world;
}

void Ask(const rudderfish::ReachWorld& world, std::string_view body) {
  static const rudderfish::MigrationTask task({});
  static const rudderfish::GreedyPolicy policy;
  rudderfish::ReachPlans plans;
  rudderfish::ReachAdviser adviser(&world, rudderfish::LatencyLaw::Reach(), &task, &policy, &plans);
  const auto answer = adviser.Decide(body);
  if (!answer) {
    CHECK(!answer.error().message.empty());
    return;
  }
  rudderfish::CheckConsistent(adviser.state());
  CHECK_EQ(answer->is_stop(), answer->target_node.empty());
  CHECK(!rudderfish::ReachAnswerJson(*answer).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto refusing = TinyWorld(rudderfish::ReachStrangers::kRefuse);
  static const auto ignoring = TinyWorld(rudderfish::ReachStrangers::kIgnore);
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  Ask(refusing, body);
  Ask(ignoring, body);
  return 0;
}
