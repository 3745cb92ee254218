// The models that the server offers, and what is said about each beside its translation.
import { bytes, compact, number, t } from "./strings.js";
import { getJson } from "./api.js";
import { emit, element, listen } from "./dom.js";
import { serverText } from "./server_texts.js";
import { settings } from "./store.js";

const loadingPoll = 2000;  // ms

export const models = { all: [], first: "", precisions: [] };

// Asks again while one is loading; emits "models" after each answer.
export async function loadModels() {
  const answer = await getJson("/v1/models");
  models.all = answer.models;
  models.first = answer.default;
  models.precisions = answer.precisions;
  if (models.all.some((one) => one.state === "loading")) setTimeout(() => loadModels().catch(() => {}), loadingPoll);
  emit("models");
}

// A model's speed is known once it has translated.
export function setUpSpeeds() {
  listen("shown", (pane) => {
    if (modelOf(pane?.model)?.sentences_per_second === null) loadModels().catch(() => {});
  });
}

export function modelOf(name) {
  return models.all.find((one) => one.name === name);
}

// For a request: the chosen precision, where the server has it.
export function precisionOption() {
  return models.precisions.includes(settings.precision) ? { precision: settings.precision } : {};
}

// The model to begin with: the server's first, unless only others can answer.
export function firstModel() {
  const inState = (state) => [modelOf(models.first), ...models.all].find((one) => one?.state === state);
  return (inState("ready") ?? inState("loading"))?.name ?? models.first;
}

export function readyModels() {
  return models.all.filter((one) => one.state !== "failed" && one.state !== "loading");
}

export function modelOptions() {
  const notes = { loading: "modelLoading", failed: "modelFailed" };
  return models.all.map((one) => ({
    value: one.name,
    text: notes[one.state] ? `${one.name} (${t(notes[one.state])})` : one.name,
    disabled: one.state === "failed",
  }));
}

// "1.1 M parameters · 4.4 MB int8 · BLEU 94.3 · 310 sentences/s"
export function modelFacts(model) {
  if (!model) return [];
  if (model.state === "failed") return [element("span", model.error ? serverText(model.error) : { text: t("modelFailed") })];
  const facts = [];
  if (model.parameters) facts.push(element("span", { text: t("parameters", { n: compact(model.parameters) }) }));
  // Size and speed are known of the precision that the server began with.
  const precision = precisionOption().precision ?? model.precision;
  const isFirst = precision === model.precision;
  const size = [isFirst && model.bytes ? bytes(model.bytes) : "", precision].filter(Boolean).join(" ");
  if (size) facts.push(element("span", { text: size }));
  if (typeof model.bleu === "number") {
    const score = number(model.bleu, 1);
    facts.push(element("span", { title: t("bleuOn", { n: score, on: serverText(model.bleu_on ?? "").text }), text: `BLEU ${score}` }));
  }
  const speed = model.sentences_per_second;
  if (speed && isFirst) facts.push(element("span", { text: t("speed", { n: number(speed, speed < 10 ? 1 : 0) }) }));
  return facts;
}
