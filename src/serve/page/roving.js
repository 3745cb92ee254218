// One stop of the Tab key for a group of words; the arrow keys move inside it.

export function setUpRoving(container, selector) {
  const items = () => [...container.querySelectorAll(selector)];
  const makeCurrent = (item) => {
    for (const one of items()) one.tabIndex = one === item ? 0 : -1;
  };

  // The nearest word in the line above or below.
  const vertical = (all, from, down) => {
    const at = from.getBoundingClientRect();
    const middle = at.left + at.width / 2;
    let best = from;
    let bestDistance = Infinity;
    for (const one of all) {
      const box = one.getBoundingClientRect();
      const lines = (box.top - at.top) * (down ? 1 : -1);
      if (lines < at.height / 2) continue;
      const distance = lines * 1000 + Math.abs(box.left + box.width / 2 - middle);
      if (distance < bestDistance) [best, bestDistance] = [one, distance];
    }
    return best;
  };

  container.addEventListener("focusin", (event) => {
    const item = event.target.closest(selector);
    if (item) makeCurrent(item);
  });
  container.addEventListener("keydown", (event) => {
    const from = event.target.closest(selector);
    if (!from || event.ctrlKey || event.altKey || event.metaKey) return;
    const all = items();
    const at = all.indexOf(from);
    const to = {
      ArrowRight: () => all[at + 1], ArrowLeft: () => all[at - 1],
      ArrowDown: () => vertical(all, from, true), ArrowUp: () => vertical(all, from, false),
      Home: () => all[0], End: () => all.at(-1),
    }[event.key];
    if (!to) return;
    event.preventDefault();
    to()?.focus();
  });
  return { reset: () => makeCurrent(items()[0]) };
}
