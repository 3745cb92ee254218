// Two models side by side: the second English pane, and the words in which both differ.
import { t } from "./strings.js";
import { byId, listen } from "./dom.js";
import { differingWords } from "./text.js";
import { readyModels } from "./models.js";

function markWords(pane, differing) {
  pane.words.flat().forEach((word, i) => {
    const differs = differing?.has(i) ?? false;
    word.classList.toggle("differs", differs);
    if (differs && !word.title.includes(t("differs"))) {
      word.title = [word.title, t("differs")].filter(Boolean).join(", ");
      word.setAttribute("aria-description", word.title);
    }
  });
}

function showDifferences(first, second) {
  const line = byId("differences");
  const comparable = !second.hidden && first.translation && second.translation && first.source === second.source;
  if (!comparable) {
    for (const pane of [first, second]) markWords(pane, null);
    line.textContent = "";
    return;
  }
  const wordsIn = (pane) => pane.translation.segments.flatMap((segment) => segment.words.map((word) => word.text));
  const { a, b } = differingWords(wordsIn(first), wordsIn(second));
  markWords(first, a);
  markWords(second, b);
  const count = Math.max(a.size, b.size);
  line.textContent = count ? t("differences", { n: count }) : t("same");
}

// onChange(): the second pane was opened and wants a translation.
export function setUpCompare(first, second, onChange) {
  const button = byId("compare");
  const apply = (on) => {
    second.root.hidden = !on;
    byId("board").classList.toggle("comparing", on);
    button.setAttribute("aria-pressed", String(on));
    if (on) {
      const others = readyModels().filter((one) => one.name !== first.model);
      if (!second.model || second.model === first.model) second.setModel(others[0]?.name ?? first.model);
      onChange();
    } else {
      second.clear();
    }
    showDifferences(first, second);
  };
  second.root.hidden = true;
  button.addEventListener("click", () => apply(second.hidden));
  const offer = () => {
    const few = readyModels().length < 2;
    button.disabled = few;
    button.title = few ? t("compareNeedsTwo") : "";
  };
  for (const name of ["models", "language"]) listen(name, offer);
  for (const name of ["shown", "language"]) listen(name, () => showDifferences(first, second));
  return { open: apply };
}
