// SPDX-License-Identifier: Apache-2.0
#include "report/svg_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "report/report_figures.h"
#include "report/svg.h"

namespace rudderfish {
namespace {

constexpr double kMargin = 26, kHead = 48;  // Around a figure, and of its caption.

struct CssRule {
  std::vector<std::string> selectors;
  std::string body;
};

std::string Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \n\t"), end = text.find_last_not_of(" \n\t");
  return begin == text.npos ? "" : std::string(text.substr(begin, end - begin + 1));
}

// Rules outside of @media.
std::vector<CssRule> RulesOf(std::string_view sheet) {
  std::vector<CssRule> rules;
  for (size_t at = 0; at < sheet.size();) {
    const size_t open = sheet.find('{', at);
    if (open == sheet.npos) break;
    const std::string head = Trimmed(sheet.substr(at, open - at));
    size_t close = open + 1;
    for (int depth = 1; depth > 0; ++close) {
      CHECK_LT(close, sheet.size());
      depth += sheet[close] == '{' ? 1 : sheet[close] == '}' ? -1 : 0;
    }
    at = close;
    if (head.starts_with('@')) continue;
    CssRule rule{.body = std::string(sheet.substr(open + 1, close - open - 2))};
    for (size_t begin = 0; begin <= head.size();) {
      const size_t end = std::min(head.find(',', begin), head.size());
      rule.selectors.push_back(Trimmed(std::string_view(head).substr(begin, end - begin)));
      begin = end + 1;
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

// What variables stand for: those of :root, and what groups hand down to what is in them.
struct CssVariables {
  std::map<std::string, std::string> root;
  std::map<std::string, std::vector<std::pair<std::string, std::string>>>
      given;  // Selector, value.

  std::string PutIn(std::string text) const {
    static const std::regex use(R"(var\((--[\w-]+)\))");
    std::string result;
    for (std::smatch match; std::regex_search(text, match, use); text = match.suffix()) {
      const auto value = root.find(match[1]);
      result += match.prefix().str() + (value == root.end() ? match.str() : PutIn(value->second));
    }
    return result + text;
  }
};

const std::regex& Definition() {
  static const std::regex definition(R"((--[\w-]+):\s*([^;]+);?)");
  return definition;
}

CssVariables VariablesOf(const std::vector<CssRule>& rules) {
  CssVariables variables;
  for (const CssRule& rule : rules) {
    for (std::sregex_iterator it(rule.body.begin(), rule.body.end(), Definition()), end; it != end;
         ++it) {
      const std::string name = (*it)[1], value = Trimmed((*it)[2].str());
      if (rule.selectors[0] == ":root") {
        variables.root[name] = value;
      } else {
        for (const std::string& selector : rule.selectors)
          variables.given[name].emplace_back(selector, value);
      }
    }
  }
  return variables;
}

// Only selectors whose classes all occur in the figure, without the `svg` before them.
std::vector<std::string> Kept(const std::vector<std::string>& selectors,
                              const std::set<std::string>& used) {
  static const std::regex css_class(R"(\.([A-Za-z][\w-]*))");
  std::vector<std::string> kept;
  for (std::string selector : selectors) {
    if (selector.starts_with("svg ")) selector = selector.substr(4);
    bool fits = selector == "text";
    for (std::sregex_iterator it(selector.begin(), selector.end(), css_class), end; it != end;
         ++it) {
      fits = used.contains((*it)[1]);
      if (!fits) break;
    }
    if (fits) kept.push_back(selector);
  }
  return kept;
}

std::string StyleFor(std::string_view svg) {
  std::set<std::string> used;
  static const std::regex attribute("class=\"([^\"]*)\""), word(R"([\w-]+)");
  const std::string text(svg);
  for (std::sregex_iterator it(text.begin(), text.end(), attribute), end; it != end; ++it) {
    const std::string names = (*it)[1];
    for (std::sregex_iterator one(names.begin(), names.end(), word); one != end; ++one)
      used.insert(one->str());
  }
  const std::vector<CssRule> rules = RulesOf(kReportStyle);
  const CssVariables variables = VariablesOf(rules);
  std::string style;
  const auto add = [&](const std::vector<std::string>& selectors, const std::string& body) {
    const std::vector<std::string> kept = Kept(selectors, used);
    if (!kept.empty()) style += fmt::format("{} {{ {} }}\n", fmt::join(kept, ", "), body);
  };
  for (const CssRule& rule : rules) {
    const std::string body =
        Trimmed(variables.PutIn(std::regex_replace(rule.body, Definition(), "")));
    if (body.empty()) continue;
    const size_t open = body.find("var(");
    if (open == body.npos) {
      add(rule.selectors, body);
      continue;
    }
    // One rule for each group that hands the variable down.
    const std::string use = body.substr(open, body.find(')', open) + 1 - open);
    const auto given = variables.given.find(use.substr(4, use.size() - 5));
    if (given == variables.given.end()) continue;
    for (const auto& [group, value] : given->second) {
      std::vector<std::string> selectors;
      for (const std::string& selector : rule.selectors) {
        const std::string plain = selector.starts_with("svg ") ? selector.substr(4) : selector;
        selectors.push_back(fmt::format("{} {}", group, plain));
        selectors.push_back(plain + group);
      }
      std::string put = body;
      for (size_t at; (at = put.find(use)) != put.npos;)
        put.replace(at, use.size(), variables.PutIn(value));
      add(selectors, put);
    }
  }
  return style;
}

}  // namespace

std::string SvgFile(std::string_view title, std::string_view explanation, std::string_view svg) {
  constexpr std::string_view kBox = "viewBox=\"0 0 ";
  const size_t box = svg.find(kBox), body = svg.find('>') + 1, end = svg.rfind("</svg>");
  CHECK(box != svg.npos && end != svg.npos);
  double size[2];
  const std::string numbers(svg.substr(box + kBox.size(), 40));
  char* rest = nullptr;
  size[0] = std::strtod(numbers.c_str(), &rest);
  size[1] = std::strtod(rest, nullptr);
  const double width = size[0] + 2 * kMargin, height = size[1] + kHead + 2 * kMargin;
  return fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}" )"
      R"(role="img" aria-label="{2}" font-family='system-ui, -apple-system, "Segoe UI", Roboto, )"
      R"svg("Helvetica Neue", "Liberation Sans", Arial, sans-serif'>
<style>
.card {{ fill: #ffffff; stroke: #e3e1dc; }}
.caption {{ fill: #17202a; font-size: 16px; font-weight: 650; }}
.explanation {{ fill: #5a6572; font-size: 13px; }}
{3}</style>
<rect class="card" x=".5" y=".5" width="{4}" height="{5}" rx="14"/>
<text class="caption" x="{6}" y="{7}">{2}</text>
<text class="explanation" x="{6}" y="{8}">{9}</text>
<g transform="translate({6} {10})">
{11}</g>
</svg>
)svg",
      width, height, EscapeXml(title), StyleFor(svg), width - 1, height - 1, kMargin, kMargin + 12,
      kMargin + 32, EscapeXml(explanation), kMargin + kHead, svg.substr(body, end - body));
}

}  // namespace rudderfish
