#pragma once

/// Just enough SVG for the charts of the HTML report: elements appended to a text, with classes that the report's style
/// sheet knows, so that light and dark are a matter of the style sheet alone.

#include <string>
#include <string_view>
#include <vector>

namespace tessera::bench {

/// The text with the characters that mean something in HTML replaced.
std::string escaped(std::string_view text);

struct Point {
    double x;
    double y;
};

class Svg {
public:
    /// In units of the drawing; the page scales it to its width.
    Svg(double width, double height, std::string_view label);

    void line(Point from, Point to, std::string_view style);
    /// `tip` appears when the pointer rests on it.
    void rectangle(Point corner, double width, double height, std::string_view style, std::string_view tip = {});
    void circle(Point center, double radius, std::string_view style, std::string_view tip = {});
    void polyline(const std::vector<Point>& points, std::string_view style);
    /// `style` also says where `at` is: "start", "middle" or "end" of the text.
    void text(Point at, std::string_view style, std::string_view content);

    /// The whole element.
    std::string finish() const { return text_ + "</svg>\n"; }

private:
    std::string text_;
};

/// From values to positions, linear or logarithmic.
class Scale {
public:
    static Scale linear(double low, double high, double from, double to) { return {low, high, from, to, false}; }
    static Scale logarithmic(double low, double high, double from, double to) { return {low, high, from, to, true}; }

    /// Values outside of the range are put on its edge.
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
