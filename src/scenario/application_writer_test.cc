// SPDX-License-Identifier: Apache-2.0
#include "scenario/application_writer.h"

#include <gtest/gtest.h>

#include "scenario/application_file.h"

namespace rudderfish {
namespace {

TEST(ApplicationDraft, IsReadBackAsItWas) {
  const Application draft = ParseApplication(R"(rudderfish: application/v1
name: shop
layers: {zone-a: {}, outside: {accepts_moves: false}}
latency:
  zone-a: {zone-a: 0ms, outside: 4.5ms}
  outside: {zone-a: 5ms, outside: 0ms}
node_types:
  large:
    nodes:
      matchExpressions:
      - {key: zone, operator: In, values: [a]}
      - {key: type, operator: DoesNotExist}
    layer: zone-a
    cpu_type: fast
    bandwidth: 1Gbit
  outside: {layer: outside, cpu_type: none, bandwidth: 100Mbit}
workloads:
  shop/web: {object: statefulset/web, namespace: shop}
  users: {external: outside}
endpoints:
  none: {client: users, rate: 2, qos: 1ms}
)",
                                             "application.yaml")
                                .value();
  const std::string text = ApplicationDraftText(draft);
  const Result<Application> read = ParseApplication(text, "draft.yaml");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(ApplicationDraftText(*read), text);
  EXPECT_EQ(read->name, draft.name);
  EXPECT_EQ(read->objects, draft.objects);
  EXPECT_EQ(read->kind_nodes, draft.kind_nodes);
  EXPECT_EQ(read->external_layers, draft.external_layers);
  EXPECT_EQ(read->network.latency_ms, draft.network.latency_ms);
  EXPECT_EQ(read->catalog->kinds[0].bandwidth_mbytes_per_s, 125);
  EXPECT_FALSE(read->catalog->layers[1].accepts_moves);
  EXPECT_EQ(read->calls->endpoints[0].rate_per_second, 2);
}

}  // namespace
}  // namespace rudderfish
