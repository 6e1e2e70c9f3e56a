#include "report/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tessera::bench {
namespace {

/// Closes an element that may have a tip.
std::string closed(std::string_view name, std::string_view tip)
{
    return tip.empty() ? "/>\n" : fmt::format("><title>{}</title></{}>\n", escaped(tip), name);
}

}  // namespace

std::string escaped(std::string_view text)
{
    std::string result;
    for (const char character : text) {
        switch (character) {
            case '&': result += "&amp;"; break;
            case '<': result += "&lt;"; break;
            case '>': result += "&gt;"; break;
            case '"': result += "&quot;"; break;
            default: result += character;
        }
    }
    return result;
}

Svg::Svg(double width, double height, std::string_view label)
    : text_(fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">\n", width, height,
                        escaped(label)))
{}

void Svg::line(Point from, Point to, std::string_view style)
{
    text_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", from.x,
                         from.y, to.x, to.y, style);
}

void Svg::rectangle(Point corner, double width, double height, std::string_view style, std::string_view tip)
{
    text_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"{}\"", corner.x,
                         corner.y, width, height, style) +
             closed("rect", tip);
}

void Svg::circle(Point center, double radius, std::string_view style, std::string_view tip)
{
    text_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" class=\"{}\"", center.x, center.y, radius,
                         style) +
             closed("circle", tip);
}

void Svg::polyline(const std::vector<Point>& points, std::string_view style)
{
    std::string list;
    for (const Point& point : points) {
        list += fmt::format("{}{:.1f},{:.1f}", list.empty() ? "" : " ", point.x, point.y);
    }
    text_ += fmt::format("<polyline points=\"{}\" class=\"{}\"/>\n", list, style);
}

void Svg::text(Point at, std::string_view style, std::string_view content)
{
    text_ +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", at.x, at.y, style, escaped(content));
}

double Scale::operator()(double value) const
{
    const double inside = std::clamp(value, low_, high_);
    const double part =
        logarithmic_ ? std::log(inside / low_) / std::log(high_ / low_) : (inside - low_) / (high_ - low_);
    return std::lerp(from_, to_, part);
}

}  // namespace tessera::bench
