#include "calque/report/page.h"

#include <fmt/format.h>

namespace calque {
namespace {

constexpr const char* style = R"css(
:root { color-scheme: light dark; --ink: #1d2329; --soft: #5c6773; --paper: #ffffff; --card: #f5f6f8; --grid: #e2e5e9;
  --c0: #2563c9; --c1: #d9540b; --c2: #15803d; --c3: #9333b5; --c4: #b3801a; --c5: #c0264b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --soft: #9aa5b1; --paper: #15181c; --card: #1e2227; --grid: #30363d;
  --c0: #6ea8ff; --c1: #ff9d5c; --c2: #5fd08a; --c3: #d08af0; --c4: #e3b44f; --c5: #ff7b96; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 860px; padding: 2rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 1rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
.facts { display: flex; flex-wrap: wrap; gap: .75rem; margin: 0; }
.facts div { background: var(--card); border-radius: 8px; padding: .55rem .9rem; }
.facts dt { color: var(--soft); font-size: .8rem; } .facts dd { margin: 0; font-variant-numeric: tabular-nums; font-weight: 600; }
svg { width: 100%; height: auto; display: block; } .grid { stroke: var(--grid); } .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.tick, .axis { fill: var(--soft); font-size: 12px; } .legend span { margin-right: 1.2rem; color: var(--soft); font-size: .9rem; }
.legend b { color: var(--ink); font-variant-numeric: tabular-nums; } .legend i { display: inline-block; width: 1.1em; height: .25em; margin-right: .45em; vertical-align: middle; }
path.muted { stroke: var(--grid); } circle.muted { fill: var(--soft); }
path.series-0 { stroke: var(--c0); } path.series-1 { stroke: var(--c1); } path.series-2 { stroke: var(--c2); }
path.series-3 { stroke: var(--c3); } path.series-4 { stroke: var(--c4); } path.series-5 { stroke: var(--c5); }
circle.series-0 { fill: var(--c0); } circle.series-1 { fill: var(--c1); } circle.series-2 { fill: var(--c2); }
circle.series-3 { fill: var(--c3); } circle.series-4 { fill: var(--c4); } circle.series-5 { fill: var(--c5); }
i.series-0 { background: var(--c0); } i.series-1 { background: var(--c1); } i.series-2 { background: var(--c2); }
i.series-3 { background: var(--c3); } i.series-4 { background: var(--c4); } i.series-5 { background: var(--c5); }
rect.series-0 { fill: var(--c0); } rect.series-1 { fill: var(--c1); } rect.series-2 { fill: var(--c2); }
rect.series-3 { fill: var(--c3); } rect.series-4 { fill: var(--c4); } rect.series-5 { fill: var(--c5); }
.whisker { stroke: var(--ink); stroke-width: 1.5; fill: none; } .verdict { font-size: 1.1rem; font-weight: 600; border-left: 4px solid var(--c0); padding-left: .9rem; }
table { border-collapse: collapse; } .sides { width: 100%; background: var(--card); border-radius: 8px; margin: 0 0 .8rem; }
.sides th { text-align: left; vertical-align: top; color: var(--soft); font-weight: 400; font-size: .85rem; padding: .25rem .8rem; width: 9rem; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; max-width: 9rem; }
.sides td { padding: .25rem .8rem .25rem 0; } .number { text-align: right; font-variant-numeric: tabular-nums; color: var(--soft); }
mark { background: color-mix(in srgb, var(--c1) 28%, transparent); color: inherit; border-radius: 3px; padding: 0 .15em; }
.claims { width: 100%; font-size: .9rem; margin: .6rem 0 1.2rem; } .claims td, .claims th { text-align: left; vertical-align: top; padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--grid); overflow-wrap: anywhere; }
.claims td:nth-child(1) { width: 50%; } .claims th { color: var(--soft); font-weight: 500; overflow-wrap: normal; }
.heat { font-size: .85rem; margin: .5rem 0 1rem; } .heat th { font-weight: 500; padding: .15rem .5rem; text-align: right; } .heat .column { writing-mode: vertical-rl; transform: rotate(180deg); text-align: left; vertical-align: bottom; }
.heat td { min-width: 2.6rem; height: 1.9rem; text-align: center; font-variant-numeric: tabular-nums; background: color-mix(in srgb, var(--c0) var(--share), var(--paper)); }
pre { background: var(--card); border-radius: 8px; padding: 1rem; overflow-x: auto; font-size: .82rem; line-height: 1.45; } .empty { color: var(--soft); }
)css";

}  // namespace

std::string escape_html(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

Page::Page(const std::string& title) : title_(title) {}

void Page::heading(const std::string& text) { body_ += fmt::format("<h2>{}</h2>\n", escape_html(text)); }
void Page::paragraph(const std::string& text) { body_ += fmt::format("<p>{}</p>\n", escape_html(text)); }
void Page::code(const std::string& text) { body_ += fmt::format("<pre>{}</pre>\n", escape_html(text)); }

void Page::facts(const std::vector<std::pair<std::string, std::string>>& facts) {
  body_ += "<dl class=\"facts\">\n";
  for (const auto& [name, value] : facts)
    body_ += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escape_html(name), escape_html(value));
  body_ += "</dl>\n";
}

std::string Page::html() const {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n{2}</body>\n</html>\n",
      escape_html(title_), style, body_);
}

std::string standalone_figure(const std::string& title, const std::string& html) {
  // The HTML is embedded in the SVG as a foreignObject. In XML an inner <svg> element needs its namespace.
  std::string named = html;
  if (const size_t at = named.find("<svg "); at != std::string::npos)
    named.insert(at + 5, "xmlns=\"http://www.w3.org/2000/svg\" ");
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 800 420\" width=\"800\" "
      "height=\"420\">\n<foreignObject width=\"800\" "
      "height=\"420\"><div xmlns=\"http://www.w3.org/1999/xhtml\" class=\"figure\">\n<style>{}\n.figure {{ "
      "background: var(--paper); color: "
      "var(--ink); font: 15px/1.4 system-ui, sans-serif; padding: 12px 20px; height: 396px; "
      "}}</style>\n<p><b>{}</b></p>\n{}</div></foreignObject>\n"
      "</svg>\n",
      style, escape_html(title), named);
}

}  // namespace calque
