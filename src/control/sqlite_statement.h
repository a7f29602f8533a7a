// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// A part of control/sqlite_database.h and the tables that it holds.

namespace rudderfish::internal {

// A statement with its parameters, numbered from 1 in the order in which they are bound.
class Statement {
 public:
  Statement(sqlite3* database, const char* sql) {
    code_ = sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;

  Statement& Bind(int64_t value) {
    if (code_ == SQLITE_OK) code_ = sqlite3_bind_int64(statement_, ++bound_, value);
    return *this;
  }
  Statement& Bind(double value) {
    if (code_ == SQLITE_OK) code_ = sqlite3_bind_double(statement_, ++bound_, value);
    return *this;
  }
  Statement& Bind(std::string_view value) {
    if (code_ == SQLITE_OK) {
      code_ = sqlite3_bind_text(statement_, ++bound_, value.data(), static_cast<int>(value.size()),
                                SQLITE_TRANSIENT);
    }
    return *this;
  }
  Statement& Bind(const std::string& value) { return Bind(std::string_view(value)); }
  Statement& Bind(const std::optional<double>& value) {
    if (value) return Bind(*value);
    if (code_ == SQLITE_OK) code_ = sqlite3_bind_null(statement_, ++bound_);
    return *this;
  }
  Statement& Bind(const std::optional<std::string>& value) {
    if (value) return Bind(std::string_view(*value));
    if (code_ == SQLITE_OK) code_ = sqlite3_bind_null(statement_, ++bound_);
    return *this;
  }

  // Whether there is a row. All has gone well while code() is SQLITE_OK.
  bool Step() {
    if (code_ != SQLITE_OK) return false;
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) code_ = code;
    return false;
  }
  int Run() {
    while (Step()) {
    }
    return code_;
  }
  int code() const { return code_; }

  // For other parameters.
  void Reset() {
    sqlite3_reset(statement_);
    bound_ = 0;
  }

  int64_t Integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double Real(int column) const { return sqlite3_column_double(statement_, column); }
  bool IsNull(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  std::string Text(int column) const {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return text == nullptr
               ? ""
               : std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
  int code_ = SQLITE_OK;
  int bound_ = 0;
};

}  // namespace rudderfish::internal
