// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "control/journal.h"

// A row of the journal as JSON, in one line: what is kept on disk and what `-o json` shows. A
// number that is not finite reads null and comes back as 0. docs/journal.md names the fields.

namespace rudderfish {

std::string ToJson(const JournalRow& row);

// `source_name` is what messages call it. Unknown fields are left alone: rows of a later version
// can be read.
Result<JournalRow> JournalRowFrom(std::string_view json, std::string_view source_name);

// Names and numbers: [["a", 1.5], ...].
std::string ToJson(const std::vector<std::pair<std::string, double>>& scores);

std::string ToJson(const Terms& terms);
Result<Terms> TermsFrom(std::string_view json, std::string_view source_name);

}  // namespace rudderfish
