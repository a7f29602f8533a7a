// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"

// Measured values: what a cluster's API server does not know. A column is one signal (how busy CPUs
// are, requests a second) of all nodes, workloads, edges between workloads, or regions, by name:
// names live longer than positions in a State.
//
// Every value keeps the time of its measurement and is never removed: if a source fails, its values
// age, and the code that decides sets the limit of their age. A plain value.

namespace rudderfish {

enum class SignalScope { kCluster, kNode, kWorkload, kEdge, kRegion };

struct SignalValue {
  double value = 0;   // Finite.
  Instant at;         // When it was measured, by the reader's clock.
  double spread = 0;  // Largest less smallest, where several sources measured the same.
};

struct SignalColumn {
  SignalScope scope = SignalScope::kNode;
  std::string source;   // "prometheus"
  std::string trouble;  // Why the last attempt brought less than it should; empty: it did not.
  std::map<std::string, SignalValue, std::less<>> values;  // By EntityName; "" of the cluster.
};

struct Signals {
  std::map<std::string, SignalColumn, std::less<>> columns;

  // nullptr if it was never measured.
  const SignalValue* Find(std::string_view signal, std::string_view entity) const {
    const auto column = columns.find(signal);
    if (column == columns.end()) return nullptr;
    const auto value = column->second.values.find(entity);
    return value == column->second.values.end() ? nullptr : &value->second;
  }
};

// An edge from one workload to another, as a key of SignalColumn::values.
inline std::string EdgeName(std::string_view from, std::string_view to) {
  return std::string(from) + "->" + std::string(to);
}

}  // namespace rudderfish
