// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compat/gym_hpa.h"

// gym-hpa's observations on disk: a line a step,
//
//   2022-03-01 12:00:00,3,4,369,2,48,16,1009.312,...
//
// the time, then for each deployment num_pods, desired_replicas, cpu_usage, mem_usage, traffic_in,
// traffic_out, latency: 78 columns of Online Boutique, 15 of Redis. Without a line of names, or
// with one: date,NAME_num_pods,NAME_desired_replicas ...

namespace rudderfish {

struct GymHpaRow {
  int64_t at_s = 0;                     // Since 1970, as if it were UTC.
  std::vector<GymHpaReading> readings;  // [deployment]

  bool operator==(const GymHpaRow&) const = default;
};

struct GymHpaTable {
  std::vector<std::string> names;  // [deployment]; empty without a line of names.
  std::vector<GymHpaRow> rows;     // At least one.

  int deployments() const { return static_cast<int>(rows[0].readings.size()); }
};

// Messages read file:line:column.
Result<GymHpaTable> ReadGymHpaTable(std::string_view text, std::string_view source_name);

// One line with its end. CPU, memory and traffic as whole numbers, latency to three decimals, as
// there.
std::string GymHpaLine(const GymHpaRow& row);

}  // namespace rudderfish
