// SPDX-License-Identifier: Apache-2.0
#include "telemetry/prometheus_response.h"

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace rudderfish {
namespace {

constexpr std::string_view kSource = "Prometheus' answer";

Result<double> ParseValue(const JsonReader& value) {
  TRY_ASSIGN(const std::string text, value.AsString());
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "+Inf") return std::numeric_limits<double>::infinity();
  if (text == "-Inf") return -std::numeric_limits<double>::infinity();
  double parsed = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, parsed);
  if (text.empty() || stopped != end || error != std::errc{}) return value.Expected("a number");
  return parsed;
}

// [1435781451.781, "1.5"]
Result<PrometheusSample> ParseSample(const JsonReader& sample) {
  TRY_ASSIGN(const auto pair, sample.Elements());
  if (pair.size() != 2) return sample.Expected("a time and a value");
  PrometheusSample parsed;
  TRY_ASSIGN(parsed.unix_seconds, pair[0].AsDouble(0, 1e12));
  TRY_ASSIGN(parsed.value, ParseValue(pair[1]));
  return parsed;
}

Result<PrometheusSeries> ParseSeries(const JsonReader& series, std::string_view kind) {
  PrometheusSeries parsed;
  TRY_ASSIGN(const JsonReader metric, series.At("metric"));
  TRY_ASSIGN(const auto labels, metric.Members());
  for (const auto& [name, value] : labels) {
    TRY_ASSIGN(std::string text, value.AsString());
    parsed.labels.emplace_back(name, std::move(text));
  }
  TRY_ASSIGN(const auto one, series.Find("value"));
  TRY_ASSIGN(const auto several, series.Find("values"));
  if (!one && !several) return series.Refuse("is a native histogram, which is no number");
  if (kind == "vector") {
    TRY_ASSIGN(const JsonReader value, series.At("value"));
    TRY_ASSIGN(const PrometheusSample sample, ParseSample(value));
    parsed.samples.push_back(sample);
    return parsed;
  }
  TRY_ASSIGN(const JsonReader values, series.At("values"));
  TRY_ASSIGN(const auto elements, values.Elements());
  for (const JsonReader& element : elements) {
    TRY_ASSIGN(const PrometheusSample sample, ParseSample(element));
    parsed.samples.push_back(sample);
  }
  return parsed;
}

// {node="n2"}, as PromQL writes it.
std::string LabelsOf(const JsonReader& series) {
  std::string text;
  const auto metric = series.Find("metric");
  if (!metric || !*metric) return "{}";
  const auto labels = (*metric)->Members();
  if (!labels) return "{}";
  for (const auto& [name, value] : *labels) {
    text +=
        fmt::format("{}{}=\"{}\"", text.empty() ? "" : ",", name, value.AsString().value_or("?"));
  }
  return fmt::format("{{{}}}", text.substr(0, 200));
}

void AddSeries(const JsonReader& element, std::string_view kind, PrometheusAnswer* answer) {
  Result<PrometheusSeries> parsed = ParseSeries(element, kind);
  if (parsed) {
    answer->series.push_back(*std::move(parsed));
  } else if (answer->left_out++ == 0) {
    answer->first_left_out = fmt::format("{}: {}", LabelsOf(element), parsed.error().message);
  }
}

Result<std::vector<std::string>> ParseWarnings(const JsonReader& root) {
  std::vector<std::string> warnings;
  TRY_ASSIGN(const auto list, root.Find("warnings"));
  if (!list) return warnings;
  TRY_ASSIGN(const auto elements, list->Elements());
  for (const JsonReader& element : elements) {
    TRY_ASSIGN(std::string warning, element.AsString());
    warnings.push_back(std::move(warning));
  }
  return warnings;
}

// "bad_data: parse error at char 3": the query is wrong, and will be the next time.
tl::unexpected<Error> Refusal(const std::string& type, const std::string& what) {
  const ErrorCode code = type == "bad_data" ? ErrorCode::kInvalidArgument : ErrorCode::kUnavailable;
  return Fail(code, "Prometheus: {}: {}", type, what);
}

Result<PrometheusAnswer> ParseAnswer(std::string_view body) {
  TRY_ASSIGN(const Json json, ParseJson(body, kSource));
  const JsonReader root(json, kSource);
  TRY_ASSIGN(const JsonReader status, root.At("status"));
  TRY_ASSIGN(const std::string word, status.AsString());
  if (word == "error") {
    TRY_ASSIGN(const JsonReader type, root.At("errorType"));
    TRY_ASSIGN(const JsonReader what, root.At("error"));
    TRY_ASSIGN(const std::string type_word, type.AsString());
    TRY_ASSIGN(const std::string what_text, what.AsString());
    return Refusal(type_word, what_text);
  }
  if (word != "success") return status.Expected("success or error");
  TRY_ASSIGN(const JsonReader data, root.At("data"));
  TRY_ASSIGN(const JsonReader type, data.At("resultType"));
  TRY_ASSIGN(const std::string kind, type.AsString());
  TRY_ASSIGN(const JsonReader result, data.At("result"));
  PrometheusAnswer answer;
  TRY_ASSIGN(answer.warnings, ParseWarnings(root));
  if (kind == "scalar") {
    TRY_ASSIGN(const PrometheusSample sample, ParseSample(result));
    answer.series.push_back({.labels = {}, .samples = {sample}});
    return answer;
  }
  if (kind != "vector" && kind != "matrix") return type.Expected("vector, matrix or scalar");
  TRY_ASSIGN(const auto elements, result.Elements());
  for (const JsonReader& element : elements) AddSeries(element, kind, &answer);
  return answer;
}

}  // namespace

std::string_view PrometheusSeries::label(std::string_view name) const {
  for (const auto& [key, value] : labels) {
    if (key == name) return value;
  }
  return {};
}

Result<PrometheusAnswer> ParsePrometheusResponse(std::string_view body) {
  Result<PrometheusAnswer> parsed = ParseAnswer(body);
  const bool refused = !parsed && parsed.error().message.starts_with("Prometheus: ");
  if (!parsed && !refused) return Fail(ErrorCode::kCorruption, "{}", parsed.error().message);
  return parsed;
}

}  // namespace rudderfish
