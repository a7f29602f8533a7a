// SPDX-License-Identifier: Apache-2.0
#include "report/published_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "report/report_page.h"
#include "report/svg.h"

namespace rudderfish {
namespace {

// Of one work, cell by cell.
std::string RowsOfWork(const OrderedJson& quotes, std::string_view by, bool names_cells) {
  const auto text = [](const OrderedJson& quote, const char* key) {
    return EscapeXml(quote[key].get<std::string>());
  };
  std::string rows, cell;
  for (const OrderedJson& quote : quotes) {
    if (quote["by"] != by) continue;
    if (const std::string its_cell = text(quote, "cell"); names_cells && its_cell != cell) {
      cell = its_cell;
      rows +=
          fmt::format("<tr class=\"whole\"><th class=\"left\" colspan=\"4\">{}</th></tr>\n", cell);
    }
    const std::string ours = text(quote, "ours_text");
    rows += fmt::format(
        "<tr class=\"part\"><th class=\"left\" scope=\"row\">{}</th><td class=\"left "
        "words\">{}</td><td><b>{}</b></td><td class=\"left\">{}</td></tr>\n",
        text(quote, "what"), text(quote, "said"), ours.empty() ? "\u2013" : ours,
        text(quote, "ours_of"));
  }
  return rows;
}

}  // namespace

std::string PublishedHtml(const OrderedJson& quotes) {
  std::vector<std::string> works;  // In the order in which they are named.
  for (const OrderedJson& quote : quotes) {
    const auto by = quote["by"].get<std::string>();
    if (std::find(works.begin(), works.end(), by) == works.end()) works.push_back(by);
  }
  const bool names_cells = std::any_of(quotes.begin(), quotes.end(), [&](const OrderedJson& quote) {
    return quote["cell"] != quotes[0]["cell"];
  });
  std::string html;
  for (const std::string& by : works) {
    const auto first = std::find_if(quotes.begin(), quotes.end(),
                                    [&](const OrderedJson& quote) { return quote["by"] == by; });
    const auto note = (*first)["note"].get<std::string>();
    html += ReportSection("Published elsewhere", fmt::format("{}, and our results next to it.{}{}",
                                                             by, note.empty() ? "" : " ", note)) +
            "<figure><div class=\"scroll\"><table class=\"verdicts\"><thead><tr>"
            "<th class=\"left\">what</th><th class=\"left\">published</th><th>here</th>"
            "<th class=\"left\"></th></tr></thead><tbody>\n" +
            RowsOfWork(quotes, by, names_cells) + "</tbody></table></div></figure>\n";
  }
  return html;
}

}  // namespace rudderfish
