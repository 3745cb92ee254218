// Draws a translation: lines of segments of words. While it streams, the words that are still to come keep the
// place of the previous translation, so that nothing jumps.
import { percent, t } from "./strings.js";
import { element } from "./dom.js";

const doubtful = 0.5;  // below this certainty a word is underlined too, since colour alone says it to some only

export function renderPartial(output, partial, previous) {
  const before = previous.split("\n");
  const lines = partial.split("\n").map((line, i, all) => {
    const words = line ? line.split(" ") : [];
    const rest = (before[i] ?? "").split(" ").slice(words.length).join(" ");
    const last = i === all.length - 1;
    return element("div", { class: "line" },
      line, last && element("span", { class: "caret", "aria-hidden": "true" }),
      rest && element("span", { class: "old", "aria-hidden": "true", text: (line ? " " : "") + rest }));
  });
  for (const line of before.slice(lines.length)) {
    lines.push(element("div", { class: "line" }, element("span", { class: "old", "aria-hidden": "true", text: line })));
  }
  output.replaceChildren(...lines);
}

function wordElement(word, segment, place) {
  const known = typeof word.probability === "number";
  const label = known ? t("certaintyOf", { n: percent(word.probability) }) : null;
  return element("span", {
    class: "word" + (known && word.probability < doubtful ? " doubtful" : ""),
    role: "button", tabindex: "-1", "aria-haspopup": "dialog",
    "aria-description": label, title: label, text: word.text,
    dataset: { segment, place },
    vars: known ? { "--doubt": (1 - word.probability).toFixed(3) } : {},
  });
}

// Returns the elements of the words, by segment.
export function renderTranslation(output, translation) {
  const lines = translation.text.split("\n").map(() => element("div", { class: "line" }));
  const elements = translation.segments.map((segment, s) => {
    const words = segment.words.map((word, w) => wordElement(word, s, w));
    const line = lines[segment.line] ?? lines.at(-1);
    if (line.childNodes.length) line.append(" ");
    words.forEach((word, w) => line.append(...(w ? [" ", word] : [word])));
    return words;
  });
  output.replaceChildren(...lines);
  return elements;
}
