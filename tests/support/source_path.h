// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace rudderfish {

// A file of the source tree, `path` from its top. Where that is, only source_path.cc is told: so
// what tests compile to is the same in every copy of the tree, and a compiler cache knows it.
std::string SourcePath(std::string_view path);

}  // namespace rudderfish
