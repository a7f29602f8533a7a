// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/application_run.h"
#include "control/mode_ladder.h"
#include "run/calls_update.h"
#include "run/config.h"
#include "run/signal_source.h"
#include "run/watched_cluster.h"

// What a configuration asks for of migration, opened and checked: policies loaded, files read.

namespace rudderfish {

class MigrationPlan {
 public:
  struct Part {
    ApplicationOptions options;
    WatchedApplication watched;
    NewEndpoints new_endpoints = NewEndpoints::kLeaveOut;  // Of traces; added if the file has none.
  };

  static Result<MigrationPlan> Make(const Config& config);

  const Config& config() const { return config_; }
  const std::vector<Part>& parts() const { return parts_; }
  std::vector<WatchedApplication> Watched() const;
  ModeLadder::Settings LadderSettings() const;
  const SignalsConfig& signals() const { return signals_; }

  // What is known of it has changed.
  void SetApplication(size_t part, std::shared_ptr<const Application> application);

  // What would be done, for people: --dry-run.
  std::string Describe() const;

 private:
  Result<void> ReadSignals();

  Config config_;
  std::vector<Part> parts_;
  SignalsConfig signals_;
};

}  // namespace rudderfish
