// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"

namespace rudderfish {

std::string_view ProgramVersion() { return RUDDERFISH_VERSION; }

}  // namespace rudderfish
