// Page: builds a self-contained HTML page from top to bottom, with a light and a dark theme.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace calque {

std::string escape_html(const std::string& text);

// A chart or a table with a title as a standalone SVG image, with a light and a dark theme.
std::string standalone_figure(const std::string& title, const std::string& html);

class Page {
 public:
  explicit Page(const std::string& title);

  void heading(const std::string& text);
  void paragraph(const std::string& text);
  void code(const std::string& text);
  // Names and values, as a row of boxes.
  void facts(const std::vector<std::pair<std::string, std::string>>& facts);
  void raw(const std::string& html) { body_ += html; }  // for charts and tables

  std::string html() const;

 private:
  std::string title_;
  std::string body_;
};

}  // namespace calque
