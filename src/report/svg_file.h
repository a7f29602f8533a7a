// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

// A figure of a report as an SVG file of its own: the report's light colours on a white card with
// its caption, readable wherever a page shows it, also one with a dark background. Variables of the
// style sheet are put in by value, since many programs that show SVG do not know them.

namespace rudderfish {

// REQUIRES: `svg` is what Svg::Finish gives.
std::string SvgFile(std::string_view title, std::string_view explanation, std::string_view svg);

}  // namespace rudderfish
