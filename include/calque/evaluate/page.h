// Page: a self-contained HTML page, readable in light and dark, built from top to bottom.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace calque {

std::string escape_html(const std::string& text);

// A chart or a table as an SVG picture of its own, with its title, in light or dark as the reader's screen
// is.
std::string standalone_figure(const std::string& title, const std::string& html);

class Page {
 public:
  explicit Page(const std::string& title);

  void heading(const std::string& text);
  void paragraph(const std::string& text);
  void code(const std::string& text);
  void facts(
      const std::vector<std::pair<std::string, std::string>>& facts);  // names and values, side by side
  void raw(const std::string& html) { body_ += html; }                 // charts and the like

  std::string html() const;

 private:
  std::string title_;
  std::string body_;
};

}  // namespace calque
