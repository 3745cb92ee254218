// The whole attention map of a sentence as a table: English words by French words, each cell its weight.
import { decimal, t } from "./strings.js";
import { byId, element, fillSelect, listen, openDialog } from "./dom.js";
import { attentionMap, setUpAttentionChoice } from "./attention.js";
import { errorText } from "./server_texts.js";

// ".42", in French "0,42"; nothing where it would be zero
function weightText(weight) {
  return weight >= 0.005 ? decimal(weight.toFixed(2).replace(/^0/, "")) : "";
}

function mapTable({ source_words: sourceWords, target_words: targetWords, attention }) {
  const cell = (weight) => element("td", {
    vars: { "--share": `${Math.round(weight * 100)}%` }, title: decimal(weight.toFixed(3)), text: weightText(weight),
  });
  return element("table", { class: "heat" },
    element("caption", { class: "offscreen", text: t("mapNote") }),
    element("thead", {}, element("tr", {}, element("td", {}),
      ...sourceWords.map((word) => element("th", { scope: "col", class: "column", lang: "fr" }, element("span", { text: word }))))),
    element("tbody", {}, ...attention.map((row, i) => element("tr", {},
      element("th", { scope: "row", lang: "en", text: i < attention.length - 1 ? targetWords[i] : t("end") }), ...row.map(cell)))));
}

export function setUpAttentionMap(panes) {
  const dialog = byId("map-dialog");
  const place = byId("map");
  const choice = byId("map-segment");
  let turn = 0;
  const segments = () => panes.filter((pane) => !pane.hidden && pane.translation)
    .flatMap((pane) => pane.translation.segments.map((segment) => ({ pane, segment })));
  const draw = async () => {
    const own = ++turn;
    const chosen = segments()[Number(choice.value)];
    if (!chosen) return place.replaceChildren(element("p", { class: "quiet", text: t("targetPlaceholder") }));
    try {
      const map = await attentionMap(chosen.pane.model, chosen.segment);
      if (own === turn) place.replaceChildren(mapTable(map));
    } catch (error) {
      if (own === turn) place.replaceChildren(element("p", { class: "fault", ...errorText(error) }));
    }
  };
  const fill = () => {
    const several = panes.filter((pane) => !pane.hidden).length > 1;
    fillSelect(choice, segments().map(({ pane, segment }, i) => ({
      value: i, text: several ? t("labelled", { label: pane.model, text: segment.source }) : segment.source,
    })), choice.value || 0);
  };
  byId("map-open").addEventListener("click", () => {
    fill();
    openDialog(dialog);
    draw();
  });
  choice.addEventListener("change", draw);
  setUpAttentionChoice(byId("layer"), byId("head"), panes);
  setUpAttentionChoice(byId("map-layer"), byId("map-head"), panes);
  for (const name of ["attention", "language"]) listen(name, () => dialog.open && draw());
}
