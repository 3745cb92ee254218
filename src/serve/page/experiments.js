// The attention experiments: each has knobs, and the server computes claims and figures for their values.
import { decimal, number, t } from "./strings.js";
import { byId, element, fillSelect, listen } from "./dom.js";
import { getJson, isAbort, postJson } from "./api.js";
import { firstModel, modelOptions } from "./models.js";
import { figureNodes } from "./figure.js";
import { errorText, serverText } from "./server_texts.js";

const knobPause = 200;  // ms after the last movement of a slider
const sliderSteps = 1000;

let experimentsListed = [];
let experimentShown = null;  // { experiment, state }

// A slider runs from 0 to 1000; a logarithmic parameter keeps its ratios.
function valueAt(parameter, position) {
  const share = position / sliderSteps;
  const { low, high } = parameter;
  const value = parameter.log ? low * (high / low) ** share : low + (high - low) * share;
  return parameter.integer ? Math.round(value) : Number(value.toPrecision(3));
}

function positionOf(parameter, value) {
  const { low, high } = parameter;
  const share = parameter.log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  return Math.round(share * sliderSteps);
}

function valueText(value) {
  return value !== 0 && Math.abs(value) < 0.001 ? decimal(value.toExponential(1)) : number(value, 3);
}

// onChange(value)
function knob(parameter, value, onChange) {
  const id = "knob-" + parameter.name;
  const name = serverText(parameter.name);
  const shown = element("output", { for: id });
  const plain = parameter.integer && !parameter.log && parameter.high - parameter.low <= sliderSteps;
  const slider = element("input", plain
    ? { type: "range", id, min: parameter.low, max: parameter.high, step: 1 }
    : { type: "range", id, min: 0, max: sliderSteps, step: 1 });
  const read = () => (plain ? Number(slider.value) : valueAt(parameter, Number(slider.value)));
  const show = (current) => {
    shown.textContent = valueText(current);
    slider.setAttribute("aria-valuetext", `${name.text} = ${valueText(current)}`);
  };
  const set = (current) => {
    slider.value = plain ? current : positionOf(parameter, current);
    show(current);
  };
  slider.addEventListener("input", () => {
    show(read());
    onChange(read());
  });
  set(value);
  return { set, node: element("div", { class: "knob" },
    element("label", { for: id }, element("b", name), " ",
      element("span", { class: "quiet", ...serverText(parameter.meaning ?? "") })), shown, slider) };
}

function claimsTable(claims) {
  const head = ["claim", "expected", "found", "holds"].map((key) => element("th", { scope: "col", text: t(key) }));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("claim") },
    element("table", { class: "claims" }, element("thead", {}, element("tr", {}, ...head)),
      element("tbody", {}, ...claims.map((one) => element("tr", {}, element("td", serverText(one.claim)),
        element("td", serverText(one.expected)), element("td", serverText(one.found)),
        element("td", {}, element("span", { class: "verdict-mark", dataset: { holds: one.holds },
          text: `${one.holds ? "✓" : "✗"} ${t(one.holds ? "holds" : "holdsNot")}` })))))));
}

// The lines are those of a terminal: text flows again here, rows of figures, which are indented, stay as they are.
function explanationNodes(text) {
  const nodes = [];
  for (const line of text.split("\n").filter((one) => one.trim())) {
    const tag = line.startsWith("  ") ? "pre" : "p";
    const last = nodes.at(-1);
    if (last?.tag === tag) last.lines.push(line);
    else nodes.push({ tag, lines: [line] });
  }
  return nodes.map(({ tag, lines }) =>
    element(tag, { class: "explanation", tabindex: tag === "pre" ? "0" : null, ...serverText(lines.join(tag === "p" ? " " : "\n")) }));
}

function resultNodes(result) {
  const figures = result.figures.map((one) => {
    const title = serverText(one.title);
    return element("figure", { class: "card server-figure" },
      element("figcaption", {}, element("h3", title)),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title.text }, ...figureNodes(one.html)));
  });
  return [
    element("p", { class: "verdict", dataset: { holds: result.holds }, text: t(result.holds ? "allHold" : "someFail") }),
    ...explanationNodes(result.explanation ?? ""),
    element("div", { class: "charts" }, ...figures),
    claimsTable(result.claims),
  ];
}

// wanted: a result is to be computed; what needs a model takes its time, and runs when asked. result: once it is
// there; asked: the promise of it.
function firstState(experiment) {
  const values = Object.fromEntries(experiment.parameters.map((one) => [one.name, one.value]));
  return { values, model: firstModel(), wanted: !experiment.needs_model, result: null };
}

function stopExperiment({ state }) {
  clearTimeout(state.timer);
  state.controller?.abort();
}

function showExperiment(experiment, state = firstState(experiment)) {
  if (experimentShown && experimentShown.state !== state) stopExperiment(experimentShown);
  const { values } = state;
  const place = element("div", { class: "experiment-result", "aria-live": "off", "aria-busy": "false" });
  const select = element("select", { id: "experiment-model", onchange: () => (state.model = select.value) });
  fillSelect(select, modelOptions(), state.model);
  const showResult = async () => {
    place.setAttribute("aria-busy", "true");
    if (!place.childNodes.length) place.append(element("p", { class: "quiet", text: t("loading") }));
    try {
      state.result = await state.asked;
      place.replaceChildren(...resultNodes(state.result));
    } catch (error) {
      if (isAbort(error)) return;
      place.replaceChildren(element("p", { class: "fault", role: "alert", ...errorText(error) }));
    }
    place.setAttribute("aria-busy", "false");
  };
  const run = () => {
    state.wanted = true;
    state.result = null;
    state.controller?.abort();
    state.controller = new AbortController();
    const body = { parameters: values, ...(experiment.needs_model ? { model: select.value } : {}) };
    state.asked = postJson(`/v1/experiments/${encodeURIComponent(experiment.name)}`, body, { signal: state.controller.signal });
    return showResult();
  };
  state.run = run;
  const later = () => {
    clearTimeout(state.timer);
    if (experiment.needs_model) return;
    state.result = null;
    state.timer = setTimeout(() => state.run(), knobPause);  // on the knobs that are then shown
  };
  const knobs = experiment.parameters.map((one) => knob(one, values[one.name], (value) => {
    values[one.name] = value;
    later();
  }));
  const reset = () => {
    experiment.parameters.forEach((one, i) => {
      values[one.name] = one.value;
      knobs[i].set(one.value);
    });
    later();
  };
  byId("experiment").replaceChildren(
    element("div", { class: "detail-head" }, element("h2", serverText(experiment.name))),
    element("p", serverText(experiment.summary)),
    element("div", { class: "card knobs" }, ...knobs.map((one) => one.node),
      !knobs.length && element("p", { class: "quiet", text: t("experimentFixed") }),
      element("p", { class: "row" },
        experiment.needs_model && element("label", { class: "choice" }, t("model") + " ", select),
        experiment.needs_model && element("button", { type: "button", class: "button primary", id: "experiment-run", text: t("experimentRun"), onclick: run }),
        knobs.length > 0 && element("button", { type: "button", class: "button", id: "experiment-reset", text: t("experimentReset"), onclick: reset }))),
    place);
  if (state.result) place.append(...resultNodes(state.result));
  else if (state.asked) showResult();
  else if (state.wanted) run();
  experimentShown = { experiment, state };
  for (const one of byId("experiments").querySelectorAll("button")) {
    if (one.dataset.experiment === experiment.name) one.setAttribute("aria-current", "true");
    else one.removeAttribute("aria-current");
  }
}

function drawExperimentList() {
  byId("experiments").replaceChildren(...experimentsListed.map((one) => element("li", {}, element("button", {
    type: "button", class: "list-entry", dataset: { experiment: one.name }, onclick: () => showExperiment(one),
  },
  element("span", { class: "list-title", ...serverText(one.name) }),
  element("span", { class: "quiet", ...serverText(one.summary) })))));
}

export async function openExperiments() {
  if (experimentsListed.length) return;
  try {
    experimentsListed = (await getJson("/v1/experiments")).experiments;
    drawExperimentList();
    if (experimentsListed.length) showExperiment(experimentsListed[0]);
  } catch (error) {
    byId("experiment").replaceChildren(element("p", { class: "fault", ...errorText(error) }));
  }
}

export function setUpExperiments() {
  // Knobs and result stay as they are.
  listen("language", () => {
    drawExperimentList();
    if (experimentShown) showExperiment(experimentShown.experiment, experimentShown.state);
  });
}
