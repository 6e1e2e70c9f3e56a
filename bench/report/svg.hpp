#pragma once

/// A minimal SVG writer for the charts of the HTML report. Elements have classes of the report's style sheet, which
/// alone decides about light and dark.

#include <string>
#include <string_view>
#include <vector>

namespace tessera::bench {

/// Escapes the characters that have a meaning in HTML.
std::string escaped(std::string_view text);

struct Point {
    double x;
    double y;
};

class Svg {
public:
    /// Sizes are in units of the drawing; the page scales it to its width.
    Svg(double width, double height, std::string_view label);

    void line(Point from, Point to, std::string_view style);
    /// `tip` appears when the pointer rests on the element.
    void rectangle(Point corner, double width, double height, std::string_view style, std::string_view tip = {});
    void circle(Point center, double radius, std::string_view style, std::string_view tip = {});
    void polyline(const std::vector<Point>& points, std::string_view style);
    /// `style` also says which part of the text is at `at`: "start", "middle" or "end".
    void text(Point at, std::string_view style, std::string_view content);

    /// Returns the whole element.
    std::string finish() const { return text_ + "</svg>\n"; }

private:
    std::string text_;
};

/// Maps values to positions, linearly or logarithmically.
class Scale {
public:
    static Scale linear(double low, double high, double from, double to) { return {low, high, from, to, false}; }
    static Scale logarithmic(double low, double high, double from, double to) { return {low, high, from, to, true}; }

    /// Values outside of the range are placed on its edge.
    double operator()(double value) const;

private:
    Scale(double low, double high, double from, double to, bool logarithmic)
        : low_(low), high_(high), from_(from), to_(to), logarithmic_(logarithmic)
    {}

    double low_;
    double high_;
    double from_;
    double to_;
    bool logarithmic_;
};

}  // namespace tessera::bench
