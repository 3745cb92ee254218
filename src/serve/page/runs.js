// The tab of the runs: a list with state and BLEU, comparison reports, and the run that is looked at.
import { age, bytes, number, t } from "./strings.js";
import { byId, element, listen } from "./dom.js";
import { getJson } from "./api.js";
import { RunDetail, stateBadge } from "./run_detail.js";
import { openReport } from "./report_frame.js";
import { errorText } from "./server_texts.js";

const listPoll = 10000;  // ms

let runsListed = { runs: [], comparisons: [] };
let runShown = null;  // RunDetail
let runsTimer = 0;

function runItem(run) {
  const facts = [];
  if (run.step) facts.push(t("stepN", { n: run.step }));
  if (typeof run.bleu === "number") facts.push(`BLEU ${number(run.bleu, 1)} (${run.bleu_on})`);
  if (run.bytes) facts.push(bytes(run.bytes));
  if (typeof run.age_seconds === "number") facts.push(t("ago", { age: age(run.age_seconds) }));
  return element("li", {}, element("button", {
    type: "button", class: "list-entry", "aria-current": runShown?.name === run.name ? "true" : null,
    onclick: () => showRun(run), dataset: { run: run.name },
  },
  element("span", { class: "list-title" }, element("span", { text: run.name }), run.state && stateBadge(run.state)),
  element("span", { class: "quiet", text: facts.join(" · ") })));
}

function comparisonItem({ name, title }) {
  return element("li", {}, element("button", {
    type: "button", class: "list-entry comparison",
    onclick: () => openReport(title ?? name, "/v1/comparisons/" + encodeURIComponent(name)),
  }, element("span", { class: "list-title", text: title ?? name })));
}

function drawList() {
  const { runs, comparisons } = runsListed;
  const focused = document.activeElement?.dataset?.run;
  byId("runs").replaceChildren(...runs.map(runItem));
  if (!runs.length) byId("runs").replaceChildren(element("li", { class: "quiet", text: t("runsNone") }));
  byId("comparisons-title").hidden = comparisons.length === 0;
  byId("comparisons").replaceChildren(...comparisons.map(comparisonItem));
  if (focused) [...byId("runs").querySelectorAll("button")].find((one) => one.dataset.run === focused)?.focus();
}

function showRun(run) {
  runShown?.stop();
  runShown = new RunDetail(byId("run"), run.name, run.has_report);
  drawList();
}

async function refreshRuns() {
  clearTimeout(runsTimer);
  try {
    const answer = await getJson("/v1/runs");
    if (byId("panel-runs").hidden) return;
    runsListed = { runs: answer.runs ?? [], comparisons: answer.comparisons ?? [] };
    drawList();
    const first = runsListed.runs.find((run) => run.state === "training") ?? runsListed.runs[0];
    if (!runShown && first) showRun(first);
    if (!first) byId("run").replaceChildren();
    runsTimer = setTimeout(refreshRuns, listPoll);
  } catch (error) {
    byId("run").replaceChildren(element("p", { class: "fault", ...errorText(error) }));
  }
}

export function openRuns() {
  byId("run").replaceChildren(element("p", { class: "quiet", text: t("runChoose") }));
  refreshRuns();
}

export function closeRuns() {
  clearTimeout(runsTimer);
  runShown?.stop();
  runShown = null;
}

export function setUpRuns() {
  listen("language", () => {
    if (byId("panel-runs").hidden) return;
    const run = runsListed.runs.find((one) => one.name === runShown?.name);
    if (run) showRun(run);
    else openRuns();
  });
}
