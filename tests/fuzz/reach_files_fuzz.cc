// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "scenario/reach_files.h"

// Any bytes as REACH's three files, which a line of `---` separates: refused, or a scenario that
// can be written.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr std::string_view kSeparator = "\n---\n";
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const auto take = [&](std::string_view name) {
    const std::string_view part = rest.substr(0, rest.find(kSeparator));
    rest.remove_prefix(part.size() < rest.size() ? part.size() + kSeparator.size() : rest.size());
    return rudderfish::ReachText{std::string(name), std::string(part)};
  };
  rudderfish::ReachTexts texts;
  texts.nodes = take("nodes.json");
  texts.services = take("services.json");
  texts.patterns.emplace_back("fuzz", take("fuzz_call_patterns.json"));
  const auto scenario = rudderfish::ParseReach(texts, "1-1");
  if (!scenario) {
    CHECK(!scenario.error().message.empty());
    return 0;
  }
  const auto again = rudderfish::ParseScenario(rudderfish::ToYaml(*scenario), "written.yaml");
  // What is no keyword to REACH may be one to us: a service called `calls`.
  CHECK(again.has_value() || again.error().message.find("keyword") != std::string::npos);
  return 0;
}
