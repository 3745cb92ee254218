// The three tabs, by pointer, arrow keys and link fragment (#tab=runs).
import { byId } from "./dom.js";
import { decodeFragment } from "./text.js";

const tabNames = ["translate", "runs", "experiments"];

// handlers: { runs: { open, close }, … }
export function setUpTabs(handlers) {
  let current = "translate";
  const select = (name) => {
    if (name === current) return;
    handlers[current]?.close?.();
    current = name;
    for (const one of tabNames) {
      const tab = byId("tab-" + one);
      tab.setAttribute("aria-selected", String(one === name));
      tab.tabIndex = one === name ? 0 : -1;
      byId("panel-" + one).hidden = one !== name;
    }
    handlers[name]?.open?.();
    history.replaceState(null, "", name === "translate" ? location.pathname + location.search : "#tab=" + name);
  };
  const follow = () => {
    const { tab, fr } = decodeFragment(location.hash);
    if (tabNames.includes(tab)) select(tab);
    else if (fr) select("translate");
  };
  byId("tabs").addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (tab) select(tab.id.slice(4));
  });
  byId("tabs").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = tabNames.indexOf(current);
    const to = step ? (at + step + tabNames.length) % tabNames.length : { Home: 0, End: tabNames.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    select(tabNames[to]);
    byId("tab-" + tabNames[to]).focus();
  });
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();  // the fragment belongs to shared texts
    byId("main").focus();
  });
  addEventListener("hashchange", follow);
  follow();
}
