// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

// Where the process of a configuration file listens and keeps its journal. Commands that pause,
// demote or question it need no more of the file, and must work while something else in it is
// wrong: a mistake in a policy's name may not cost the emergency stop.

namespace rudderfish {

struct RunPlaces {
  std::filesystem::path socket, journal;
  std::string problem;  // What is wrong with the file; empty: nothing.
};

// Of a file with a mistake, what it says of `server.socket` and `journal.path` all the same, also
// where it is no YAML, and the defaults where it says nothing. kNotFound if it is not there.
Result<RunPlaces> FindRunPlaces(const std::filesystem::path& config);

}  // namespace rudderfish
