// Page: a self-contained HTML page, readable in light and dark, built from top to bottom.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace calque {

std::string escape_html(const std::string& text);

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
