// SPDX-License-Identifier: Apache-2.0
#include "learn/run_tables.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>
#include <variant>

namespace rudderfish {
namespace {

template <class Row>
struct Column {
  std::string_view name;
  std::variant<int64_t Row::*, double Row::*> member;
};

template <class Row>
inline constexpr Column<Row> kColumns[] = {};
template <>
inline constexpr Column<MetricsRow> kColumns<MetricsRow>[] = {
    {"iteration", &MetricsRow::iteration},
    {"env_steps", &MetricsRow::env_steps},
    {"episodes", &MetricsRow::episodes},
    {"return_mean", &MetricsRow::return_mean},
    {"final_ms_mean", &MetricsRow::final_ms_mean},
    {"moves_mean", &MetricsRow::moves_mean},
    {"policy_loss", &MetricsRow::policy_loss},
    {"value_loss", &MetricsRow::value_loss},
    {"entropy", &MetricsRow::entropy},
    {"approx_kl", &MetricsRow::approx_kl},
    {"clip_fraction", &MetricsRow::clip_fraction},
    {"explained_variance", &MetricsRow::explained_variance},
    {"grad_norm", &MetricsRow::grad_norm},
    {"learning_rate", &MetricsRow::learning_rate},
    {"eval_final_ms", &MetricsRow::eval_final_ms},
    {"eval_return", &MetricsRow::eval_return},
    {"eval_moves", &MetricsRow::eval_moves},
};
template <>
inline constexpr Column<TimingRow> kColumns<TimingRow>[] = {
    {"iteration", &TimingRow::iteration},
    {"env_steps", &TimingRow::env_steps},
    {"seconds", &TimingRow::seconds},
    {"env_steps_per_second", &TimingRow::env_steps_per_second},
    {"collect_seconds", &TimingRow::collect_seconds},
    {"update_seconds", &TimingRow::update_seconds},
    {"evaluate_seconds", &TimingRow::evaluate_seconds},
};

template <class Row>
std::string HeadLine() {
  std::string line;
  for (const Column<Row>& column : kColumns<Row>)
    line += (line.empty() ? "" : ",") + std::string(column.name);
  return line + "\n";
}

std::string CellText(int64_t value) { return std::to_string(value); }
std::string CellText(double value) {
  return std::isnan(value) ? std::string() : fmt::format("{:.9g}", value);
}

bool ReadCell(std::string_view text, int64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

bool ReadCell(std::string_view text, double* value) {
  *value = kNoFigure;
  if (text.empty()) return true;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

template <class Row>
bool ReadRow(std::string_view line, Row* row) {
  for (size_t i = 0; i < std::size(kColumns<Row>); ++i) {
    const size_t comma = line.find(',');
    const bool last = i + 1 == std::size(kColumns<Row>);
    if ((comma == std::string_view::npos) != last) return false;
    const std::string_view cell = line.substr(0, comma);
    if (!std::visit([&](auto member) { return ReadCell(cell, &(row->*member)); },
                    kColumns<Row>[i].member)) {
      return false;
    }
    if (!last) line.remove_prefix(comma + 1);
  }
  return true;
}

template <class Row>
struct Located {
  Row row;
  int64_t end = 0;  // Of its line, in bytes from the start.
};

template <class Row>
Result<std::vector<Located<Row>>> ReadTable(const std::filesystem::path& path) {
  TRY_ASSIGN(const std::string text, ReadFile(path));
  const std::string head = HeadLine<Row>();
  if (head.starts_with(text)) return std::vector<Located<Row>>{};  // Ended while it was begun.
  if (!text.starts_with(head)) {
    return Fail(ErrorCode::kCorruption, "{}:1: expected the columns {}", path.string(),
                std::string_view(head).substr(0, head.size() - 1));
  }
  std::vector<Located<Row>> rows;
  size_t at = head.size();
  for (int line = 2;; ++line) {
    const size_t end = text.find('\n', at);
    if (end == std::string::npos) return rows;
    Located<Row> located{.end = static_cast<int64_t>(end) + 1};
    if (!ReadRow(std::string_view(text).substr(at, end - at), &located.row)) {
      return Fail(ErrorCode::kCorruption, "{}:{}: expected {} numbers, separated by commas",
                  path.string(), line, std::size(kColumns<Row>));
    }
    rows.push_back(located);
    at = end + 1;
  }
}

template <class Row>
Result<std::vector<Row>> ReadRows(const std::filesystem::path& path) {
  TRY_ASSIGN(const auto located, ReadTable<Row>(path));
  std::vector<Row> rows;
  for (const Located<Row>& one : located) rows.push_back(one.row);
  return rows;
}

}  // namespace

template <class Row>
Result<Table<Row>> Table<Row>::Open(const std::filesystem::path& path, int64_t keep_bytes) {
  TRY_ASSIGN(AppendFile file, AppendFile::Open(path, keep_bytes));
  if (file.size() == 0) TRY(file.Append(HeadLine<Row>()));
  return Table(std::move(file));
}

template <class Row>
Result<void> Table<Row>::Append(const Row& row) {
  std::string line;
  for (const Column<Row>& column : kColumns<Row>) {
    if (!line.empty()) line += ',';
    line += std::visit([&](auto member) { return CellText(row.*member); }, column.member);
  }
  return file_.Append(line + "\n");
}

template class Table<MetricsRow>;
template class Table<TimingRow>;

Result<std::vector<MetricsRow>> ReadMetrics(const std::filesystem::path& path) {
  return ReadRows<MetricsRow>(path);
}
Result<std::vector<TimingRow>> ReadTiming(const std::filesystem::path& path) {
  return ReadRows<TimingRow>(path);
}

Result<int64_t> TimingBytesUpTo(const std::filesystem::path& path, int64_t iteration) {
  const auto rows = ReadTable<TimingRow>(path);
  // Times are no part of what is restored: a missing or damaged table starts over.
  if (!rows && rows.error().code != ErrorCode::kNotFound &&
      rows.error().code != ErrorCode::kCorruption) {
    return tl::unexpected(rows.error());
  }
  int64_t bytes = 0;
  if (!rows) return bytes;
  if (!rows->empty()) bytes = static_cast<int64_t>(HeadLine<TimingRow>().size());
  for (const auto& located : *rows) {
    if (located.row.iteration <= iteration) bytes = located.end;
  }
  return bytes;
}

Result<std::vector<CurvePoint>> ReadLearningCurve(const RunPaths& paths) {
  TRY_ASSIGN(const std::vector<MetricsRow> metrics, ReadMetrics(paths.metrics()));
  std::map<int64_t, double> seconds;
  if (const auto timing = ReadTiming(paths.timing())) {
    for (const TimingRow& row : *timing) seconds[row.iteration] = row.seconds;
  }
  std::vector<CurvePoint> curve;
  for (const MetricsRow& row : metrics) {
    if (std::isnan(row.eval_final_ms)) continue;
    const auto at = seconds.find(row.iteration);
    curve.push_back({.env_steps = row.env_steps,
                     .seconds = at == seconds.end() ? kNoFigure : at->second,
                     .final_ms = row.eval_final_ms,
                     .mean_return = row.eval_return,
                     .moves = row.eval_moves});
  }
  return curve;
}

Result<std::vector<std::vector<CurvePoint>>> ReadLearningCurves(
    const std::filesystem::path& folder) {
  std::vector<std::vector<CurvePoint>> curves;
  const int seeds = SeedFolders(folder);
  for (int seed = 1; seed <= std::max(1, seeds); ++seed) {
    const RunPaths paths = seeds > 0 ? RunPaths{folder}.seed(seed) : RunPaths{folder};
    TRY_ASSIGN(std::vector<CurvePoint> curve, ReadLearningCurve(paths));
    curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace rudderfish
