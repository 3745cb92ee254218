// The history drawer: earlier texts of this browser, to open again, remove or clear.
import { t } from "./strings.js";
import { byId, element, iconButton, listen, openDialog } from "./dom.js";
import { addToHistory, clearHistory, historyAvailable, historyEntries, removeFromHistory } from "./store.js";

const settled = 1500;  // ms; a text that stays this long is kept

function entryElement(entry, onOpen, refresh) {
  return element("li", {},
    element("button", { type: "button", class: "history-entry", onclick: () => onOpen(entry) },
      element("span", { lang: "fr", text: entry.source }),
      element("span", { class: "quiet", lang: "en", text: entry.target })),
    iconButton("remove", t("historyRemove"), () => {
      removeFromHistory(entry.source);
      refresh();
    }));
}

// onOpen(entry): the text was chosen.
export function setUpHistory(pane, onOpen) {
  const dialog = byId("history-dialog");
  const refresh = () => {
    const entries = historyEntries();
    const note = !historyAvailable() ? "historyOff" : entries.length ? "historyNote" : "historyEmpty";
    byId("history-note").textContent = t(note);
    byId("history-clear").hidden = entries.length === 0;
    byId("history").replaceChildren(...entries.map((entry) => entryElement(entry, (one) => {
      dialog.close();
      onOpen(one);
    }, refresh)));
  };
  byId("history-open").addEventListener("click", () => {
    refresh();
    openDialog(dialog);
  });
  byId("history-clear").addEventListener("click", () => {
    clearHistory();
    refresh();
  });
  let timer = 0;
  const keep = () => {
    clearTimeout(timer);
    const { source, text, model } = pane;
    if (!source.trim() || !text) return;
    timer = setTimeout(() => {
      if (pane.source === source) addToHistory({ source, target: text, model, time: Date.now() });
    }, settled);
  };
  listen("translated", (made) => made === pane && keep());
  listen("language", refresh);
}
