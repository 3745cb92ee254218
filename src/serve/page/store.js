// What the browser keeps: settings and history in localStorage, the token in sessionStorage. Storage may be
// forbidden or full; then values live as long as the page.
const settingsKey = "calque.settings";
const historyKey = "calque.history";
const tokenKey = "calque.token";
const historyLimit = 50;

export const defaults = {
  theme: "auto", language: "", model: "", beam: 4, nbest: 3, lengthPenalty: 0.6, precision: "", certainty: true,
  layer: "", head: "",
};

function readStored(storage, key, fallback) {
  try {
    return JSON.parse(window[storage].getItem(key)) ?? fallback;
  } catch {
    return fallback;
  }
}

function writeStored(storage, key, value) {
  try {
    window[storage].setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

export const settings = { ...defaults, ...readStored("localStorage", settingsKey, {}) };

export function saveSettings(changes) {
  Object.assign(settings, changes);
  writeStored("localStorage", settingsKey, settings);
}

// Not persisted where sessionStorage is forbidden.
let currentToken = readStored("sessionStorage", tokenKey, "");

export function storedToken() {
  return currentToken;
}

export function storeToken(value) {
  currentToken = value;
  writeStored("sessionStorage", tokenKey, value);
}

export function historyAvailable() {
  return writeStored("localStorage", "calque.probe", 1);
}

export function historyEntries() {
  const entries = readStored("localStorage", historyKey, []);
  return Array.isArray(entries) ? entries : [];
}

// Text that was typed on is one entry: the newest replaces its own beginning.
export function addToHistory(entry) {
  const entries = historyEntries().filter((one) => one.source !== entry.source);
  const last = entries[0];
  if (last && entry.time - last.time < 120000 && entry.source.startsWith(last.source)) entries.shift();
  entries.unshift(entry);
  writeStored("localStorage", historyKey, entries.slice(0, historyLimit));
}

export function removeFromHistory(source) {
  writeStored("localStorage", historyKey, historyEntries().filter((one) => one.source !== source));
}

export function clearHistory() {
  writeStored("localStorage", historyKey, []);
}
