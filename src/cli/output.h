// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/arguments.h"

// The value of -o, and how results are printed by it, the same way in every command: a table, JSON,
// the same as YAML, or names alone, one a line, as kubectl has them.

namespace rudderfish {

enum class OutputFormat { kTable, kWide, kJson, kYaml, kName, kCsv };

// The value of --output; kTable if it was not given.
Result<OutputFormat> OutputFormatOf(const Arguments& arguments,
                                    std::initializer_list<OutputFormat> accepted = {
                                        OutputFormat::kTable, OutputFormat::kJson});

inline bool IsStructured(OutputFormat format) {
  return format == OutputFormat::kJson || format == OutputFormat::kYaml;
}

// The text of a JSON value in block style, keys in their order.
Result<std::string> YamlOfJson(std::string_view json);

// A JSON text as it is, or as YAML. REQUIRES: IsStructured(format).
Result<void> PrintStructured(std::string_view json, OutputFormat format);
Result<void> PrintNames(const std::vector<std::string>& names);

// The text of `-w`: repeatedly, until it fails or stdout is closed.
Result<void> Watch(Duration interval, const std::function<Result<void>()>& show);

}  // namespace rudderfish
