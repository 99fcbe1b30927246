// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <fstream>
#include <string>
#include <utility>

/// A drawing with the origin at the top left, written out as SVG. Words lie above all else, with a white seam.
class svg {
 public:
  svg(double width, double height)
      : body_("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(width) + "\" height=\"" + number(height) +
              "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
              "fill=\"white\"/>\n") {}

  void line(double x1, double y1, double x2, double y2, const std::string& colour, double width = 1) {
    body_ += "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) + "\" y2=\"" + number(y2) +
             "\" stroke=\"" + colour + "\" stroke-width=\"" + number(width) + "\"/>\n";
  }
  void circle(double x, double y, double radius, const std::string& colour) {
    body_ += "<circle cx=\"" + number(x) + "\" cy=\"" + number(y) + "\" r=\"" + number(radius) + "\" fill=\"" + colour +
             "\"/>\n";
  }
  void box(double x, double y, double width, double height, const std::string& colour) {
    body_ += "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(width) + "\" height=\"" +
             number(height) + "\" fill=\"" + colour + "\"/>\n";
  }
  /// The words begin at x, or with the anchor "middle" or "end" have their middle or end there.
  void text(double x, double y, const std::string& words, const std::string& anchor = "start") {
    words_ += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor +
              "\" stroke=\"white\" stroke-width=\"3\" paint-order=\"stroke\">" + escaped(words) + "</text>\n";
  }

  /// False if the file cannot be written.
  [[nodiscard]] bool write(const std::string& path) const {
    std::ofstream file(path);
    file << body_ << words_ << "</svg>\n";
    return static_cast<bool>(file);
  }

 private:
  static std::string number(double value) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.1f", value);
    return buffer;
  }

  static std::string escaped(const std::string& words) {
    std::string out;
    for (const char c : words) out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
    return out;
  }

  std::string body_, words_;
};
