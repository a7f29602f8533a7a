// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "task/gym_hpa.h"

// gym-hpa's files. Its observations: a line a step,
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

// One episode in results.csv: "episode,avg_pods,avg_latency,reward,execution_time".
struct GymHpaResult {
  int episode = 0;
  double avg_pods = 0;  // Of the total, over steps.
  double avg_latency_ms = 0;
  double reward = 0;
  double seconds = 0;
};
std::string GymHpaResultsCsv(std::span<const GymHpaResult> results);  // With its line of names.

// "ALG_env_NAME_gym_totalSteps_N".
std::string GymHpaRunName(std::string_view algorithm, std::string_view application, int64_t steps);

}  // namespace rudderfish
