// Hovering or focusing a word lights up what it attended to, on either side, by the attention's weight.
import { sourceView } from "./source.js";
import { attentionRows } from "./attention.js";
import { locateSourceWords } from "./text.js";

const dimmest = 0.12;  // of the strongest weight; what is below stays dark

const lightedPanes = [];
let lightTurn = 0;  // an answer that comes after the pointer has moved on is not shown

export function addLightedPane(pane) {
  lightedPanes.push(pane);
}

function placesOf(pane) {
  pane.places ??= locateSourceWords(pane.source, pane.translation.segments);
  return pane.places;
}

const usable = (pane) => !pane.hidden && pane.translation && pane.source === sourceView.text;

export function clearLights() {
  ++lightTurn;
  sourceView.clearLights();
  for (const pane of lightedPanes) pane.clearLights();
}

// An English word: its row of weights, on the French words.
export async function lightFromTarget(pane, s, w) {
  clearLights();
  if (!usable(pane)) return;
  const turn = lightTurn;
  pane.mark(s, w);
  const row = (await attentionRows(pane.model, pane.translation.segments[s]).catch(() => null))?.[w];
  if (!row || turn !== lightTurn) return;
  const most = Math.max(...row);
  row.forEach((weight, j) => {
    const place = placesOf(pane)[s][j];
    if (!place || weight < most * dimmest) return;
    for (const i of sourceView.wordsAt(place)) sourceView.light(i, weight / most);
  });
}

async function lightPane(pane, word, turn) {
  const places = placesOf(pane);
  for (let s = 0; s < places.length; ++s) {
    const j = places[s].findIndex((place) => place && place[0] < word.end && place[1] > word.start);
    if (j < 0) continue;
    const rows = await attentionRows(pane.model, pane.translation.segments[s]).catch(() => null);
    if (!rows || turn !== lightTurn) return;
    // The last row is the end of the sentence, which has no word.
    const column = pane.translation.segments[s].words.map((_, w) => rows[w]?.[j] ?? 0);
    const most = Math.max(...column);
    column.forEach((weight, w) => {
      if (weight > 0 && weight >= most * dimmest) pane.light(s, w, weight / most);
    });
    return;
  }
}

// A French word: its column of weights, on the English words of every model.
export function lightFromSource(i) {
  clearLights();
  if (i < 0) return;
  sourceView.mark(i);
  for (const pane of lightedPanes) if (usable(pane)) lightPane(pane, sourceView.words[i], lightTurn);
}
