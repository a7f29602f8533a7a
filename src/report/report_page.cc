// SPDX-License-Identifier: Apache-2.0
#include "report/report_page.h"

#include <fmt/format.h>

#include "evaluation/comparison.h"
#include "report/report_figures.h"
#include "report/svg.h"

namespace rudderfish {

std::string ReportPage(std::string_view title, std::string_view html) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n{}</main>\n"
      "</body>\n</html>\n",
      EscapeXml(title), kReportStyle, html);
}

std::string ReportFigure(std::string_view title, std::string_view explanation,
                         std::string_view html, std::string_view css) {
  return fmt::format(
      "<figure class=\"{}\"><figcaption><b>{}</b><span>{}</span></figcaption>\n"
      "<div class=\"scroll\">{}</div></figure>\n",
      css, EscapeXml(title), EscapeXml(explanation), html);
}

std::string ReportSection(std::string_view title, std::string_view text) {
  return fmt::format("<h2>{}</h2>\n<p>{}</p>\n", EscapeXml(title), EscapeXml(text));
}

std::string ReportTile(std::string_view figure, std::string_view text) {
  return fmt::format("<li><b>{}</b><span>{}</span></li>\n", EscapeXml(figure), EscapeXml(text));
}

std::string ReportFact(std::string_view name, std::string_view html) {
  return html.empty() ? std::string() : fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, html);
}

std::string SignedNumber(double value, int decimals) {
  std::string text = SignedText(value, decimals);
  if (text[0] == '-') text.replace(0, 1, "\u2212");
  return text;
}

std::string SignedIntervalText(const ConfidenceInterval& interval, int decimals) {
  return fmt::format("[{}, {}]", SignedNumber(interval.low, decimals),
                     SignedNumber(interval.high, decimals));
}

}  // namespace rudderfish
