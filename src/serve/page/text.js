// Pure functions on texts: words with their places, differences between two translations, link fragments.

// [{ text, start, end }] of the words between blanks.
export function wordsOf(text) {
  return [...text.matchAll(/\S+/g)].map((found) => ({
    text: found[0], start: found.index, end: found.index + found[0].length,
  }));
}

// For each segment the [start, end] of its source words in the whole text, or null where a word is not found
// (the server may have normalised it).
export function locateSourceWords(text, segments) {
  const lines = text.split("\n");
  const starts = [];
  let offset = 0;
  for (const line of lines) {
    starts.push(offset);
    offset += line.length + 1;
  }
  let at = 0;
  return segments.map((segment) => {
    const from = starts[segment.line] ?? 0;
    const to = from + (lines[segment.line] ?? "").length;
    at = Math.max(at, from);
    return (segment.source_words ?? wordsOf(segment.source).map((word) => word.text)).map((word) => {
      const found = text.indexOf(word, at);
      if (found < 0 || found + word.length > to) return null;
      at = found + word.length;
      return [found, at];
    });
  });
}

// Which words of a and of b are not in their longest common subsequence: { a: Set, b: Set } of indices.
export function differingWords(a, b) {
  const differing = { a: new Set(), b: new Set() };
  let first = 0;
  let endA = a.length;
  let endB = b.length;
  while (first < endA && first < endB && a[first] === b[first]) ++first;
  while (endA > first && endB > first && a[endA - 1] === b[endB - 1]) --endA, --endB;
  const rows = endA - first;
  const columns = endB - first;
  if (rows * columns > 4e6) {  // far too long for a table: all of the middle differs
    for (let i = first; i < endA; ++i) differing.a.add(i);
    for (let j = first; j < endB; ++j) differing.b.add(j);
    return differing;
  }
  const width = columns + 1;
  const length = new Uint16Array((rows + 1) * width);
  for (let i = rows - 1; i >= 0; --i) {
    for (let j = columns - 1; j >= 0; --j) {
      length[i * width + j] = a[first + i] === b[first + j]
        ? length[(i + 1) * width + j + 1] + 1
        : Math.max(length[(i + 1) * width + j], length[i * width + j + 1]);
    }
  }
  let i = 0;
  let j = 0;
  while (i < rows || j < columns) {
    if (i < rows && j < columns && a[first + i] === b[first + j]) ++i, ++j;
    else if (j >= columns || (i < rows && length[(i + 1) * width + j] >= length[i * width + j + 1])) {
      differing.a.add(first + i++);
    } else {
      differing.b.add(first + j++);
    }
  }
  return differing;
}

// #fr=…&model=…
export function encodeFragment(values) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value) parameters.set(name, value);
  return "#" + parameters;
}

export function decodeFragment(hash) {
  return Object.fromEntries(new URLSearchParams(hash.replace(/^#/, "")));
}

// For metrics of a line each: the lines of both sides where they match in number, else everything as one.
export function pairedLines(...texts) {
  const lines = texts.map((text) => text.split("\n").map((line) => line.trim()).filter(Boolean));
  if (lines.every((one) => one.length === lines[0].length)) return lines;
  return lines.map((one) => [one.join(" ")]);
}

// Style attributes under another name: a parser that met them would report each to the console, since the page's
// content security policy forbids them.
export function renameStyles(html) {
  return html.replace(/<[a-z][^<>]*>/gi, (tag) => tag.replace(/\sstyle=/gi, " data-style="));
}
