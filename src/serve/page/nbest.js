// The n-best list of each pane: other whole translations with the model's scores. A click takes one over.
import { number, t } from "./strings.js";
import { byId, element, listen } from "./dom.js";

function listOf(pane, several) {
  const entries = pane.original?.nbest ?? [];
  const items = entries.map((one, i) => element("li", {}, element("button", {
    type: "button", class: "nbest-entry", "aria-current": one.text === pane.text ? "true" : null,
    onclick: () => pane.adopt(one),
  },
  element("span", { class: "rank", "aria-hidden": "true", text: String(i + 1) }),
  element("span", { class: "nbest-text", lang: "en", text: one.text }),
  element("span", { class: "nbest-score", text: number(one.score, 2), title: t("score", { n: number(one.score, 3) }) }))));
  const title = t("nbestOf", { model: pane.model });
  return items.length > 0 && element("div", {},
    several && element("h3", { text: pane.model }),
    element("ol", { class: "nbest", "aria-label": title }, ...items));
}

export function setUpNbest(panes) {
  const show = () => {
    const shown = panes.filter((pane) => !pane.hidden);
    const focused = byId("nbest").contains(document.activeElement) ? document.activeElement.textContent : null;
    const lists = shown.map((pane) => listOf(pane, shown.length > 1)).filter(Boolean);
    byId("nbest").replaceChildren(...lists);
    // The list was drawn anew under the focus.
    const again = focused && [...byId("nbest").querySelectorAll("button")].find((one) => one.textContent === focused);
    if (again) again.focus();
  };
  for (const name of ["shown", "language"]) listen(name, show);
  show();
}
