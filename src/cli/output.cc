// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/json.h"
#include "cli/terminal.h"

namespace rudderfish {
namespace {

constexpr std::string_view kFormatNames[] = {"table", "wide", "json", "yaml", "name", "csv"};

// Whether every reader of YAML, 1.1 or 1.2, takes the text without quotes for that text.
bool IsPlainScalar(const std::string& text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (text.empty() || !is_letter(text[0])) return false;
  for (const char c : text) {
    if (!is_letter(c) && !(c >= '0' && c <= '9') &&
        std::string_view("-_./").find(c) == std::string_view::npos)
      return false;
  }
  std::string low = text;
  std::transform(low.begin(), low.end(), low.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  constexpr std::string_view kWords[] = {"y",   "n",    "yes",   "no",  "on",
                                         "off", "true", "false", "null"};
  return std::find(std::begin(kWords), std::end(kWords), low) == std::end(kWords);
}

// Quoted as JSON does, which is YAML too.
std::string ScalarText(const OrderedJson& value) {
  if (value.is_string() && IsPlainScalar(value.get_ref<const std::string&>()))
    return value.get<std::string>();
  return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

// `indent`: of its lines; the first stands behind what was written, if that is a dash.
void AppendYaml(const OrderedJson& value, int indent, bool follows_dash, std::string* text) {
  const std::string margin(static_cast<size_t>(indent), ' ');
  const auto append = [&](const OrderedJson& part, int by) {
    if (part.is_structured() && !part.empty()) {
      *text += part.is_object() && by == 0 ? "" : "\n";
      AppendYaml(part, indent + 2, by == 0, text);
    } else {
      *text += ScalarText(part) + "\n";
    }
  };
  bool is_first = follows_dash;
  if (value.is_array()) {
    for (const OrderedJson& item : value) {
      *text += (is_first ? "" : margin) + std::string("- ");
      is_first = false;
      append(item, item.is_object() ? 0 : 2);
    }
    return;
  }
  for (const auto& [key, item] : value.items()) {
    *text += (is_first ? "" : margin) + ScalarText(key) + ":" +
             (item.is_structured() && !item.empty() ? "" : " ");
    is_first = false;
    append(item, 2);
  }
}

}  // namespace

Result<OutputFormat> OutputFormatOf(const Arguments& arguments,
                                    std::initializer_list<OutputFormat> accepted) {
  std::vector<std::string_view> names;
  for (const OutputFormat format : accepted)
    names.push_back(kFormatNames[static_cast<size_t>(format)]);
  TRY_ASSIGN(const int chosen, arguments.Choice("output", names, 0));
  return *(accepted.begin() + chosen);
}

Result<std::string> YamlOfJson(std::string_view json) {
  TRY_ASSIGN(const OrderedJson value, ParseOrderedJson(json, "the output"));
  if (!value.is_structured() || value.empty()) return ScalarText(value) + "\n";
  std::string text;
  AppendYaml(value, 0, false, &text);
  return text;
}

Result<void> PrintStructured(std::string_view json, OutputFormat format) {
  if (format == OutputFormat::kJson) return Print(json);
  TRY_ASSIGN(const std::string text, YamlOfJson(json));
  return Print(text);
}

Result<void> PrintNames(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += name + "\n";
  return Print(text);
}

Result<void> Watch(Duration interval, const std::function<Result<void>()>& show) {
  while (true) {
    TRY(show());
    if (IsReaderGone()) return {};
    std::this_thread::sleep_for(interval);
  }
}

}  // namespace rudderfish
