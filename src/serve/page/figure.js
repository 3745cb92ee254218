// Figures that the server draws (SVG or a table), put into the page without innerHTML: parsed apart, scripts and
// listeners dropped, style attributes set through CSSOM as the content security policy wants it, texts in the
// language of the interface.
import { renameStyles } from "./text.js";
import { serverText } from "./server_texts.js";

const allowedTags = new Set(["svg", "g", "line", "path", "circle", "rect", "text", "title", "polyline", "polygon", "tspan",
  "table", "caption", "thead", "tbody", "tr", "th", "td", "p", "span", "b", "i", "div", "em", "strong", "br"]);

function cleaned(one) {
  if (!allowedTags.has(one.localName)) return null;
  const copy = document.createElementNS(one.namespaceURI, one.localName);
  const said = (english) => {
    const { text, lang } = serverText(english);
    if (lang) copy.setAttribute("lang", lang);
    return text;
  };
  for (const { name, value } of one.attributes) {
    if (name === "data-style") {
      for (const rule of value.split(";")) {
        const colon = rule.indexOf(":");
        if (colon > 0) copy.style.setProperty(rule.slice(0, colon).trim(), rule.slice(colon + 1).trim());
      }
    } else if (!name.startsWith("on") && name !== "href" && name !== "id" && name !== "xmlns") {
      copy.setAttribute(name, name === "aria-label" || name === "title" ? said(value) : value);
    }
  }
  for (const child of one.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) copy.append(said(child.data));
    else if (child.nodeType === Node.ELEMENT_NODE) copy.append(...[cleaned(child)].filter(Boolean));
  }
  return copy;
}

export function figureNodes(html) {
  const parsed = new DOMParser().parseFromString(renameStyles(html), "text/html");
  return [...parsed.body.children].map(cleaned).filter(Boolean);
}
