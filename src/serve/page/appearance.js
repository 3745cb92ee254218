// Theme (as the system, light, dark) and the language of the interface.
import { setLanguage, language, t, translateInterface } from "./strings.js";
import { announce, byId, emit, icon } from "./dom.js";
import { saveSettings, settings } from "./store.js";

const themes = ["auto", "light", "dark"];
const themeNames = { auto: "themeAuto", light: "themeLight", dark: "themeDark" };

function showTheme() {
  const button = byId("theme-switch");
  if (settings.theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = settings.theme;
  button.replaceChildren(icon(settings.theme));
  button.title = t(themeNames[settings.theme]);
  button.setAttribute("aria-label", button.title);
}

function showLanguage(code) {
  setLanguage(code);
  translateInterface();
  const other = code === "fr" ? "en" : "fr";
  const button = byId("language-switch");
  button.textContent = other.toUpperCase();
  button.lang = other;
  document.title = `calque · ${t("tagline")}`;
  showTheme();
}

export function setUpAppearance() {
  const preferred = (navigator.languages?.[0] ?? navigator.language ?? "en").toLowerCase();
  showLanguage(settings.language || (preferred.startsWith("fr") ? "fr" : "en"));
  byId("theme-switch").addEventListener("click", () => {
    saveSettings({ theme: themes[(themes.indexOf(settings.theme) + 1) % themes.length] });
    showTheme();
  });
  byId("language-switch").addEventListener("click", () => {
    showLanguage(language() === "fr" ? "en" : "fr");
    saveSettings({ language: language() });
    announce("");
    emit("language");
  });
}
