// Clicks through every feature of the page, in a headless Chromium, against a running server.
//   npm install && CALQUE_URL=http://127.0.0.1:8080 npm test
// The server must serve two models; their translations are not known in advance, so behaviour is what is checked.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { address, fulfil, fulfilStream, launch, openPage, textOf, translate, translated } from "./browser.mjs";

const sentence = "Pierre va à la bibliothèque tous les matins.";
const other = "S'il neige, Sophie et Claire liront cette histoire.";
const paragraphs = `${sentence}\n\n${other}`;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

let browser;
let models;

before(async () => {
  browser = await launch();
  const answer = await fetch(address + "/v1/models");
  models = await answer.json();
  assert.ok(models.models.length >= 2, "the tests want two models");
});
after(() => browser?.close());

// A test with a page of its own, which must end without an error in the console or a request to elsewhere.
function pageTest(name, options, body = options) {
  test(name, async () => {
    const page = await openPage(browser, body === options ? {} : options);
    try {
      await body(page);
      assert.deepEqual(page.complaints, []);
    } finally {
      await page.context().close();
    }
  });
}

const word = (page, i, pane = 0) => page.locator(".target").nth(pane).locator(".word").nth(i);

// The place of a French word on the screen, under the text area.
async function hoverSourceWord(page, i) {
  const box = await page.locator("#mirror span").nth(i).boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
}

async function focusByTab(page, selector, most = 40) {
  for (let i = 0; i < most; ++i) {
    if (await page.evaluate((wanted) => document.activeElement.matches(wanted), selector)) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`Tab does not reach ${selector}`);
}

pageTest("a translation appears while it is made, and nothing jumps", async (page) => {
  await page.evaluate(() => {
    window.seen = { streamed: false, tops: new Set() };
    new MutationObserver(() => {
      window.seen.streamed ||= document.querySelector(".caret") !== null;
      window.seen.tops.add(Math.round(document.querySelector("#tools").getBoundingClientRect().top));
    }).observe(document.querySelector(".output"), { childList: true, subtree: true });
  });
  const text = await translate(page, sentence);
  assert.ok(text.length > 3);
  const seen = await page.evaluate(() => ({ streamed: window.seen.streamed, tops: [...window.seen.tops] }));
  assert.ok(seen.streamed, "no partial translation was shown");
  assert.equal(seen.tops.length, 1, `what is below moved: ${seen.tops}`);
  // Read out once, when it is done.
  await page.waitForFunction((made) => document.querySelector("#announcement").textContent.includes(made), text);
});

pageTest("typing waits for a pause and cancels the earlier request", {
  routes: { "/v1/translate": async (route) => {
    await pause(700);
    await route.continue().catch(() => {});
  } },
}, async (page) => {
  await page.locator(".model option").first().waitFor({ state: "attached" });
  // Not by "requestfailed": where requests are intercepted, Chromium reports it also for a stream that was read to its end.
  await page.evaluate(() => {
    const fetchAsBefore = window.fetch;
    window.sent = [];
    window.fetch = (path, options) => {
      if (path === "/v1/translate") window.sent.push({ text: JSON.parse(options.body).text, signal: options.signal });
      return fetchAsBefore(path, options);
    };
  });
  await page.focus("#source");
  await page.keyboard.type("Pierre va", { delay: 15 });
  await pause(500);
  await page.keyboard.type(" à la plage.", { delay: 15 });
  await translated(page);
  const sent = await page.evaluate(() => window.sent.map(({ text, signal }) => ({ text, cancelled: signal.aborted })));
  assert.deepEqual(sent, [{ text: "Pierre va", cancelled: true }, { text: "Pierre va à la plage.", cancelled: false }]);
});

pageTest("several paragraphs, the count of characters, copy, download, clear", async (page) => {
  const text = await translate(page, paragraphs);
  assert.equal(text.split("\n").length, 3);
  assert.equal(text.split("\n")[1], "");
  assert.match(await page.textContent("#count"), new RegExp(`^${[...paragraphs].length} `));
  await page.click(".target .copy");
  await page.locator("#message.shown").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), text);
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(".target .download")]);
  assert.equal(await readFile(await download.path(), "utf8"), text + "\n");
  await page.click("#clear");
  assert.equal(await page.inputValue("#source"), "");
  assert.equal(await page.locator(".word").count(), 0);
  assert.ok(await page.evaluate(() => document.activeElement.id === "source"));
});

pageTest("a file is uploaded, translated and offered for download", async (page) => {
  await page.locator(".model option").first().waitFor({ state: "attached" });
  await page.setInputFiles("#file", { name: "lettre.txt", mimeType: "text/plain", buffer: Buffer.from(paragraphs + "\n") });
  const link = page.locator("#file-result a");
  await link.waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), link.click()]);
  const content = await readFile(await download.path(), "utf8");
  assert.ok(content.trim().split("\n").length >= 3, content);
  await page.setInputFiles("#file", { name: "image.png", mimeType: "image/png", buffer: Buffer.from("x") });
  await page.locator("#file-result .fault").waitFor();
});

pageTest("history is kept in the browser, opens again and can be cleared", async (page) => {
  await translate(page, sentence);
  await page.waitForFunction((text) => localStorage.getItem("calque.history")?.includes(text), sentence);
  await page.reload();
  await page.click("#history-open");
  await page.click(".history-entry");
  await translated(page);
  assert.equal(await page.inputValue("#source"), sentence);
  await page.click("#history-open");
  await page.click("#history-clear");
  assert.equal(await page.locator(".history-entry").count(), 0);
  assert.equal(await page.evaluate(() => localStorage.getItem("calque.history")), "[]");
});

pageTest("a shared link carries text and model", async (page) => {
  const model = models.models.find((one) => one.name !== models.default).name;
  await page.selectOption(".target .model", model);
  const text = await translate(page, paragraphs);
  await page.click("#share");
  await page.locator("#message.shown").waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.ok(link.startsWith(address + "/#fr="));
  const opened = await openPage(browser, { hash: link.slice(address.length + 1) });
  assert.equal(await translated(opened), text);
  assert.equal(await opened.inputValue("#source"), paragraphs);
  assert.equal(await opened.inputValue(".target .model"), model);
  await opened.context().close();
});

pageTest("the model's name, size, BLEU and speed are beside it", async (page) => {
  await page.locator(".target .facts span").first().waitFor();
  const model = models.models.find((one) => one.name === models.default);
  assert.equal(await page.inputValue(".target .model"), model.name);
  const facts = await page.textContent(".target .facts");
  assert.match(facts, /parameters/);
  assert.match(facts, /[kMG]B/);
  if (model.bleu !== null) assert.match(facts, /BLEU \d/);
  if (model.sentences_per_second !== null) assert.match(facts, /sentences\/s/);
});

pageTest("hovering a word lights up what it attended to, on either side", async (page) => {
  await translate(page, other);
  await word(page, 1).hover();
  await page.locator("#mirror .lit").first().waitFor();
  await page.mouse.move(5, 5);
  await page.waitForFunction(() => !document.querySelector(".lit"));
  await hoverSourceWord(page, 2);
  await page.locator(".output .lit").first().waitFor();
  assert.equal(await page.locator("#mirror .origin").textContent(), other.split(" ")[2]);
});

pageTest("layer and head are chosen; the full map is a table", async (page) => {
  const text = await translate(page, sentence);
  const asked = page.waitForRequest("**/v1/attention");
  await page.selectOption("#layer", { value: "1" });
  await page.selectOption("#head", { value: "0" });
  await word(page, 0).hover();
  const { layer, head } = (await asked).postDataJSON();
  assert.deepEqual({ layer, head }, { layer: 1, head: 0 });
  await page.locator("#mirror .lit").first().waitFor();
  await page.click("#map-open");
  await page.locator("#map tbody tr").first().waitFor();
  assert.equal(await page.locator("#map tbody tr").count(), text.split(" ").length + 1);
  assert.equal(await page.locator("#map thead th").count(), sentence.split(" ").length);
  assert.equal(await page.inputValue("#map-layer"), "1");
  const first = await page.locator("#map tbody tr").first().locator("td").evaluateAll(
    (cells) => cells.reduce((sum, cell) => sum + Number(cell.title), 0));
  assert.ok(Math.abs(first - 1) < 0.02, `weights sum to ${first}`);
  await page.selectOption("#map-layer", { value: "" });
  await page.keyboard.press("Escape");
  assert.equal(await page.inputValue("#layer"), "");
});

pageTest("an English word shows alternatives; choosing one translates the rest anew; undo", async (page) => {
  const before = await translate(page, sentence);
  const words = before.split(" ");
  await word(page, 1).click();
  await page.locator(".alternative").nth(1).waitFor();
  const shares = await page.locator(".alternative-share").allTextContents();
  assert.ok(shares.every((share) => /\d\s?%/.test(share)), String(shares));
  const at = (await page.locator(".alternative-word").allTextContents()).findIndex((one) => one !== words[1]);
  const chosen = await page.locator(".alternative-word").nth(at).textContent();
  const forced = page.waitForRequest((one) => one.url().endsWith("/v1/translate") && one.postDataJSON().prefix === `${words[0]} ${chosen}`);
  await page.locator(".alternative").nth(at).click();
  await forced;
  const after = await translated(page);
  assert.ok(after.startsWith(`${words[0]} ${chosen}`), after);
  assert.ok(await page.locator("#alternatives").isHidden());
  await page.click(".target .undo");
  assert.equal(await textOf(page), before);
});

pageTest("words are tinted by certainty, which can be switched off", async (page) => {
  await translate(page, other);
  const doubts = await page.locator(".word").evaluateAll((all) => all.map((one) => Number(one.style.getPropertyValue("--doubt"))));
  assert.ok(doubts.some((doubt) => doubt > 0));
  assert.match(await word(page, 0).getAttribute("aria-description"), /certainty .*%/);
  const background = () => page.locator(".word").evaluateAll((all) => new Set(all.map((one) => getComputedStyle(one).backgroundColor)).size);
  assert.ok(await background() > 1);
  await page.uncheck("#certainty");
  assert.equal(await background(), 1);
});

pageTest("the n-best list has scores and takes another translation over", async (page) => {
  const text = await translate(page, sentence);
  const entries = page.locator(".nbest-entry");
  assert.equal(await entries.count(), 3);
  assert.equal(await page.locator(".nbest-text").first().textContent(), text);
  const scores = (await page.locator(".nbest-score").allTextContents()).map((score) => Number(score.replace("−", "-")));
  assert.deepEqual(scores, [...scores].sort((a, b) => b - a));
  const second = await page.locator(".nbest-text").nth(1).textContent();
  await entries.nth(1).click();
  assert.equal(await translated(page), second);
  assert.equal(await entries.nth(1).getAttribute("aria-current"), "true");
});

pageTest("the n-best list of several lines takes one over, line by line", async (page) => {
  await translate(page, `${sentence}\n${other}`);
  const entries = page.locator(".nbest-entry");
  assert.ok(await entries.count() > 1);
  const second = await page.locator(".nbest-text").nth(1).textContent();
  assert.equal(second.split("\n").length, 2);
  await entries.nth(1).click();
  assert.equal(await translated(page), second);
  assert.equal(await entries.nth(1).getAttribute("aria-current"), "true");
});

// Two sentences of a line that the model translates one by one.
const inParts = {
  text: "One two. Three four.",
  segments: [
    { line: 0, source: "Un deux.", text: "One two.", complete: true },
    { line: 0, source: "Trois quatre.", text: "Three four.", complete: true },
  ],
  nbest: [
    { text: "One two. Three four.", score: -1, log_probability: -1, complete: true, parts: ["One two.", "Three four."] },
    { text: "A two. Three fours.", score: -2, log_probability: -2, complete: true, parts: ["A two.", "Three fours."] },
  ],
};

pageTest("a translation that was taken over keeps its segments, for alternatives", {
  routes: { "/v1/translate": (route) => fulfilStream(route, inParts) },
}, async (page) => {
  await translate(page, "Un deux. Trois quatre.");
  await page.locator(".nbest-entry").nth(1).click();
  assert.equal(await textOf(page), inParts.nbest[1].text);
  const asked = page.waitForRequest("**/v1/alternatives");
  await word(page, 3).click();
  const { source, prefix } = (await asked).postDataJSON();
  assert.deepEqual({ source, prefix }, { source: "Trois quatre.", prefix: "Three" });
});

pageTest("two models side by side: differences marked, both scored against a reference", async (page) => {
  const first = await translate(page, other);
  await page.click("#compare");
  const second = await translated(page, 1);
  assert.notEqual(await page.locator(".model").nth(0).inputValue(), await page.locator(".model").nth(1).inputValue());
  const marked = await page.locator(".word.differs").allTextContents();
  assert.equal(marked.length > 0, first !== second);
  assert.ok((await page.textContent("#differences")).length > 0);
  if (marked.length) {
    assert.match(await page.locator(".word.differs").first().evaluate((one) => getComputedStyle(one).textDecorationLine), /underline/);
    assert.match(await page.locator(".word.differs").first().getAttribute("aria-description"), /differs/);
  }
  await page.fill("#reference", first);
  await page.click("#evaluate");
  await page.locator(".scores tbody tr").nth(1).waitFor();
  assert.deepEqual(await page.locator(".scores thead th").allTextContents(), ["Model", "BLEU", "chrF", "TER"]);
  assert.equal(parseFloat(await page.locator(".scores tbody tr").first().locator("td").nth(1).textContent()), 100);
  await page.click("#compare");
  assert.equal(await page.locator(".target:visible").count(), 1);
});

pageTest("search settings are sent", async (page) => {
  await translate(page, sentence);
  const asked = page.waitForRequest((one) => one.url().endsWith("/v1/translate") && one.postDataJSON().beam === 2);
  await page.click("#settings-open");
  await page.selectOption("#beam", "2");
  const body = (await asked).postDataJSON();
  assert.equal(body.nbest, 2, "not more translations than the beam holds");
  assert.equal(body.stream, true);
  await page.selectOption("#length-penalty", "1");
  assert.deepEqual(await page.locator("#precision option").evaluateAll((all) => all.map((one) => one.value)), ["", "int8"]);
  await page.click("#settings-reset");
  assert.equal(await page.inputValue("#beam"), "4");
});

pageTest("the chosen precision is that of alternatives and attention", async (page) => {
  await translate(page, sentence);
  await page.click("#settings-open");
  await page.selectOption("#precision", "int8");
  await page.keyboard.press("Escape");
  await translated(page);
  const attention = page.waitForRequest("**/v1/attention");
  await page.selectOption("#layer", { value: "1" });
  await word(page, 0).hover();
  assert.equal((await attention).postDataJSON().precision, "int8");
  const alternatives = page.waitForRequest("**/v1/alternatives");
  await word(page, 0).click();
  assert.equal((await alternatives).postDataJSON().precision, "int8");
});

pageTest("a run: curves of loss and BLEU, samples, configuration, report", async (page) => {
  await page.click("#tab-runs");
  const { runs, comparisons } = await (await fetch(address + "/v1/runs")).json();
  const done = runs.find((run) => run.has_report) ?? runs[0];
  await page.click(`[data-run="${done.name}"]`);
  await page.locator("#loss-chart path.series-0").waitFor();
  assert.ok((await page.locator("#loss-chart path.series-0").getAttribute("d")).split("L").length > 2);
  await page.locator("#bleu-chart path.series-0").waitFor();
  await page.locator("#loss-chart summary").click();
  assert.ok(await page.locator("#loss-chart tbody tr").count() > 2);
  await page.locator("#loss-chart svg").hover();
  assert.equal(await page.locator("#loss-chart .rule").getAttribute("visibility"), "visible");
  assert.ok(await page.locator("#samples table").count() > 0);
  if (done.has_report) {
    await page.click("#report-open");
    await page.frameLocator("#report").locator("h1").waitFor();
    const styled = await page.frameLocator("#report").locator("body").evaluate((body) => getComputedStyle(body).fontFamily);
    assert.doesNotMatch(styled, /Times|^serif/i, "the report's own styles are not applied");
    await page.keyboard.press("Escape");
  }
  if (comparisons.length) {
    await page.locator(".comparison").first().click();
    await page.frameLocator("#report").locator("h1").waitFor();
  }
});

let liveSteps = 3;
const liveLines = () => Array.from({ length: liveSteps }, (_, i) => [
  { step: 50 * (i + 1), loss: 4 / (i + 1), learning_rate: 0.001, tokens_per_second: 1000, epoch: 0.1 },
  { step: 50 * (i + 1), valid_loss: 5 / (i + 1), valid_bleu: 10 * i, samples: [{ source: "a", reference: "b", hypothesis: `c${i}` }] },
]).flat();
pageTest("a run that is still training is drawn live", {
  hash: "#tab=runs",
  routes: {
    "/v1/runs": (route) => fulfil(route, { runs: [{ name: "live", state: "training", step: 150, bleu: null, bytes: 1, age_seconds: 1, has_report: false }], comparisons: [] }),
    "/v1/runs/live?*": (route) => {
      const from = Number(new URL(route.request().url()).searchParams.get("after"));
      return fulfil(route, { name: "live", state: liveSteps < 5 ? "training" : "done", config: "a: 1", metrics: liveLines().filter((line) => line.step > from) });
    },
  },
}, async (page) => {
  const points = async (chart) => (await page.locator(`#${chart}-chart path.series-0`).getAttribute("d")).split("L").length;
  await page.locator("#loss-chart path.series-0").waitFor();
  assert.deepEqual([await points("loss"), await points("bleu")], [3, 3]);
  assert.match(await page.textContent("#samples"), /c2/);
  liveSteps = 5;
  await page.locator(".detail [data-state=done]").waitFor();
  assert.deepEqual([await points("loss"), await points("bleu")], [5, 5]);
  assert.match(await page.textContent("#samples"), /c4/);
  await page.selectOption("#sample-step", "50");
  assert.match(await page.textContent("#samples"), /c0/);
});

pageTest("an experiment is computed by the server as its knobs move", async (page) => {
  await page.click("#tab-experiments");
  const { experiments } = await (await fetch(address + "/v1/experiments")).json();
  const chosen = experiments.find((one) => one.name === "copy") ?? experiments.find((one) => !one.needs_model && one.parameters.length);
  await page.click(`[data-experiment="${chosen.name}"]`);
  await page.locator(".claims tbody tr").first().waitFor();
  await page.locator(".server-figure :is(svg, table)").first().waitFor();
  const asked = page.waitForRequest((one) => one.url().endsWith("/v1/experiments/" + chosen.name));
  const knob = chosen.parameters[0];
  await page.focus(`#knob-${knob.name}`);
  await page.keyboard.press("ArrowRight");
  const { parameters } = (await asked).postDataJSON();
  assert.ok(parameters[knob.name] > knob.value, JSON.stringify(parameters));
  await page.waitForFunction(() => document.querySelector(".experiment-result").getAttribute("aria-busy") === "false");
  assert.equal(await page.locator(".experiment-result .fault").count(), 0);
  await page.click("#experiment-reset");
  // Style attributes of the server's heat maps survive the content security policy.
  if (experiments.some((one) => one.name === "worked-example")) {
    await page.click("[data-experiment=worked-example]");
    await page.locator(".heat td").first().waitFor();
    const shares = await page.locator(".server-figure .heat td").evaluateAll((all) => all.map((one) => one.style.getPropertyValue("--share")));
    assert.ok(shares.some((share) => share.endsWith("%")));
  }
});

pageTest("an experiment goes on when the language changes", {
  routes: { "/v1/experiments/*": async (route) => {
    await pause(1000);
    await route.continue().catch(() => {});
  } },
}, async (page) => {
  const sent = [];
  page.on("request", (one) => one.url().includes("/v1/experiments/") && sent.push(one.url()));
  await page.click("#tab-experiments");
  await page.locator(".experiment-result[aria-busy=true]").waitFor();
  await page.click("#language-switch");
  await page.locator(".experiment-result[aria-busy=false] .claims").waitFor();
  assert.equal(sent.length, 1);
  assert.match(await page.textContent(".claims th"), /Affirmation/);
});

pageTest("the keyboard alone translates, moves between words, chooses an alternative, changes tabs", async (page) => {
  await page.locator(".model option").first().waitFor({ state: "attached" });
  await focusByTab(page, "#source");
  await page.keyboard.type(sentence);
  await translated(page);
  const words = (await textOf(page)).split(" ");
  await focusByTab(page, ".word");
  await page.locator("#mirror .lit").first().waitFor();
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), words[1]);
  assert.equal(await page.locator(".word[tabindex='0']").count(), 1);
  await page.keyboard.press("Enter");
  await page.locator(".alternative:focus").waitFor();
  await page.keyboard.press("Escape");
  assert.ok(await page.locator("#alternatives").isHidden());
  assert.equal(await page.evaluate(() => document.activeElement.textContent), words[1]);
  await page.keyboard.press("Enter");
  await page.locator(".alternative:focus").waitFor();
  await page.keyboard.press("ArrowDown");
  const chosen = await page.locator(".alternative:focus .alternative-word").textContent();
  await page.keyboard.press("Enter");
  assert.ok((await translated(page)).startsWith(`${words[0]} ${chosen}`));
  await page.keyboard.press("Tab");
  assert.ok(!(await page.evaluate(() => document.activeElement.matches(".word"))), "Tab leaves the words");
  await page.focus("#tab-translate");
  await page.keyboard.press("ArrowRight");
  assert.ok(await page.locator("#panel-runs").isVisible());
  // The caret's way to the same lights.
  await page.keyboard.press("ArrowLeft");
  await page.focus("#source");
  await page.keyboard.press("Home");
  await page.locator(".output .lit").first().waitFor();
});

pageTest("the interface speaks French and English, light and dark", { locale: "fr-FR" }, async (page) => {
  assert.equal(await page.getAttribute("html", "lang"), "fr");
  assert.equal(await page.textContent("#tab-translate"), "Traduire");
  await page.click("#language-switch");
  assert.equal(await page.getAttribute("html", "lang"), "en");
  assert.equal(await page.textContent("#tab-translate"), "Translate");
  const lightness = () => page.evaluate(() => Number(getComputedStyle(document.body).backgroundColor.match(/\d+/)[0]));
  await page.emulateMedia({ colorScheme: "dark" });
  assert.ok(await lightness() < 60);
  await page.click("#theme-switch");
  assert.ok(await lightness() > 200, "explicitly light in a dark system");
  await page.emulateMedia({ colorScheme: "light" });
  await page.click("#theme-switch");
  assert.ok(await lightness() < 60, "explicitly dark in a light system");
  await page.reload();
  assert.ok(await lightness() < 60, "the choice is kept");
  assert.equal(await page.getAttribute("html", "lang"), "en");
});

// Words that no French text has.
const englishWords = /\b(the|of|and|with|without|for|from|each|is|are|by|keys?|heads?|weights?|values?|query|queries|layer|mean|step|loss|training|translation|copy|close|clear|settings|history|share|found|expected|holds|sentences)\b/i;

// Texts, labels and tooltips of what is in a French interface: what is marked as English is left out, and what a run is made of.
function frenchTexts(page, selector = "body") {
  return page.locator(selector).evaluate((root) => {
    const texts = [];
    const collect = (one) => {
      if (one.matches("[lang=en], script, style, template, #run :is(pre, td)")) return;
      for (const name of ["aria-label", "aria-description", "aria-valuetext", "title", "placeholder"]) texts.push(one.getAttribute(name));
      for (const child of one.childNodes) {
        if (child.nodeType === Node.ELEMENT_NODE) collect(child);
        else if (child.nodeType === Node.TEXT_NODE) texts.push(child.data);
      }
    };
    collect(root);
    return [...new Set(texts.map((text) => text?.replace(/[ \n]+/g, " ").trim()).filter(Boolean))];
  });
}

async function assertFrench(page, selector) {
  const texts = await frenchTexts(page, selector);
  assert.ok(texts.length > 10);
  assert.deepEqual(texts.filter((text) => englishWords.test(text)), []);
  assert.deepEqual(texts.filter((text) => /\w [:;!?»]|« /.test(text)), [], "blanks at which a line can break");
  return texts;
}

pageTest("nothing stays English when the interface becomes French", async (page) => {
  await translate(page, sentence);
  await page.click("#compare");
  await translated(page, 1);
  await page.fill("#reference", "Pierre goes to the library every morning.");
  await page.click("#evaluate");
  await page.locator(".scores").waitFor();
  await page.setInputFiles("#file", { name: "image.png", mimeType: "image/png", buffer: Buffer.from("x") });
  await page.locator("#file-result .fault").waitFor();
  const text = await textOf(page);
  await page.click("#language-switch");
  assert.equal(await textOf(page), text);
  assert.match(await word(page, 0).getAttribute("aria-description"), /certitude/);
  assert.match(await page.textContent(".progress"), /\d\u00a0s$/);
  await page.click("#map-open");
  await page.locator("#map td").first().waitFor();
  assert.match((await page.locator("#map tbody td").evaluateAll((cells) => cells.map((one) => one.title))).join(), /^(\d,\d{3},?)+$/);
  await page.keyboard.press("Escape");
  await assertFrench(page);
  await page.click("#tab-runs");
  await page.locator("#loss-chart path").first().waitFor();
  await assertFrench(page);
});

// The server's texts with a word in them.
const wordsOnly = (texts) => texts.map((text) => text.replace(/\s+/g, " ").trim()).filter((text) => /[a-z]{3}/i.test(text));

pageTest("every experiment has French: title, knobs, claims, figures, explanation", {
  routes: { "/v1/experiments": async (route) => {
    const { experiments } = await (await route.fetch()).json();
    const fewer = { samples: 200, sentences: 3, bleu: 2 };
    for (const one of experiments.flatMap(({ parameters }) => parameters)) one.value = fewer[one.name] ?? one.value;
    await fulfil(route, { experiments });
  } },
}, async (page) => {
  const { experiments } = await (await fetch(address + "/v1/experiments")).json();
  const done = () => page.locator(".experiment-result[aria-busy=false] .claims").waitFor();
  const check = async (name, result) => {
    await done();
    assert.deepEqual(await page.locator("#panel-experiments [lang=en]").allTextContents(), [], `${name}: no French for`);
    const texts = await assertFrench(page, "#panel-experiments");
    const said = wordsOnly([...result.claims.map((one) => one.claim), ...result.figures.map((one) => one.title)]);
    assert.deepEqual(texts.filter((text) => said.includes(text)), [], name);
    assert.deepEqual(texts.filter((text) => /\d\.\d/.test(text)), [], `${name}: decimal points`);
  };
  const answered = (name, wanted = () => true) => page.waitForResponse((one) =>
    one.url().endsWith("/v1/experiments/" + name) && wanted(one.request().postDataJSON().parameters));
  await page.click("#tab-experiments");
  await done();
  assert.equal(await page.textContent("#experiment h2"), experiments[0].name);
  await page.click("#language-switch");
  assert.ok(await page.locator(".claims").isVisible(), "the result stays");
  for (const { name, summary, parameters, needs_model: needsModel } of experiments) {
    const first = answered(name);
    await page.click(`[data-experiment="${name}"]`);
    if (needsModel) await page.click("#experiment-run");
    await check(name, await (await first).json());
    // Other values bring other texts.
    if (parameters.length) {
      const lowest = answered(name, (sent) => parameters.every((one) => sent[one.name] <= one.low));
      for (const one of parameters) await page.locator("#knob-" + one.name).press("Home");
      if (needsModel) await page.click("#experiment-run");
      await check(name, await (await lowest).json());
    }
    const texts = await frenchTexts(page, "#panel-experiments");
    const said = wordsOnly([name, summary, ...parameters.flatMap((one) => [one.name, one.meaning])]);
    assert.deepEqual(texts.filter((text) => said.includes(text)), [], name);
  }
});

pageTest("a phone of 360 pixels: nothing is cut off, targets are large enough", {
  viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true,
}, async (page) => {
  await translate(page, paragraphs);
  await page.tap("#compare");
  await translated(page, 1);
  for (const tab of ["translate", "runs", "experiments"]) {
    await page.tap("#tab-" + tab);
    await pause(300);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 360, tab);
    const small = await page.locator("button:visible, select:visible, summary:visible").evaluateAll((all) => all.filter((one) => {
      const { width, height } = one.getBoundingClientRect();
      return height > 0 && (width < 40 || height < 40);
    }).map((one) => one.outerHTML.slice(0, 80)));
    assert.deepEqual(small, [], tab);
  }
  await page.tap("#tab-translate");
  await word(page, 0).tap();
  await page.locator(".alternative").first().waitFor();
  const sheet = await page.locator("#alternatives").boundingBox();
  assert.ok(sheet.x >= 0 && sheet.width <= 360 && sheet.y + sheet.height <= 741);
});

pageTest("a server with a token: it is asked for, refused when wrong, kept when right", {
  routes: { "/v1/**": (route) => route.request().headers().authorization === "Bearer right"
    ? route.fallback() : fulfil(route, { error: { message: "token" } }, 401) },
}, async (page) => {
  await page.fill("#token", "wrong");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("#token-fault").textContent !== "" && document.querySelector("#token-dialog").open);
  await page.fill("#token", "right");
  await page.keyboard.press("Enter");
  await page.locator(".model option").first().waitFor({ state: "attached" });
  await page.reload();
  await page.locator(".model option").first().waitFor({ state: "attached" });
  assert.ok(!(await page.locator("#token-dialog").isVisible()));
});

function failingFirst(answer) {
  let times = 0;
  return (route) => (times++ === 0 ? answer(route) : route.fallback());
}
for (const [name, answer, said] of [
  ["busy (429)", (route) => fulfil(route, { error: { message: "busy" } }, 429, { "Retry-After": "1" }), /busy.* 1 s/],
  ["loading (503)", (route) => fulfil(route, { error: { message: "loading" } }, 503, { "Retry-After": "1" }), /loading.* 1 s/],
  ["away", (route) => route.abort("connectionrefused"), /does not answer/],
]) {
  pageTest(`a server that is ${name} is asked again, and the page says so`, { routes: { "/v1/translate": failingFirst(answer) } }, async (page) => {
    await page.locator(".model option").first().waitFor({ state: "attached" });
    await page.fill("#source", sentence);
    await page.locator("#message.shown").waitFor();
    assert.match(await page.textContent("#message"), said);
    await translated(page);
  });
}

const answeredWith = (message, status, headers) => ({
  routes: { "/v1/translate": (route) => fulfil(route, { error: { message } }, status, headers) },
});

pageTest("a model that failed is not asked again", answeredWith("model first: it is damaged", 503), async (page) => {
  await page.locator(".model option").first().waitFor({ state: "attached" });
  await page.fill("#source", sentence);
  await page.locator(".progress.fault").waitFor();
  assert.match(await page.textContent(".progress"), /it is damaged/);
});

pageTest("a model that can answer is chosen before one that failed", {
  routes: { "/v1/models": async (route) => {
    const answer = await (await route.fetch()).json();
    Object.assign(answer.models.find((one) => one.name === answer.default), { state: "failed", error: "it is damaged" });
    await fulfil(route, answer);
  } },
}, async (page) => {
  await translate(page, sentence);
  assert.notEqual(await page.inputValue(".target .model"), models.default);
});

pageTest("an error without French is shown in English, and says so", {
  locale: "fr-FR", ...answeredWith("something\u2028odd\rhappened", 500),
}, async (page) => {
  await page.locator(".model option").first().waitFor({ state: "attached" });
  await page.fill("#source", sentence);
  await page.locator(".progress.fault").waitFor();
  assert.match(await page.textContent(".progress"), /^Failed: something/);
  assert.equal(await page.getAttribute(".progress", "lang"), "en");
});

pageTest("a text that is too long says so", {
  routes: { "/v1/translate": (route) => fulfil(route, { error: { message: "at most 10 characters", field: "text" } }, 413) },
}, async (page) => {
  await page.locator(".model option").first().waitFor({ state: "attached" });
  await page.fill("#source", sentence);
  await page.locator(".progress.fault").waitFor();
  assert.match(await page.textContent(".progress"), /too long/);
});

const phone = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true };

// Each part of the page in a state of its own: [name, what leads there].
const states = [
  ["translate", async (page) => {
    await page.click("#compare");
    await translated(page, 1);
    await page.fill("#reference", "Pierre goes to the library every morning.");
    await page.click("#evaluate");
    await page.locator(".scores").waitFor();
  }],
  ["alternatives", async (page) => {
    await word(page, 0).click();
    await page.locator(".alternative").first().waitFor();
  }],
  ...[["#map-open", "#map td"], ["#settings-open", "#beam"], ["#history-open", "#history-title"]].map(([button, ready]) => [button, async (page) => {
    await page.click(button);
    await page.locator(ready).first().waitFor();
  }]),
  ["a file's error", async (page) => {
    await page.setInputFiles("#file", { name: "image.png", mimeType: "image/png", buffer: Buffer.from("x") });
    await page.locator("#file-result .fault").waitFor();
  }],
  ["a translation's error", async (page) => {
    await page.route(address + "/v1/translate", (route) => fulfil(route, { error: { message: "odd" } }, 500));
    await page.fill("#source", other);
    await page.locator(".progress.fault").first().waitFor();
  }],
  ["runs", async (page) => {
    await page.click("#tab-runs");
    await page.click("[data-run=first]");
    await page.locator("#loss-chart path").first().waitFor();
  }],
  ["a report", async (page) => {
    await page.click("#report-open");
    await page.locator("#report-dialog[open]").waitFor();
  }],
  ["experiments", async (page) => {
    await page.click("#tab-experiments");
    await page.locator(".claims").waitFor();
  }],
];

for (const [name, options] of [
  ["light, English", {}],
  ["dark, French", { colorScheme: "dark", locale: "fr-FR" }],
  ["light, French, on a phone", { locale: "fr-FR", ...phone }],
  ["dark, English, on a phone", { colorScheme: "dark", ...phone }],
]) {
  test(`axe finds no serious fault: ${name}`, async () => {
    const axe = await readFile(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
    const check = async (page, where) => {
      await page.mouse.move(2, 2);
      const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
      const serious = violations.filter((one) => ["serious", "critical"].includes(one.impact))
        .map((one) => `${where}: ${one.id}: ${one.nodes.map((node) => node.target).join(", ")}`);
      assert.deepEqual(serious, []);
    };
    const refusing = (route) => fulfil(route, { error: { message: "token" } }, 401);
    const asking = await openPage(browser, { ...options, routes: { "/v1/**": refusing } });
    await asking.evaluate(axe);
    await asking.locator("#token-dialog[open]").waitFor();
    await check(asking, "token");
    await asking.context().close();
    const page = await openPage(browser, options);
    await page.evaluate(axe);
    await translate(page, paragraphs);
    for (const [where, lead] of states) {
      await lead(page);
      await check(page, where);
      await page.keyboard.press("Escape");
    }
    await page.context().close();
  });
}
