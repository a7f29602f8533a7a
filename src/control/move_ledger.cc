// SPDX-License-Identifier: Apache-2.0
#include "control/move_ledger.h"

#include <algorithm>

namespace rudderfish {

void MoveLedger::Trim(std::chrono::nanoseconds now) {
  std::erase_if(entries_,
                [&](const Entry& entry) { return now - entry.at >= std::chrono::hours(1); });
}

int MoveLedger::OfApplication(std::string_view application) const {
  return static_cast<int>(std::count_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.application == application;
  }));
}

int MoveLedger::OfWorkload(std::string_view application, std::string_view workload) const {
  return static_cast<int>(std::count_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.application == application && entry.workload == workload;
  }));
}

int MoveLedger::OfNamespace(std::string_view name_space) const {
  return static_cast<int>(std::count_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.name_space == name_space;
  }));
}

int MoveLedger::OfNode(std::string_view node) const {
  return static_cast<int>(std::count_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.from == node || entry.to == node;
  }));
}

}  // namespace rudderfish
