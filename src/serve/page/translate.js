// The translation tab: what is typed is translated by one or two models, each keystroke cancelling the last request.
import { byId, listen } from "./dom.js";
import { saveSettings, settings } from "./store.js";
import { firstModel, loadModels, modelOf } from "./models.js";
import { sourceView } from "./source.js";
import { addLightedPane, clearLights, lightFromSource } from "./highlight.js";
import { closeAlternatives, setUpAlternatives } from "./alternatives.js";
import { TargetPane } from "./target.js";
import { setUpCompare } from "./compare.js";
import { setUpNbest } from "./nbest.js";
import { setUpReference } from "./reference.js";
import { setUpHistory } from "./history.js";
import { setUpFiles } from "./files.js";
import { setUpShare } from "./share.js";
import { setUpAttentionMap } from "./attention_map.js";

const typingPause = 300;  // ms
const examples = [
  "Le chat dort sur la chaise.\nIl est tard, mais les enfants lisent encore.",
  "S'il neige, Sophie et Claire liront cette histoire.",
  "Pierre va à la bibliothèque tous les matins.",
];

export function setUpTranslate() {
  const first = new TargetPane("model");
  const second = new TargetPane("secondModel");
  const panes = [first, second];
  let timer = 0;
  let example = 0;

  const translateNow = () => {
    clearTimeout(timer);
    if (!first.model) return;  // the models are not known yet; then it starts by itself
    for (const pane of panes) if (!pane.hidden) pane.translate(sourceView.text);
  };
  const typed = () => {
    sourceView.refresh();
    clearLights();
    closeAlternatives(false);
    for (const pane of panes) pane.cancel();
    byId("clear").disabled = byId("share").disabled = sourceView.text === "";
    byId("example").hidden = sourceView.text !== "";
    clearTimeout(timer);
    timer = setTimeout(translateNow, sourceView.text.trim() ? typingPause : 0);
  };
  const setSource = (text) => {
    sourceView.text = text;
    typed();
    translateNow();
  };
  const useModel = (name) => {
    if (modelOf(name)) first.setModel(name);
  };

  for (const pane of panes) addLightedPane(pane);
  setUpAlternatives();
  sourceView.listenForWords(lightFromSource);
  const compare = setUpCompare(first, second, () => {
    if (sourceView.text.trim()) second.translate(sourceView.text);
  });
  setUpNbest(panes);
  setUpReference(panes);
  setUpAttentionMap(panes);
  setUpFiles(first);
  setUpHistory(first, (entry) => {
    useModel(entry.model);
    setSource(entry.source);
  });
  const share = setUpShare(
    () => ({ fr: sourceView.text, model: first.model, with: second.hidden ? "" : second.model }),
    (values) => {
      useModel(values.model);
      if (modelOf(values.with)) {
        second.setModel(values.with);
        compare.open(true);
      }
      setSource(values.fr);
    });

  sourceView.area.addEventListener("input", () => {
    if (!first.model) loadModels().catch(() => {});  // perhaps the question for a token was closed
    typed();
  });
  sourceView.area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) translateNow();
  });
  byId("clear").addEventListener("click", () => {
    setSource("");
    sourceView.area.focus();
  });
  byId("example").addEventListener("click", () => {
    setSource(examples[example++ % examples.length]);
    sourceView.area.focus();
  });
  listen("settings", translateNow);
  listen("language", () => sourceView.refresh());
  listen("model", (pane) => {
    if (pane === first) saveSettings({ model: pane.model });
    pane.translate(sourceView.text);
  });
  listen("models", () => {
    if (first.model) return;
    useModel(modelOf(settings.model)?.state === "ready" ? settings.model : firstModel());
    share.follow();
    if (sourceView.text.trim()) translateNow();
  });
  typed();
}
