// Small helpers for the document: building elements, icons, announcements, messages, downloads.

// attributes: "text" is the content, "onclick" and the like are listeners, "vars" are CSS custom properties.
// Children are elements or strings; empty ones are left out.
export function element(tag, attributes = {}, ...children) {
  const one = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") one.textContent = value;
    else if (name === "vars") setVariables(one, value);
    else if (name === "dataset") Object.assign(one.dataset, value);
    else if (name.startsWith("on")) one.addEventListener(name.slice(2), value);
    else one.setAttribute(name, value === true ? "" : value);
  }
  one.append(...children.filter(Boolean));
  return one;
}

export function svgElement(tag, attributes = {}, text = "") {
  const one = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value);
  if (text) one.textContent = text;
  return one;
}

// Through CSSOM, since the page's content security policy forbids style attributes.
export function setVariables(one, variables) {
  for (const [name, value] of Object.entries(variables)) one.style.setProperty(name, value);
}

export function byId(id) {
  return document.getElementById(id);
}

export function icon(name) {
  const svg = svgElement("svg", { class: "icon", "aria-hidden": "true" });
  svg.append(svgElement("use", { href: "#icon-" + name }));
  return svg;
}

export function iconButton(name, label, onclick) {
  return element("button", { type: "button", class: "icon-button", "aria-label": label, title: label, onclick }, icon(name));
}

// said: a text in the language of the interface, or { text, lang }.
export function say(one, said) {
  one.textContent = said.text ?? said;
  if (said.lang) one.lang = said.lang;
  else one.removeAttribute("lang");
}

// For screen readers. Cleared first, so that the same text is announced twice.
export function announce(said) {
  const status = byId("announcement");
  status.textContent = "";
  setTimeout(() => say(status, said), 50);
}

let messageTimer = 0;

// A message at the foot of the window, over the content so that nothing moves. seconds 0: until the next one.
export function showMessage(said, { kind = "info", seconds = 4 } = {}) {
  const message = byId("message");
  clearTimeout(messageTimer);
  say(message, said);
  message.dataset.kind = kind;
  message.classList.toggle("shown", message.textContent !== "");
  if (message.textContent && seconds) messageTimer = setTimeout(() => showMessage(""), seconds * 1000);
}

export function saveAs(name, content, type = "text/plain") {
  const url = URL.createObjectURL(new Blob([content], { type: type + ";charset=utf-8" }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// The clipboard interface exists on secure origins only; a server in the local network is not one.
export async function copyText(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // fall through: permission denied
    }
  }
  const area = element("textarea", { class: "offscreen", "aria-hidden": "true" });
  area.value = text;
  const focused = document.activeElement;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  focused?.focus?.();
  return done;
}

export function fillSelect(select, options, chosen) {
  select.replaceChildren(
    ...options.map(({ value, text, disabled }) => element("option", { value, text, disabled })));
  select.value = String(chosen);
  if (select.selectedIndex < 0) select.selectedIndex = 0;
}

// A modal dialog that also closes by a click beside it.
export function openDialog(dialog) {
  if (!dialog.dataset.wired) {
    dialog.dataset.wired = "yes";
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog || event.target.closest("[data-close]")) dialog.close();
    });
  }
  if (!dialog.open) dialog.showModal();
}

const bus = new EventTarget();

// Events between modules: "language", "models", "settings", "attention", "translated".
export function listen(name, handler) {
  bus.addEventListener(name, (event) => handler(event.detail));
}

export function emit(name, detail) {
  bus.dispatchEvent(new CustomEvent(name, { detail }));
}
