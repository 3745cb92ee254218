// One run: state, curves of loss and BLEU, samples, configuration. While it trains, new values are fetched and
// drawn as they come.
import { compact, decimal, number, t } from "./strings.js";
import { element, fillSelect, say } from "./dom.js";
import { getJson, isAbort } from "./api.js";
import { drawChart } from "./chart.js";
import { openReport } from "./report_frame.js";
import { errorText } from "./server_texts.js";

const pollEvery = 2000;  // ms

export function stateText(state) {
  const names = {
    done: "stateDone", training: "stateTraining", interrupted: "stateInterrupted", paused: "statePaused", stopped: "stateStopped",
    search: "stateSearch", empty: "stateEmpty",
  };
  return names[state] ? t(names[state]) : state;
}

export function stateBadge(state) {
  return element("span", { class: "badge state", dataset: { state }, text: stateText(state) });
}

function sampleTable(sample) {
  const row = (name, language, text) => text === undefined ? null : element("tr", {},
    element("th", { scope: "row", text: t(name) }), element("td", { lang: language, text }));
  return element("table", { class: "sides" }, element("tbody", {}, row("sampleSource", "fr", sample.source),
    row("sampleReference", "en", sample.reference), row("sampleHypothesis", "en", sample.hypothesis)));
}

export class RunDetail {
  constructor(place, name, hasReport) {
    this.name = name;
    this.metrics = [];
    this.seen = new Set();
    this.controller = new AbortController();
    this.chosenStep = "";  // the newest
    this.build(place, hasReport);
    this.poll();
  }

  build(place, hasReport) {
    this.badge = element("span");
    this.facts = element("p", { class: "quiet facts" });
    this.loss = element("figure", { class: "card", id: "loss-chart" });
    this.bleu = element("figure", { class: "card", id: "bleu-chart" });
    this.steps = element("select", { id: "sample-step", onchange: () => {
      this.chosenStep = this.steps.value;
      this.drawSamples();
    } });
    this.samples = element("div", { id: "samples" });
    this.samplesCard = element("section", { class: "card" },
      element("div", { class: "card-head" }, element("h3", { text: t("samples") }),
        element("label", { class: "choice" }, element("span", { text: t("samplesAt") }), " ", this.steps)),
      this.samples);
    this.config = element("pre", { tabindex: "0", role: "region", "aria-label": t("configuration") });
    place.replaceChildren(
      element("div", { class: "detail-head" }, element("h2", { text: this.name }), this.badge,
        hasReport && element("button", { type: "button", class: "button", id: "report-open", text: t("report"),
          onclick: () => openReport(`${t("report")} · ${this.name}`, this.path + "/report") })),
      this.facts,
      element("div", { class: "charts" }, this.loss, this.bleu),
      this.samplesCard,
      element("details", { class: "card" }, element("summary", { text: t("configuration") }), this.config));
  }

  get path() {
    return "/v1/runs/" + encodeURIComponent(this.name);
  }

  stop() {
    this.controller.abort();
    clearTimeout(this.timer);
  }

  async poll() {
    try {
      // One step back: training and validation of a step are two lines, and the second may come later.
      const after = this.metrics.length ? this.metrics.at(-1).step - 1 : -1;
      const run = await getJson(`${this.path}?after=${after}`, { signal: this.controller.signal });
      this.add(run.metrics ?? []);
      this.draw(run);
      if (run.state === "training") this.timer = setTimeout(() => this.poll(), pollEvery);
    } catch (error) {
      if (!isAbort(error)) say(this.facts, errorText(error));
    }
  }

  add(lines) {
    for (const line of lines) {
      const key = JSON.stringify(line);
      if (this.seen.has(key)) continue;
      this.seen.add(key);
      this.metrics.push(line);
    }
  }

  series(key) {
    return this.metrics.filter((line) => typeof line[key] === "number").map((line) => [line.step, line[key]]);
  }

  draw(run) {
    this.badge.replaceChildren(...(run.state ? [stateBadge(run.state)] : []));
    if (run.config) this.config.textContent = run.config;
    const last = (key) => this.metrics.findLast((line) => typeof line[key] === "number")?.[key];
    const facts = [];
    const add = (key, text) => last(key) !== undefined && facts.push(element("span", { text: text(last(key)) }));
    add("step", (step) => t("stepN", { n: step }));
    add("epoch", (epoch) => `${t("epoch")} ${number(epoch, 2)}`);
    add("tokens_per_second", (speed) => `${compact(speed)} ${t("tokensPerSecond")}`);
    add("learning_rate", (rate) => `${t("learningRate")} ${decimal(rate.toPrecision(2))}`);
    this.facts.replaceChildren(...facts);
    drawChart(this.loss, { title: t("loss"), xLabel: t("step"), series: [
      { label: t("trainLoss"), points: this.series("loss") },
      { label: t("validLoss"), points: this.series("valid_loss"), dots: true },
    ] });
    drawChart(this.bleu, { title: t("bleuChart"), xLabel: t("step"),
      series: [{ label: t("bleu"), points: this.series("valid_bleu"), dots: true, digits: 1 }] });
    this.drawSamples();
  }

  drawSamples() {
    const validations = this.metrics.filter((line) => line.samples?.length);
    this.samplesCard.hidden = validations.length === 0;
    if (!validations.length) return;
    const newest = validations.at(-1);
    if (this.steps.options.length !== validations.length) {
      fillSelect(this.steps, validations.map((line) => ({ value: line.step, text: number(line.step) })).reverse(),
        this.chosenStep || newest.step);
    }
    const shown = validations.find((line) => String(line.step) === this.chosenStep) ?? newest;
    const key = `${shown.step} ${shown.samples.length}`;
    if (this.samples.dataset.shown === key) return;
    this.samples.dataset.shown = key;
    this.samples.replaceChildren(...shown.samples.map(sampleTable));
  }
}
