// One English side: translates the source with one model as a stream, shows its words, lets them be replaced.
import { number, t, translateInterface } from "./strings.js";
import { announce, byId, copyText, emit, fillSelect, listen, saveAs, say, showMessage } from "./dom.js";
import { ApiError, isAbort, postEvents, postJson } from "./api.js";
import { settings } from "./store.js";
import { errorText } from "./server_texts.js";
import { modelFacts, modelOf, modelOptions, precisionOption } from "./models.js";
import { renderPartial, renderTranslation } from "./render_words.js";
import { setUpRoving } from "./roving.js";
import { clearLights, lightFromTarget } from "./highlight.js";
import { openAlternatives } from "./alternatives.js";

const spokenLength = 600;  // characters of a translation that are read out when it is done

function withWords(segment) {
  const words = segment.words ?? segment.text.split(" ").filter(Boolean).map((text) => ({ text, probability: null }));
  return { ...segment, words };
}

function joinSegments(segments, lineCount) {
  const lines = Array.from({ length: lineCount }, () => []);
  for (const segment of segments) lines[segment.line]?.push(segment.text);
  return lines.map((line) => line.join(" ")).join("\n");
}

function searchOptions() {
  return {
    beam: settings.beam, nbest: Math.min(settings.nbest, settings.beam), length_penalty: settings.lengthPenalty,
    ...precisionOption(),
  };
}

export class TargetPane {
  constructor(modelLabel) {
    this.root = byId("target-template").content.firstElementChild.cloneNode(true);
    byId("board").append(this.root);
    this.find = (selector) => this.root.querySelector(selector);
    this.output = this.find(".output");
    this.select = this.find(".model");
    this.select.dataset.label = modelLabel;
    this.model = "";
    this.said = { text: () => "", fault: false };
    this.forget();
    this.roving = setUpRoving(this.output, ".word");
    this.listenToButtons();
    this.listenToWords();
    for (const name of ["models", "settings"]) listen(name, () => this.showModel());
    listen("language", () => this.showLanguage());
    translateInterface(this.root);
  }

  get hidden() {
    return this.root.hidden;
  }

  get busy() {
    return this.root.classList.contains("busy");
  }

  get text() {
    return this.translation?.text ?? "";
  }

  forget() {
    this.source = "";
    this.translation = null;
    this.original = null;
    this.places = null;
    this.words = [];
  }

  setModel(name) {
    this.model = name;
    this.showModel();
  }

  showModel() {
    this.root.setAttribute("aria-label", `${t("english")} · ${this.model}`);
    fillSelect(this.select, modelOptions(), this.model);
    this.find(".facts").replaceChildren(...modelFacts(modelOf(this.model)));
    if (!this.translation) this.showEmpty();
  }

  // What is on the page is said again, in the other language.
  showLanguage() {
    const { text, fault } = this.said;
    this.showModel();
    if (this.translation && !this.busy) this.show(this.translation, this.original);
    this.progress(text, fault);
  }

  listenToButtons() {
    this.select.addEventListener("change", () => {
      this.setModel(this.select.value);
      emit("model", this);
    });
    this.find(".copy").addEventListener("click", async () => {
      const done = await copyText(this.text);
      showMessage(t(done ? "copied" : "copyFailed"));
    });
    this.find(".download").addEventListener("click", () => saveAs(t("downloadName"), this.text + "\n"));
    this.find(".undo").addEventListener("click", () => {
      this.show(this.original);
      this.words[0]?.[0]?.focus();
    });
  }

  listenToWords() {
    const wordOf = (event) => event.target.closest?.(".word");
    const light = (event) => {
      const word = wordOf(event);
      if (word) lightFromTarget(this, Number(word.dataset.segment), Number(word.dataset.place));
    };
    this.output.addEventListener("pointerover", light);
    this.output.addEventListener("focusin", light);
    this.output.addEventListener("pointerout", clearLights);
    this.output.addEventListener("focusout", clearLights);
    this.output.addEventListener("click", (event) => {
      if (wordOf(event) && getSelection().isCollapsed) this.openWord(wordOf(event));
    });
    this.output.addEventListener("keydown", (event) => {
      if ((event.key !== "Enter" && event.key !== " ") || !wordOf(event)) return;
      event.preventDefault();
      this.openWord(wordOf(event));
    });
  }

  openWord(anchor) {
    if (this.busy) return;
    const s = Number(anchor.dataset.segment);
    const w = Number(anchor.dataset.place);
    const segment = this.translation.segments[s];
    const prefix = segment.words.slice(0, w).map((word) => word.text).join(" ");
    openAlternatives({
      anchor, model: this.model, source: segment.source, prefix, current: segment.words[w].text,
      onChoose: (one) => this.choose(s, w, prefix, one),
    });
  }

  // The words up to the chosen one are kept; the model translates the rest anew.
  async choose(s, w, prefix, { word, translation }) {
    const segment = this.translation.segments[s];
    const forced = prefix ? `${prefix} ${word}` : word;
    this.replaceSegment(s, [{ ...segment, text: translation ?? forced, words: undefined, attention: undefined }]);
    this.words[s][w]?.focus();
    await this.askSegment(s, segment, forced);
    this.words[s]?.[w]?.focus();
    announce(t("translated", { text: this.translation.segments[s].text }));
  }

  // Another of the n-best translations; where the text is a single segment, with its words' certainties. Of several,
  // segments that stay as they are keep theirs.
  async adopt({ text, parts }) {
    const [segment, ...more] = this.original.segments;
    if (more.length || !segment) {
      const segments = this.original.segments.map((one, i) =>
        (parts[i] === one.text ? one : { ...one, text: parts[i], words: undefined, attention: undefined }));
      this.show({ ...this.original, text, segments }, this.original);
      return;
    }
    this.replaceSegment(0, [{ ...segment, text, words: undefined, attention: undefined }]);
    await this.askSegment(0, segment, text, text);
  }

  // expected: the whole text that the answer must have to be taken.
  async askSegment(s, segment, prefix, expected) {
    this.cancel();
    this.controller = new AbortController();
    this.setBusy(true);
    try {
      const answer = await postJson("/v1/translate", {
        text: segment.source, model: this.model, words: true, attention: true, ...searchOptions(), nbest: 1, prefix,
      }, { signal: this.controller.signal });
      const made = answer.translations[0];
      if (!expected || made.text === expected) {
        this.replaceSegment(s, made.segments.map((one) => ({ ...one, line: segment.line })));
      }
      this.setBusy(false);
      this.showProgress(answer.seconds);
    } catch (error) {
      this.fail(error);
    }
  }

  replaceSegment(s, made) {
    const segments = this.translation.segments.toSpliced(s, 1, ...made);
    const text = joinSegments(segments, this.translation.text.split("\n").length);
    this.show({ ...this.translation, segments, text }, this.original);
  }

  cancel() {
    this.controller?.abort();
    this.controller = null;
  }

  setBusy(busy) {
    this.output.setAttribute("aria-busy", String(busy));
    this.root.classList.toggle("busy", busy);
    // What is below must not move while the text grows back.
    this.output.style.minHeight = busy ? `${this.output.offsetHeight}px` : "";
    if (busy) this.progress(() => t("translating"));
  }

  // text(): as say() takes it, in the language of the interface where it has that.
  progress(text, fault = false) {
    this.said = { text, fault };
    const line = this.find(".progress");
    say(line, text());
    line.classList.toggle("fault", fault);
  }

  showProgress(seconds) {
    const notes = new Set();
    for (const segment of this.translation?.segments ?? []) {
      if (segment.looped) notes.add("looped");
      if (segment.copied) notes.add("copiedSource");
      if (segment.complete === false) notes.add("incomplete");
    }
    const text = () => {
      const parts = [...notes].map((key) => t(key));
      if (typeof seconds === "number") parts.push(t("seconds", { n: number(seconds, seconds < 1 ? 2 : 1) }));
      return parts.join(" · ");
    };
    this.progress(text, notes.size > 0);
  }

  fail(error) {
    if (isAbort(error)) return;
    this.setBusy(false);
    if (this.translation) this.show(this.translation, this.original);
    this.progress(() => errorText(error), true);
    announce(errorText(error));
  }

  showEmpty() {
    this.output.textContent = "";
    this.output.dataset.empty = t("targetPlaceholder");
    this.progress(() => "");
    this.showButtons();
  }

  showButtons() {
    for (const name of [".copy", ".download"]) this.find(name).disabled = !this.translation;
    this.find(".undo").disabled = !this.translation || this.translation === this.original;
  }

  // original: what the model made by itself, for undo.
  show(translation, original = translation) {
    this.translation = { ...translation, segments: translation.segments.map(withWords) };
    this.original = original === translation ? this.translation : original;
    this.places = null;
    this.words = renderTranslation(this.output, this.translation);
    this.roving.reset();
    this.showButtons();
    emit("shown", this);
  }

  clear() {
    this.cancel();
    this.forget();
    this.setBusy(false);
    this.showEmpty();
    emit("shown", this);
  }

  async translate(source) {
    this.cancel();
    if (!source.trim()) return this.clear();
    const controller = (this.controller = new AbortController());
    const previous = this.text;
    let finished = null;
    this.setBusy(true);
    try {
      const body = { text: source, model: this.model, stream: true, words: true, attention: true, ...searchOptions() };
      for await (const { name, data } of postEvents("/v1/translate", body, controller.signal)) {
        if (controller.signal.aborted) return;
        if (name === "error") throw new ApiError(500, data.error?.message ?? String(data.error));
        if (name === "partial") renderPartial(this.output, data.text, previous);
        if (name === "translation") {
          this.source = source;
          this.show(data);
        }
        if (name === "done") finished = data;
      }
      this.setBusy(false);
      this.showProgress(finished?.seconds);
      announce(t("translated", { text: this.text.slice(0, spokenLength) }));
      emit("translated", this);
    } catch (error) {
      this.fail(error);
    }
  }

  mark(s, w) {
    this.words[s]?.[w]?.classList.add("origin");
  }

  light(s, w, strength) {
    const word = this.words[s]?.[w];
    if (!word) return;
    word.classList.add("lit");
    word.style.setProperty("--weight", strength.toFixed(3));
  }

  clearLights() {
    for (const word of this.words.flat()) word.classList.remove("lit", "origin");
  }
}
