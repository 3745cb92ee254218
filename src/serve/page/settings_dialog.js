// Search settings: a few sensible values each. A change translates anew.
import { number, t } from "./strings.js";
import { byId, emit, fillSelect, listen, openDialog } from "./dom.js";
import { models } from "./models.js";
import { defaults, saveSettings, settings } from "./store.js";

const searchFields = [
  { id: "beam", key: "beam", values: [1, 2, 4, 8] },
  { id: "nbest-count", key: "nbest", values: [1, 2, 3, 5, 8] },
  { id: "length-penalty", key: "lengthPenalty", values: [0, 0.3, 0.6, 1, 1.5] },
  { id: "precision", key: "precision", values: [] },  // the server's
];

function fillFields() {
  searchFields.at(-1).values = ["", ...models.precisions];
  for (const { id, key, values } of searchFields) {
    fillSelect(byId(id), values.map((value) => ({
      value,
      text: value === "" ? t("precisionOwn") : typeof value === "number" ? number(value) : value,
      // A beam cannot give more translations than it is wide.
      disabled: key === "nbest" && value > settings.beam,
    })), key === "nbest" ? Math.min(settings.nbest, settings.beam) : settings[key]);
  }
}

export function setUpSettings() {
  for (const { id, key } of searchFields) {
    byId(id).addEventListener("change", (event) => {
      saveSettings({ [key]: typeof defaults[key] === "number" ? Number(event.target.value) : event.target.value });
      fillFields();
      emit("settings");
    });
  }
  byId("settings-reset").addEventListener("click", () => {
    const { beam, nbest, lengthPenalty, precision } = defaults;
    saveSettings({ beam, nbest, lengthPenalty, precision });
    fillFields();
    emit("settings");
  });
  byId("settings-open").addEventListener("click", () => openDialog(byId("settings-dialog")));
  const certainty = byId("certainty");
  const tint = () => byId("board").classList.toggle("tinted", settings.certainty);
  certainty.checked = settings.certainty;
  certainty.addEventListener("change", () => {
    saveSettings({ certainty: certainty.checked });
    tint();
  });
  tint();
  for (const name of ["language", "models"]) listen(name, fillFields);
  fillFields();
}
