// Attention weights of a segment for the chosen layer and head. The mean over all comes with the translation;
// everything else is asked for once and kept with the segment.
import { t } from "./strings.js";
import { emit, fillSelect, listen } from "./dom.js";
import { postJson } from "./api.js";
import { saveSettings, settings } from "./store.js";
import { modelOf, precisionOption } from "./models.js";

const kept = new WeakMap();  // segment → Map of "model layer head precision" → promise

const orNull = (value) => (value === "" ? null : Number(value));

// The layer or head that was chosen, as far as this model has it.
function chosenFor(model) {
  const has = (value, count) => value !== "" && (!count || Number(value) < count);
  return {
    layer: has(settings.layer, modelOf(model)?.layers) ? settings.layer : "",
    head: has(settings.head, modelOf(model)?.heads) ? settings.head : "",
  };
}

// → { source_words, target_words, attention }
export function attentionMap(model, segment) {
  const { layer, head } = chosenFor(model);
  const { precision } = precisionOption();
  const key = [model, layer, head, precision].join("\n");
  if (!kept.has(segment)) kept.set(segment, new Map());
  const known = kept.get(segment);
  if (!known.has(key)) {
    const asked = postJson("/v1/attention", {
      model, source: segment.source, target: segment.text, layer: orNull(layer), head: orNull(head), precision,
    });
    asked.catch(() => known.delete(key));
    known.set(key, asked);
  }
  return known.get(key);
}

// [word][source word], or null where the model's attention is not known.
export async function attentionRows(model, segment) {
  const { layer, head } = chosenFor(model);
  if (layer === "" && head === "" && segment.attention) return segment.attention;
  return (await attentionMap(model, segment)).attention;
}

// Selects for layer and head, with what every model on the page has; several pairs of selects stay the same.
export function setUpAttentionChoice(layerSelect, headSelect, panes) {
  const fillOne = (select, key, chosen) => {
    const counts = panes.filter((pane) => !pane.hidden).map((pane) => modelOf(pane.model)?.[key] ?? 0);
    const count = counts.length ? Math.min(...counts) : 0;
    fillSelect(select, [
      { value: "", text: t("mean") }, ...Array.from({ length: count }, (_, i) => ({ value: i, text: String(i + 1) })),
    ], chosen !== "" && Number(chosen) < count ? chosen : "");
  };
  const fill = () => {
    fillOne(layerSelect, "layers", settings.layer);
    fillOne(headSelect, "heads", settings.head);
  };
  layerSelect.addEventListener("change", () => choose({ layer: layerSelect.value }));
  headSelect.addEventListener("change", () => choose({ head: headSelect.value }));
  const choose = (changes) => {
    saveSettings(changes);
    emit("attention");
  };
  for (const name of ["language", "models", "model", "shown", "attention"]) listen(name, fill);
}
