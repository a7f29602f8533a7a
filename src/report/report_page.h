// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "evaluation/statistics.h"

// What reports have in common: the page around them, captions, tiles, numbers with a true minus
// sign. Texts are escaped here unless they are called html.

namespace rudderfish {

// A whole page: `html` stands within <main>.
std::string ReportPage(std::string_view title, std::string_view html);

std::string ReportFigure(std::string_view title, std::string_view explanation,
                         std::string_view html, std::string_view css = "");
std::string ReportSection(std::string_view title, std::string_view text);
std::string ReportTile(std::string_view figure, std::string_view text);
std::string ReportFact(std::string_view name, std::string_view html);  // Empty if html is.

// "+1.2", "−0.3", "0.0".
std::string SignedNumber(double value, int decimals = 1);
std::string SignedIntervalText(const ConfidenceInterval& interval, int decimals = 1);

}  // namespace rudderfish
