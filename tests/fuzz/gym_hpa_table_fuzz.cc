// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "compat/gym_hpa_table.h"
#include "compat/gym_hpa_world.h"

// Any bytes as observations of gym-hpa: refused in one line, or a world in which one can step.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = rudderfish::ReadGymHpaTable(text, "o.csv");
  if (!read) {
    CHECK(!read.error().message.empty());
    CHECK(read.error().message.find('\n') == std::string::npos);
    return 0;
  }
  rudderfish::GymHpaApplication application{.name = "any", .deployments = {}};
  for (int d = 0; d < read->deployments(); ++d) application.deployments.push_back({"d", 100, 100});
  rudderfish::GymHpaWorld world(&application, &*read, {.steps = 5});
  world.Reset(size);
  for (int step = 0; step < 5; ++step) world.Step({step % application.count(), step - 2});
  for (const auto& row : read->rows)
    CHECK(rudderfish::ReadGymHpaTable(rudderfish::GymHpaLine(row), "line").has_value());
  return 0;
}
