// SPDX-License-Identifier: Apache-2.0
#include "tests/support/source_path.h"

namespace rudderfish {

std::string SourcePath(std::string_view path) {
  return std::string(RUDDERFISH_SOURCE_DIR "/").append(path);
}

}  // namespace rudderfish
