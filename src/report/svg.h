// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Figures as SVG text (SVG 1.1 with CSS classes; the page's style sheet gives colours, so that one
// figure serves light, dark and print). Coordinates are CSS pixels, y downwards. Text and attribute
// values are escaped here; `css` arguments are class lists of our own.

namespace rudderfish {

struct SvgPoint {
  double x = 0;
  double y = 0;
};

enum class TextAnchor { kStart, kMiddle, kEnd };

// For text between tags and within double quotes.
std::string EscapeXml(std::string_view text);

class Svg {
 public:
  // `title` and `description` are what a screen reader says of the figure.
  Svg(double width, double height, std::string_view title, std::string_view description);

  void Line(SvgPoint from, SvgPoint to, std::string_view css);
  void Polyline(std::span<const SvgPoint> points, std::string_view css);
  // Holds each y until the next x.
  void Steps(std::span<const SvgPoint> points, std::string_view css);
  // The area between two curves with the same x.
  void Band(std::span<const SvgPoint> upper, std::span<const SvgPoint> lower, std::string_view css);
  void Rect(SvgPoint corner, double width, double height, double radius, std::string_view css);
  void Circle(SvgPoint center, double radius, std::string_view css);
  // A line that leaves and arrives level, `width` wide.
  void Flow(SvgPoint from, SvgPoint to, double width, std::string_view css);
  void Text(SvgPoint at, std::string_view text, std::string_view css,
            TextAnchor anchor = TextAnchor::kStart);
  // What is drawn until EndGroup shows `tooltip` under the pointer.
  void BeginGroup(std::string_view css, std::string_view tooltip);
  void EndGroup();

  std::string Finish() &&;

 private:
  std::string text_;
};

// Maps values onto pixels.
class LinearScale {
 public:
  // REQUIRES: low < high.
  LinearScale(double low, double high, double at_low, double at_high);

  double operator()(double value) const { return offset_ + slope_ * value; }
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  double low_, high_, slope_, offset_;
};

// Multiples of 1, 2 or 5 times a power of ten within [low, high]; about `count` of them.
// REQUIRES: low < high, both finite; count > 0.
std::vector<double> NiceTicks(double low, double high, int count);

// "0.25", "1,200", "2.5 M": as many digits as tell ticks `step` apart.
std::string TickText(double value, double step);

// Moves positions apart until neighbours are `gap` from each other, as little as it takes, within
// [low, high]; for labels at the ends of lines. If there is no room for all, they are evenly
// spread.
std::vector<double> SpreadLabels(std::vector<double> wanted, double gap, double low, double high);

// Width of text set in a sans-serif font, at most: fonts differ by a tenth.
double TextWidth(std::string_view text, double font_px);

// The text, or as much of its beginning or end as fits, with an ellipsis.
enum class Keep { kBeginning, kEnd };
std::string FitText(std::string_view text, double font_px, double width, Keep keep);

// Where a plot stands within its figure.
struct PlotFrame {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
};

struct PlotAxis {
  double low = 0;
  double high = 1;
  std::string label;   // With its unit.
  int ticks = 5;       // About as many; 0: none.
  std::string suffix;  // After each number: " %".
  // Where they are not round numbers: position, text.
  std::vector<std::pair<double, std::string>> marks;
};

// Axes, horizontal grid lines and labels; then curves in data coordinates.
class Plot {
 public:
  Plot(Svg* svg, const PlotFrame& frame, const PlotAxis& x, const PlotAxis& y);

  SvgPoint At(double x, double y) const { return {x_(x), y_(y)}; }
  // Cuts points off at the right edge of the frame. A step to NaN is a gap.
  void Curve(std::span<const SvgPoint> data, std::string_view css);
  void Staircase(std::span<const SvgPoint> data, std::string_view css);
  void Area(std::span<const SvgPoint> upper, std::span<const SvgPoint> lower, std::string_view css);

  const PlotFrame& frame() const { return frame_; }
  Svg& svg() { return *svg_; }

 private:
  std::vector<SvgPoint> Mapped(std::span<const SvgPoint> data) const;

  Svg* svg_;
  PlotFrame frame_;
  LinearScale x_, y_;
};

}  // namespace rudderfish
