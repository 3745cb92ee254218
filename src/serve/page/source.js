// The French side. A mirror behind the text area has the same words as elements, so that they can light up and
// be found under the pointer; it also gives the text area its height, so that nothing scrolls inside.
import { t } from "./strings.js";
import { byId, element } from "./dom.js";
import { wordsOf } from "./text.js";

class SourceView {
  constructor() {
    this.area = byId("source");
    this.mirror = byId("mirror");
    this.words = [];
    this.spans = [];
    this.hovered = -1;
    this.typedTo = -1;  // where the caret stands after a keystroke: the word that is being typed stays dark
  }

  get text() {
    return this.area.value;
  }

  set text(value) {
    this.area.value = value;
    this.refresh();
  }

  refresh() {
    this.words = wordsOf(this.text);
    this.spans = this.words.map((word) => element("span", { text: word.text }));
    const parts = [];
    let at = 0;
    this.words.forEach((word, i) => {
      parts.push(this.text.slice(at, word.start), this.spans[i]);
      at = word.end;
    });
    // A last empty line needs a character to have a height.
    this.mirror.replaceChildren(...parts, this.text.slice(at) + "\u200b");
    byId("count").textContent = t("characters", { n: [...this.text].length });
    this.hovered = -1;
  }

  // Words that overlap with [start, end).
  wordsAt([start, end]) {
    return this.words.flatMap((word, i) => (word.start < end && word.end > start ? [i] : []));
  }

  light(i, strength) {
    const span = this.spans[i];
    if (!span) return;
    span.classList.add("lit");
    span.style.setProperty("--weight", strength.toFixed(3));
  }

  mark(i) {
    this.spans[i]?.classList.add("origin");
  }

  clearLights() {
    for (const span of this.spans) span.classList.remove("lit", "origin");
  }

  // The word under the pointer, found through the text area that covers the mirror.
  wordUnder(x, y) {
    return this.spans.indexOf(document.elementsFromPoint(x, y).find((one) => one.parentNode === this.mirror));
  }

  // onWord(index): pointer or caret is on this word; onWord(-1): on none.
  listenForWords(onWord) {
    const tell = (i) => {
      if (i === this.hovered) return;
      this.hovered = i;
      onWord(i);
    };
    this.area.addEventListener("pointermove", (event) => {
      if (event.buttons === 0) tell(this.wordUnder(event.clientX, event.clientY));
    });
    this.area.addEventListener("pointerleave", () => tell(-1));
    this.area.addEventListener("blur", () => tell(-1));
    this.area.addEventListener("input", () => (this.typedTo = this.area.selectionStart));
    // The keyboard's way: the word in which the caret stands.
    document.addEventListener("selectionchange", () => {
      if (document.activeElement !== this.area || this.area.selectionStart !== this.area.selectionEnd) return;
      const caret = this.area.selectionStart;
      if (caret === this.typedTo) return;
      this.typedTo = -1;
      tell(this.words.findIndex((word) => word.start <= caret && caret <= word.end));
    });
  }
}

export const sourceView = new SourceView();
