// Line charts as SVG, in the style of the reports, with a table of the same values for those who cannot see them.
import { compact, number, t } from "./strings.js";
import { element, svgElement } from "./dom.js";

const frame = { width: 480, height: 230, left: 52, right: 14, top: 12, bottom: 38 };
const tableRows = 40;  // of the table of values; more are thinned out

export function axisTicks(low, high, count) {
  if (!(high > low)) high = low + Math.max(1e-9, Math.abs(low) * 0.1);
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const share = rough / power;
  const step = power * (share <= 1 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10);
  const ticks = [];
  for (let i = Math.floor(low / step); i * step < high + step * 0.999; ++i) ticks.push(i * step);
  return ticks;
}

function range(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return [low, high];
}

function scales(series) {
  const points = series.flatMap((one) => one.points);
  const [lowX, highX] = range(points.map(([x]) => x));
  const yTicks = axisTicks(...range(points.map(([, y]) => y)), 5);
  const xSpan = Math.max(highX - lowX, 1e-12);
  const ySpan = yTicks.at(-1) - yTicks[0];
  const inner = frame.width - frame.left - frame.right;
  return {
    xTicks: axisTicks(lowX, highX, 6).filter((x) => x >= lowX && x <= highX),
    yTicks,
    toX: (x) => frame.left + ((x - lowX) / xSpan) * inner,
    toY: (y) => frame.height - frame.bottom - ((y - yTicks[0]) / ySpan) * (frame.height - frame.top - frame.bottom),
    fromX: (px) => lowX + ((px - frame.left) / inner) * xSpan,
  };
}

function drawAxes(svg, { xTicks, yTicks, toX, toY }, xLabel) {
  for (const y of yTicks) {
    svg.append(
      svgElement("line", { class: "grid", x1: frame.left, x2: frame.width - frame.right, y1: toY(y), y2: toY(y) }),
      svgElement("text", { class: "tick", x: frame.left - 8, y: toY(y) + 4, "text-anchor": "end" }, number(y, 4)));
  }
  for (const x of xTicks) {
    svg.append(svgElement("text", {
      class: "tick", x: toX(x), y: frame.height - frame.bottom + 18, "text-anchor": "middle",
    }, x >= 10000 ? compact(x) : number(x)));
  }
  svg.append(svgElement("text", {
    class: "axis", x: (frame.left + frame.width - frame.right) / 2, y: frame.height - 4, "text-anchor": "middle",
  }, xLabel));
}

function nearest(points, x) {
  let best = null;
  for (const point of points) if (!best || Math.abs(point[0] - x) < Math.abs(best[0] - x)) best = point;
  return best;
}

// Under the pointer: a line, and the values in the legend instead of the last ones.
function addReadings(svg, series, { toX, fromX }, showValues) {
  const rule = svgElement("line", { class: "rule", y1: frame.top, y2: frame.height - frame.bottom, visibility: "hidden" });
  svg.append(rule);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = fromX(((event.clientX - box.left) / box.width) * frame.width);
    const read = series.map((one) => nearest(one.points, x));
    const at = toX(nearest(read, x)[0]);
    rule.setAttribute("x1", at);
    rule.setAttribute("x2", at);
    rule.setAttribute("visibility", "visible");
    showValues(read);
  });
  svg.addEventListener("pointerleave", () => {
    rule.setAttribute("visibility", "hidden");
    showValues(series.map((one) => one.points.at(-1)));
  });
}

function valueTable(series, xLabel) {
  const steps = [...new Set(series.flatMap((one) => one.points.map(([x]) => x)))].sort((a, b) => a - b);
  const every = Math.ceil(steps.length / tableRows);
  const kept = steps.filter((_, i) => (steps.length - 1 - i) % every === 0);
  const values = series.map((one) => new Map(one.points));
  return element("details", {}, element("summary", { text: t("asTable") }),
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("asTable") }, element("table", { class: "values" },
      element("thead", {}, element("tr", {}, element("th", { scope: "col", text: xLabel }),
        ...series.map((one) => element("th", { scope: "col", text: one.label })))),
      element("tbody", {}, ...kept.map((x) => element("tr", {}, element("th", { scope: "row", text: number(x) }),
        ...values.map((one) => element("td", { text: one.has(x) ? number(one.get(x), 3) : "" }))))))));
}

// series: [{ label, points: [[x, y], …], dots, digits }], drawn into figure, which keeps its place and open table.
export function drawChart(figure, { title, series, xLabel }) {
  const open = figure.querySelector("details")?.open ?? false;
  const shown = series.filter((one) => one.points.length);
  const caption = element("figcaption", {}, element("h3", { text: title }));
  if (!shown.length) return figure.replaceChildren(caption, element("p", { class: "quiet", text: t("noData") }));
  const svg = svgElement("svg", { viewBox: `0 0 ${frame.width} ${frame.height}`, role: "img" });
  const summary = shown.map((one) => `${one.label} ${number(one.points.at(-1)[1], one.digits ?? 3)}`).join(", ");
  svg.setAttribute("aria-label", t("labelled", { label: title, text: summary }));
  const scale = scales(shown);
  drawAxes(svg, scale, xLabel);
  const values = shown.map(() => element("b"));
  const legend = element("p", { class: "legend" }, ...shown.map((one, i) =>
    element("span", {}, element("i", { class: `series-${i}` }), one.label + " ", values[i])));
  const showValues = (read) => read.forEach((point, i) => {
    values[i].textContent = number(point[1], shown[i].digits ?? 3);
    values[i].title = t("stepN", { n: point[0] });
  });
  shown.forEach((one, i) => {
    const path = one.points.map(([x, y], k) => `${k ? "L" : "M"}${scale.toX(x).toFixed(1)},${scale.toY(y).toFixed(1)}`).join("");
    svg.append(svgElement("path", { class: `line series-${i}`, d: path }));
    for (const [x, y] of one.dots ? one.points : one.points.slice(-1)) {
      svg.append(svgElement("circle", { class: `series-${i}`, cx: scale.toX(x), cy: scale.toY(y), r: 3 }));
    }
  });
  addReadings(svg, shown, scale, showValues);
  showValues(shown.map((one) => one.points.at(-1)));
  const table = valueTable(shown, xLabel);
  table.open = open;
  figure.replaceChildren(caption, legend, svg, table);
}
