// Scores the translations on the page against a reference: BLEU, chrF and TER as the server computes them.
import { number, t } from "./strings.js";
import { byId, element, listen } from "./dom.js";
import { postJson } from "./api.js";
import { pairedLines } from "./text.js";
import { errorText } from "./server_texts.js";

const metricNames = [["bleu", "BLEU", 1], ["chrf", "chrF", 1], ["ter", "TER", -1]];  // 1: higher is better

function scoreTable(results) {
  const shown = metricNames.filter(([key]) => results.every(({ scores }) => scores[key]));
  const bestOf = (key, sign) => Math.max(...results.map(({ scores }) => sign * scores[key].score));
  const cell = ({ scores }, [key, , sign]) => {
    const { score, signature } = scores[key];
    const best = results.length > 1 && sign * score === bestOf(key, sign)
      && results.some((other) => other.scores[key].score !== score);
    return element("td", { class: best ? "best" : "", title: signature ?? "" }, number(score, 1),
      best && element("span", { class: "badge", text: t("best") }));
  };
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("scores") },
    element("table", { class: "scores" },
      element("thead", {}, element("tr", {}, element("th", { scope: "col", text: t("model") }),
        ...shown.map(([, name]) => element("th", { scope: "col", text: name })))),
      element("tbody", {}, ...results.map((one) => element("tr", {},
        element("th", { scope: "row", text: one.model }), ...shown.map((metric) => cell(one, metric)))))));
}

async function scoreOf(pane, reference) {
  const [source, given, hypothesis] = pairedLines(pane.source, reference, pane.text);
  const scores = await postJson("/v1/evaluate", { source, reference: given, hypothesis });
  return { model: pane.model, scores };
}

export function setUpReference(panes) {
  const area = byId("reference");
  const place = byId("scores");
  let turn = 0;
  let results = [];
  const show = () => place.replaceChildren(
    ...(results.length ? [scoreTable(results), element("p", { class: "quiet", text: t("terNote") })] : []));
  const evaluate = async () => {
    const own = ++turn;
    const shown = panes.filter((pane) => !pane.hidden && pane.translation);
    results = [];
    if (!area.value.trim() || !shown.length) return show();
    try {
      const made = await Promise.all(shown.map((pane) => scoreOf(pane, area.value)));
      if (own !== turn) return;
      results = made;
      show();
    } catch (error) {
      if (own === turn) place.replaceChildren(element("p", { class: "fault", role: "alert", ...errorText(error) }));
    }
  };
  byId("evaluate").addEventListener("click", evaluate);
  area.addEventListener("change", evaluate);
  let timer = 0;
  const later = () => {
    clearTimeout(timer);
    if (area.value.trim()) timer = setTimeout(evaluate, 300);
  };
  listen("shown", later);
  listen("language", () => (results.length ? show() : later()));
}
