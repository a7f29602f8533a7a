// SPDX-License-Identifier: Apache-2.0
#include "compat/python_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/check.h"

namespace rudderfish {
namespace {

std::string Quoted(const std::string& text) {
  return OrderedJson(text).dump(-1, ' ', true, OrderedJson::error_handler_t::replace);
}

void Write(const OrderedJson& value, std::string* text) {
  if (value.is_object()) {
    *text += "{";
    const char* separator = "";
    for (const auto& [key, member] : value.items()) {
      *text += separator + Quoted(key) + ": ";
      Write(member, text);
      separator = ", ";
    }
    *text += "}";
  } else if (value.is_array()) {
    *text += "[";
    const char* separator = "";
    for (const OrderedJson& element : value) {
      *text += separator;
      Write(element, text);
      separator = ", ";
    }
    *text += "]";
  } else if (value.is_number_float()) {
    *text += PythonFloat(value.get<double>());
  } else if (value.is_string()) {
    *text += Quoted(value.get_ref<const std::string&>());
  } else {
    *text += value.dump();  // Integers, true, false, null.
  }
}

}  // namespace

std::string PythonFloat(double value) {
  CHECK(std::isfinite(value));
  std::string text = fmt::format("{}", value);  // As short as it can be, as in Python.
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

double PythonRoundedToCents(double value) {
  CHECK(std::isfinite(value));
  // As Python: to the nearest decimal, by the exact value of the double.
  const std::string text = fmt::format("{:.2f}", value);
  double rounded = value;
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return rounded;
}

std::string PythonJson(const OrderedJson& value) {
  std::string text;
  Write(value, &text);
  return text;
}

}  // namespace rudderfish
