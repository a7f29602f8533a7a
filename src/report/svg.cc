// SPDX-License-Identifier: Apache-2.0
#include "report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "base/check.h"

namespace rudderfish {
namespace {

// A hundredth of a pixel is enough, and keeps files small and diffs readable.
std::string Px(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string PathOf(std::span<const SvgPoint> points) {
  std::string path;
  for (const SvgPoint& point : points) {
    path += fmt::format("{}{} {}", path.empty() ? "M" : "L", Px(point.x), Px(point.y));
  }
  return path;
}

std::string Grouped(int64_t value) {
  std::string digits = fmt::format("{}", std::abs(value));
  for (int i = static_cast<int>(digits.size()) - 3; i > 0; i -= 3) digits.insert(i, ",");
  return (value < 0 ? "\u2212" : "") + digits;
}

}  // namespace

std::string EscapeXml(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        // Control characters may not stand in XML at all.
        escaped += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return escaped;
}

Svg::Svg(double width, double height, std::string_view title, std::string_view description) {
  text_ = fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n<title>{}</title>"
      "<desc>{}</desc>\n",
      Px(width), Px(height), EscapeXml(title), EscapeXml(title), EscapeXml(description));
}

void Svg::Line(SvgPoint from, SvgPoint to, std::string_view css) {
  text_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"/>\n", Px(from.x),
                       Px(from.y), Px(to.x), Px(to.y), css);
}

void Svg::Polyline(std::span<const SvgPoint> points, std::string_view css) {
  if (points.empty()) return;
  text_ += fmt::format("<path d=\"{}\" class=\"{}\"/>\n", PathOf(points), css);
}

void Svg::Steps(std::span<const SvgPoint> points, std::string_view css) {
  if (points.empty()) return;
  std::string path = fmt::format("M{} {}", Px(points[0].x), Px(points[0].y));
  for (size_t i = 1; i < points.size(); ++i) {
    path += fmt::format("H{}", Px(points[i].x));
    if (points[i].y != points[i - 1].y) path += fmt::format("V{}", Px(points[i].y));
  }
  text_ += fmt::format("<path d=\"{}\" class=\"{}\"/>\n", path, css);
}

void Svg::Band(std::span<const SvgPoint> upper, std::span<const SvgPoint> lower,
               std::string_view css) {
  if (upper.empty()) return;
  std::vector<SvgPoint> outline(upper.begin(), upper.end());
  outline.insert(outline.end(), lower.rbegin(), lower.rend());
  text_ += fmt::format("<path d=\"{}Z\" class=\"{}\"/>\n", PathOf(outline), css);
}

void Svg::Rect(SvgPoint corner, double width, double height, double radius, std::string_view css) {
  text_ +=
      fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\" class=\"{}\"/>\n",
                  Px(corner.x), Px(corner.y), Px(width), Px(height), Px(radius), css);
}

void Svg::Circle(SvgPoint center, double radius, std::string_view css) {
  text_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" class=\"{}\"/>\n", Px(center.x),
                       Px(center.y), Px(radius), css);
}

void Svg::Flow(SvgPoint from, SvgPoint to, double width, std::string_view css) {
  const double middle = (from.x + to.x) / 2;
  text_ += fmt::format(
      "<path d=\"M{} {}C{} {} {} {} {} {}\" class=\"{}\" fill=\"none\" stroke-width=\"{}\"/>\n",
      Px(from.x), Px(from.y), Px(middle), Px(from.y), Px(middle), Px(to.y), Px(to.x), Px(to.y), css,
      Px(width));
}

void Svg::Text(SvgPoint at, std::string_view text, std::string_view css, TextAnchor anchor) {
  const std::string_view anchors[] = {"start", "middle", "end"};
  text_ += fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n",
                       Px(at.x), Px(at.y), css, anchors[static_cast<int>(anchor)], EscapeXml(text));
}

void Svg::BeginGroup(std::string_view css, std::string_view tooltip) {
  text_ += fmt::format("<g class=\"{}\"><title>{}</title>\n", css, EscapeXml(tooltip));
}

void Svg::EndGroup() { text_ += "</g>\n"; }

std::string Svg::Finish() && { return std::move(text_) + "</svg>\n"; }

LinearScale::LinearScale(double low, double high, double at_low, double at_high)
    : low_(low),
      high_(high),
      slope_((at_high - at_low) / (high - low)),
      offset_(at_low - slope_ * low) {
  CHECK_LT(low, high);
}

std::vector<double> NiceTicks(double low, double high, int count) {
  CHECK_LT(low, high);
  CHECK_GT(count, 0);
  const double rough = (high - low) / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough * 0.8) step = factor * power;
  }
  std::vector<double> ticks;
  // By whole numbers, so that 0.1 * 3 is not summed up to 0.30000000000000004.
  const auto first = static_cast<int64_t>(std::ceil(low / step - 1e-9));
  const auto last = static_cast<int64_t>(std::floor(high / step + 1e-9));
  for (int64_t i = first; i <= last; ++i) ticks.push_back(static_cast<double>(i) * step);
  return ticks;
}

std::string TickText(double value, double step) {
  if (value == 0) return "0";
  if (step >= 1e5) {
    const int decimals = step < 1e6 ? 1 : 0;
    return fmt::format("{:.{}f} M", value / 1e6, decimals);
  }
  if (step >= 1) return Grouped(std::llround(value));
  const int decimals = static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
  return fmt::format("{}{:.{}f}", value < 0 ? "\u2212" : "", std::abs(value), decimals);
}

std::vector<double> SpreadLabels(std::vector<double> wanted, double gap, double low, double high) {
  const size_t n = wanted.size();
  if (n == 0) return wanted;
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });
  std::vector<double> placed(n);
  if (static_cast<double>(n - 1) * gap >= high - low) {
    for (size_t i = 0; i < n; ++i) {
      placed[order[i]] =
          n == 1 ? low : low + (high - low) * static_cast<double>(i) / static_cast<double>(n - 1);
    }
    return placed;
  }
  // Isotonic regression (pool adjacent violators) of what each label wants less the room that those
  // before it take: the placement with the least sum of squared shifts.
  struct Block {
    double sum = 0;
    double count = 0;
    double mean() const { return sum / count; }
  };
  std::vector<Block> blocks;
  for (size_t i = 0; i < n; ++i) {
    blocks.push_back({wanted[order[i]] - static_cast<double>(i) * gap, 1});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() > blocks.back().mean()) {
      const Block last = blocks.back();
      blocks.pop_back();
      blocks.back().sum += last.sum;
      blocks.back().count += last.count;
    }
  }
  size_t i = 0;
  for (const Block& block : blocks) {
    const double at = std::clamp(block.mean(), low, high - static_cast<double>(n - 1) * gap);
    for (double k = 0; k < block.count; ++k, ++i) {
      placed[order[i]] = at + static_cast<double>(i) * gap;
    }
  }
  return placed;
}

double TextWidth(std::string_view text, double font_px) {
  double ems = 0;
  for (char c : text) {
    if ((c & 0xC0) == 0x80) continue;  // The rest of a UTF-8 sequence.
    ems += std::string_view("iljtf.,:;|' ()[]").find(c) != std::string_view::npos ? 0.37
           : std::string_view("mwMW%").find(c) != std::string_view::npos          ? 0.95
           : c >= 'A' && c <= 'Z'                                                 ? 0.68
                                                                                  : 0.6;
  }
  return ems * font_px;
}

std::string FitText(std::string_view text, double font_px, double width, Keep keep) {
  if (TextWidth(text, font_px) <= width) return std::string(text);
  const auto continues = [](char c) { return (c & 0xC0) == 0x80; };  // Within a UTF-8 sequence.
  while (!text.empty() && TextWidth(text, font_px) + font_px > width) {
    if (keep == Keep::kBeginning) {
      while (text.size() > 1 && continues(text.back())) text.remove_suffix(1);
      text.remove_suffix(1);
    } else {
      text.remove_prefix(1);
      while (!text.empty() && continues(text.front())) text.remove_prefix(1);
    }
  }
  return keep == Keep::kBeginning ? std::string(text) + "\u2026" : "\u2026" + std::string(text);
}

namespace {

std::vector<std::pair<double, std::string>> MarksOf(const PlotAxis& axis) {
  if (!axis.marks.empty() || axis.ticks == 0) return axis.marks;
  std::vector<std::pair<double, std::string>> marks;
  const std::vector<double> ticks = NiceTicks(axis.low, axis.high, axis.ticks);
  const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : 1;
  for (const double tick : ticks) marks.emplace_back(tick, TickText(tick, step) + axis.suffix);
  return marks;
}

}  // namespace

Plot::Plot(Svg* svg, const PlotFrame& frame, const PlotAxis& x, const PlotAxis& y)
    : svg_(svg),
      frame_(frame),
      x_(x.low, x.high, frame.left, frame.right),
      y_(y.low, y.high, frame.bottom, frame.top) {
  for (const auto& [tick, text] : MarksOf(y)) {
    svg->Line({frame.left, y_(tick)}, {frame.right, y_(tick)}, tick == 0 ? "axis" : "grid");
    svg->Text({frame.left - 8, y_(tick) + 4}, text, "tick", TextAnchor::kEnd);
  }
  svg->Text({0, frame.top - 14}, y.label, "axis-label");
  svg->Line({frame.left, frame.bottom}, {frame.right, frame.bottom}, "axis");
  for (const auto& [tick, text] : MarksOf(x)) {
    svg->Line({x_(tick), frame.bottom}, {x_(tick), frame.bottom + 5}, "axis");
    svg->Text({x_(tick), frame.bottom + 20}, text, "tick", TextAnchor::kMiddle);
  }
  svg->Text({frame.right, frame.bottom + 40}, x.label, "axis-label", TextAnchor::kEnd);
}

std::vector<SvgPoint> Plot::Mapped(std::span<const SvgPoint> data) const {
  std::vector<SvgPoint> mapped;
  for (size_t i = 0; i < data.size(); ++i) {
    if (data[i].x > x_.high()) {
      if (i == 0) break;
      const SvgPoint &a = data[i - 1], &b = data[i];
      const double share = (x_.high() - a.x) / (b.x - a.x);
      mapped.push_back(At(x_.high(), a.y + share * (b.y - a.y)));
      break;
    }
    mapped.push_back(At(data[i].x, data[i].y));
  }
  return mapped;
}

void Plot::Curve(std::span<const SvgPoint> data, std::string_view css) {
  svg_->Polyline(Mapped(data), css);
}

void Plot::Staircase(std::span<const SvgPoint> data, std::string_view css) {
  std::vector<SvgPoint> steps;
  const auto draw_to = [&](double x) {
    if (steps.empty()) return;
    if (steps.back().x < x) steps.push_back({x, steps.back().y});
    svg_->Steps(steps, css);
    steps.clear();
  };
  for (const SvgPoint& point : data) {
    if (point.x > x_.high()) break;
    if (std::isnan(point.y)) {
      draw_to(At(point.x, y_.low()).x);
    } else {
      steps.push_back(At(point.x, point.y));
    }
  }
  draw_to(frame_.right);
}

void Plot::Area(std::span<const SvgPoint> upper, std::span<const SvgPoint> lower,
                std::string_view css) {
  svg_->Band(Mapped(upper), Mapped(lower), css);
}

}  // namespace rudderfish
