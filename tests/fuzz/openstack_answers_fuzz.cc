// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/check.h"
#include "cloud/openstack_cloud.h"
#include "cloud/openstack_session.h"
#include "cloud/openstack_vms.h"

// Any bytes as what Nova, Placement or Keystone answers, or as a clouds.yaml: refused in one line,
// or something whose parts may become parts of requests.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rudderfish;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CHECK(OpenStackMessage(text).find('\n') == std::string::npos);
  if (const auto cloud = ParseClouds(text, "clouds.yaml", ""); !cloud)
    CHECK(cloud.error().message.find('\n') == std::string::npos);
  const Result<Json> json = ParseJson(text, "answer");
  if (!json) return 0;
  const JsonReader root(*json, "answer");
  if (const Result<Vm> vm = ReadVm(root)) {
    CHECK(vm->id.size() == 36 && vm->id.find('/') == std::string::npos);
    CHECK(vm->slot >= 0 && (vm->slot > 0 || vm->fleet.empty()));
  }
  if (const auto room = ReadRoom(root, {{"p1", "eu-1"}}, {1, 64, 1})) {
    for (const VmRoom& one : *room) CHECK(one.vms > 0);
  }
  return 0;
}
