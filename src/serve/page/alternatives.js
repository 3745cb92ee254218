// The list of other words that the model considered at one place, with their probabilities.
import { percent, t } from "./strings.js";
import { byId, element } from "./dom.js";
import { isAbort, postJson } from "./api.js";
import { precisionOption } from "./models.js";
import { errorText } from "./server_texts.js";

const alternativesCount = 8;

let alternativesOpen = null;  // { anchor, controller }

// Below the word where there is room, else above; CSS makes it a sheet on small screens.
function placePopover(popover, anchor) {
  const box = anchor.getBoundingClientRect();
  const margin = 8;
  const width = popover.offsetWidth;
  const height = popover.offsetHeight;
  const left = Math.max(margin, Math.min(box.left, innerWidth - width - margin));
  const below = box.bottom + 6 + height <= innerHeight - margin;
  const top = below || box.top - 6 - height < margin ? box.bottom + 6 : box.top - 6 - height;
  popover.style.left = `${left + scrollX}px`;
  popover.style.top = `${top + scrollY}px`;
}

export function closeAlternatives(giveFocus = true) {
  if (!alternativesOpen) return;
  const { anchor, controller } = alternativesOpen;
  alternativesOpen = null;
  controller.abort();
  byId("alternatives").hidden = true;
  anchor.removeAttribute("aria-expanded");
  if (giveFocus && anchor.isConnected) anchor.focus();
}

function choiceElement(one, current, onChoose) {
  const chosen = one.word === current;
  return element("li", {}, element("button", {
    type: "button", class: "alternative", "aria-current": chosen ? "true" : null,
    vars: { "--share": `${Math.round(one.probability * 100)}%` }, onclick: () => onChoose(one),
  },
  element("span", { class: "alternative-word", text: one.word }),
  element("span", { class: "alternative-share", text: percent(one.probability) }),
  element("span", { class: "alternative-rest", text: one.translation ?? "" })));
}

// onChoose({ word, probability, translation })
export async function openAlternatives({ anchor, model, source, prefix, current, onChoose }) {
  closeAlternatives(false);
  const popover = byId("alternatives");
  const list = byId("alternatives-list");
  const controller = new AbortController();
  alternativesOpen = { anchor, controller };
  anchor.setAttribute("aria-expanded", "true");
  byId("alternatives-title").textContent = t("alternatives", { word: current });
  list.replaceChildren(element("li", { class: "quiet", text: t("loading") }));
  popover.hidden = false;
  popover.tabIndex = -1;
  placePopover(popover, anchor);
  popover.focus({ preventScroll: true });
  try {
    const answer = await postJson("/v1/alternatives", { model, source, prefix, count: alternativesCount, ...precisionOption() },
      { signal: controller.signal });
    const choose = (one) => {
      closeAlternatives(false);
      onChoose(one);
    };
    const choices = answer.alternatives.map((one) => choiceElement(one, current, choose));
    list.replaceChildren(...(choices.length ? choices : [element("li", { class: "quiet", text: t("alternativesNone") })]));
    placePopover(popover, anchor);
    if (popover.contains(document.activeElement)) list.querySelector("button")?.focus({ preventScroll: true });
  } catch (error) {
    if (!isAbort(error)) list.replaceChildren(element("li", { class: "fault", ...errorText(error) }));
  }
}

export function setUpAlternatives() {
  const popover = byId("alternatives");
  popover.addEventListener("keydown", (event) => {
    const buttons = [...popover.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement);
    if (event.key === "ArrowDown") buttons[Math.min(at + 1, buttons.length - 1)]?.focus();
    else if (event.key === "ArrowUp") buttons[Math.max(at - 1, 0)]?.focus();
    else if (event.key === "Escape" || event.key === "Tab") closeAlternatives();
    else return;
    event.preventDefault();
  });
  document.addEventListener("pointerdown", (event) => {
    if (!popover.contains(event.target)) closeAlternatives(false);
  });
  addEventListener("resize", () => closeAlternatives(false));
}
