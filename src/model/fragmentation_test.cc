// SPDX-License-Identifier: Apache-2.0
#include "model/fragmentation.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

constexpr int64_t kGib = int64_t{1} << 30;

Workload Shape(int64_t cpu_millis, DeviceRequest devices, NodeKindSet kinds = kAnyKind) {
  return {.name = "shape", .requests = {cpu_millis, kGib}, .devices = devices, .node_kinds = kinds};
}

Devices Left(std::initializer_list<int16_t> free_millis) {
  Devices devices{.count = static_cast<int8_t>(free_millis.size())};
  std::copy(free_millis.begin(), free_millis.end(), devices.free_millis.begin());
  return devices;
}

int64_t OnDevices(const Workload& workload, const Resources& free, const Devices& devices) {
  PodShapes shapes;
  shapes.Add(workload, 1);
  return WeightedFragmentMillis(shapes, Stranded::kDevices, 0, free, devices);
}

TEST(Fragmentation, PodThatRunsStrandsOnlyDevicesTooSmallForIt) {
  EXPECT_EQ(OnDevices(Shape(1000, {1, 500}), {4000, kGib}, Left({400, 700, 1000})), 400);
  EXPECT_EQ(OnDevices(Shape(1000, {1, 1000}), {4000, kGib}, Left({400, 700, 1000})), 1100);
}

TEST(Fragmentation, PodThatCannotRunStrandsAllThatIsFree) {
  const Devices devices = Left({400, 700, 1000});
  EXPECT_EQ(OnDevices(Shape(5000, {1, 500}), {4000, kGib}, devices), 2100);   // Too little CPU.
  EXPECT_EQ(OnDevices(Shape(1000, {2, 1000}), {4000, kGib}, devices), 2100);  // One whole device.
  EXPECT_EQ(OnDevices(Shape(1000, {1, 500}), {4000, kGib / 2}, devices), 2100);  // Memory.
  EXPECT_EQ(OnDevices(Shape(1000, {1, 500}, 2), {4000, kGib}, devices), 2100);   // Another kind.
}

TEST(Fragmentation, PodWithoutDevicesCanUseNone) {
  EXPECT_EQ(OnDevices(Shape(1000, {}), {4000, kGib}, Left({400, 700})), 1100);
}

TEST(Fragmentation, ShapesCountByTheirWeight) {
  PodShapes shapes;
  shapes.Add(Shape(1000, {1, 500}), 3);
  shapes.Add(Shape(1000, {1, 1000}), 1);
  shapes.Add(Shape(1000, {1, 500}), 2);  // The same as the first.
  shapes.Add(Shape(1000, {1, 900}), 0);
  EXPECT_EQ(shapes.shapes.size(), 2U);
  EXPECT_EQ(shapes.total_weight, 6);
  EXPECT_EQ(WeightedFragmentMillis(shapes, Stranded::kDevices, 0, {4000, kGib}, Left({400, 1000})),
            6 * 400);
  EXPECT_EQ(WeightedFragmentMillis(shapes, Stranded::kDevices, 0, {4000, kGib}, Left({700})),
            0 * 5 + 700);
}

TEST(Fragmentation, WithoutDevicesFreeCpuIsStrandedWhereNoPodFits) {
  PodShapes shapes;
  shapes.Add(Shape(1000, {}), 1);
  EXPECT_EQ(WeightedFragmentMillis(shapes, Stranded::kCpu, 0, {999, kGib}, {}), 999);
  EXPECT_EQ(WeightedFragmentMillis(shapes, Stranded::kCpu, 0, {1500, kGib}, {}), 0);
  EXPECT_EQ(WeightedFragmentMillis(shapes, Stranded::kCpu, 0, {1500, kGib - 1}, {}), 1500);
}

}  // namespace
}  // namespace rudderfish
