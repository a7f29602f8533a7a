// SPDX-License-Identifier: Apache-2.0
#include "base/yaml_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/yaml_tree.h"

namespace rudderfish {
namespace {

constexpr size_t kColumns = 100;

bool LooksLikeNumber(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  if (text.starts_with('.')) text.remove_prefix(1);
  return !text.empty() && text.front() >= '0' && text.front() <= '9' &&
         text.find_first_not_of("0123456789.eExXabcdefABCDEF_+-:") == std::string_view::npos;
}

// Whether `text` unquoted ends where it should, also within [] and {}.
bool IsUnquotable(std::string_view text) {
  constexpr std::string_view kIndicators = "-?:,[]{}#&*!|>'\"%@`=<. ";
  if (text.empty() || text.back() == ' ' || text.back() == ':') return false;
  if (kIndicators.find(text.front()) != std::string_view::npos) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c == 0x7F ||
        std::string_view(",[]{}?").find(text[i]) != std::string_view::npos) {
      return false;
    }
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    if ((c == ':' && next == ' ') || (c == ' ' && next == '#')) return false;
  }
  return true;
}

// Whether `text` unquoted is a string to every reader of YAML, 1.1 or 1.2.
bool IsPlainString(std::string_view text) {
  constexpr std::string_view kWords[] = {"null", "true", "false", "yes", "no",
                                         "on",   "off",  "y",     "n",   "~"};
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return IsUnquotable(text) && !LooksLikeNumber(text) &&
         std::find(std::begin(kWords), std::end(kWords), lower) == std::end(kWords);
}

std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

// A scalar that was read, so that it reads as the same kind again.
std::string ScalarText(const YamlEntry& entry) {
  if (entry.kind == YamlKind::kNull) return "null";
  const bool stays_plain = IsUnquotable(entry.text) || LooksLikeNumber(entry.text);
  return entry.kind == YamlKind::kPlain && stays_plain ? entry.text : Quote(entry.text);
}

// A node that was read, in one line.
std::string FlowText(const YamlTree& tree, const YamlEntry& entry) {
  if (entry.kind != YamlKind::kList && entry.kind != YamlKind::kMap) return ScalarText(entry);
  const bool map = entry.kind == YamlKind::kMap;
  std::string text(1, map ? '{' : '[');
  for (const int child : entry.children) {
    if (text.size() > 1) text += ", ";
    if (map) text += YamlScalar(tree.entries[child].key).text() + ": ";
    text += FlowText(tree, tree.entries[child]);
  }
  return text + (map ? '}' : ']');
}

}  // namespace

YamlScalar::YamlScalar(std::string_view text)
    : text_(IsPlainString(text) ? std::string(text) : Quote(text)) {}

YamlScalar::YamlScalar(double value) : text_(fmt::format("{}", value)) {
  CHECK(std::isfinite(value));
}

void YamlWriter::Comment(std::string_view text) {
  CHECK(!after_dash_);
  for (;;) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text_ += fmt::format("{}#{}{}\n", Indent(), line.empty() ? "" : " ", line);
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

void YamlWriter::BlankLine() {
  CHECK(!after_dash_);
  text_ += '\n';
}

void YamlWriter::Field(std::string_view key, const YamlScalar& value) {
  Key(key);
  text_ += fmt::format(" {}\n", value.text());
}

void YamlWriter::Text(std::string_view key, std::string_view lines) {
  CHECK(lines.ends_with('\n'));
  Key(key);
  text_ += " |\n";
  while (!lines.empty()) {
    const size_t end = lines.find('\n');
    text_ += fmt::format("{}  {}\n", Indent(), lines.substr(0, end));
    lines.remove_prefix(end + 1);
  }
}

void YamlWriter::FlowList(std::string_view key, std::span<const YamlScalar> values) {
  Key(key);
  std::vector<std::string> texts;
  for (const YamlScalar& value : values) texts.push_back(value.text());
  Flow('[', texts, ']');
}

void YamlWriter::FlowList(std::string_view key, std::initializer_list<YamlScalar> values) {
  FlowList(key, std::span<const YamlScalar>(values.begin(), values.size()));
}

void YamlWriter::FlowMap(std::string_view key, const Fields& fields) {
  Key(key);
  FlowFields(fields);
}

void YamlWriter::BeginMap(std::string_view key) {
  Key(key);
  text_ += '\n';
  open_.push_back({Block::kMap, text_.size()});
}

void YamlWriter::BeginList(std::string_view key) {
  Key(key);
  text_ += '\n';
  open_.push_back({Block::kList, text_.size()});
}

void YamlWriter::Item(const YamlScalar& value) {
  Dash();
  text_ += fmt::format(" {}\n", value.text());
}

void YamlWriter::FlowItem(const Fields& fields) {
  Dash();
  FlowFields(fields);
}

void YamlWriter::BeginItem() {
  Dash();
  text_ += ' ';
  after_dash_ = true;
  open_.push_back({Block::kMap, text_.size()});
}

void YamlWriter::End() {
  CHECK(!open_.empty());
  // A block without content would be read as null.
  if (text_.size() == open_.back().start) {
    if (text_.back() == '\n') text_.back() = ' ';
    text_ += open_.back().block == Block::kMap ? "{}\n" : "[]\n";
    after_dash_ = false;
  }
  open_.pop_back();
}

std::string YamlWriter::Take() {
  CHECK(open_.empty());
  return std::exchange(text_, {});
}

void YamlWriter::Node(std::string_view key, const YamlNode& node) {
  if (node.tree_ == nullptr) {
    Key(key);
    text_ += " null\n";
  } else {
    Subtree(key, *node.tree_, node.index_);
  }
}

void YamlWriter::Subtree(std::string_view key, const YamlTree& tree, int index) {
  const YamlEntry& entry = tree.entries[index];
  if (entry.kind == YamlKind::kMap) {
    BeginMap(key);
    for (const int child : entry.children) Subtree(tree.entries[child].key, tree, child);
    End();
    return;
  }
  const bool has_maps = std::any_of(entry.children.begin(), entry.children.end(), [&](int child) {
    return tree.entries[child].kind == YamlKind::kMap;
  });
  if (!has_maps) {
    Key(key);
    text_ += fmt::format(" {}\n", FlowText(tree, entry));
    return;
  }
  BeginList(key);
  for (const int child : entry.children) {
    const YamlEntry& item = tree.entries[child];
    if (item.kind == YamlKind::kMap) {
      BeginItem();
      for (const int field : item.children) Subtree(tree.entries[field].key, tree, field);
      End();
    } else {
      Dash();
      text_ += fmt::format(" {}\n", FlowText(tree, item));
    }
  }
  End();
}

std::string YamlWriter::Indent() const { return std::string(2 * open_.size(), ' '); }

void YamlWriter::Key(std::string_view key) {
  CHECK(open_.empty() || open_.back().block == Block::kMap);
  if (!after_dash_) text_ += Indent();
  after_dash_ = false;
  text_ += YamlScalar(key).text() + ':';
}

void YamlWriter::Dash() {
  CHECK(!open_.empty() && open_.back().block == Block::kList);
  text_ += Indent() + '-';
}

void YamlWriter::Flow(char begin, std::span<const std::string> texts, char end) {
  size_t line = text_.rfind('\n') + 1;  // npos + 1 is 0.
  const std::string margin(text_.size() - line + 2, ' ');
  text_ += ' ';
  text_ += begin;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) text_ += ',';
    if (i > 0 && text_.size() - line + texts[i].size() + 2 > kColumns) {
      text_ += '\n';
      line = text_.size();
      text_ += margin;
    } else if (i > 0) {
      text_ += ' ';
    }
    text_ += texts[i];
  }
  text_ += end;
  text_ += '\n';
}

void YamlWriter::FlowFields(const Fields& fields) {
  std::vector<std::string> texts;
  for (const auto& [key, value] : fields) {
    texts.push_back(YamlScalar(key).text() + ": " + value.text());
  }
  Flow('{', texts, '}');
}

}  // namespace rudderfish
