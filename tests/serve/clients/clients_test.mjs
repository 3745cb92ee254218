// npm's clients, unmodified, against `calque serve`: translate (with its engine for LibreTranslate), deepl-node, openai.
// tests/tools/clients_test.py starts the servers: one at CALQUE_URL, one at CALQUE_GUARDED_URL that asks for CALQUE_TOKEN.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import * as deepl from "deepl-node";
import OpenAI from "openai";
import { Translate } from "translate";

const address = process.env.CALQUE_URL;
const guarded = process.env.CALQUE_GUARDED_URL;
const token = process.env.CALQUE_TOKEN;
const sentence = "Le chat dort sur la chaise.";
const other = "La femme regarde la gare.";

// What calque's own API says, without the clients.
async function ownTranslation(text, options = {}) {
  const answer = await fetch(address + "/v1/translate", { method: "POST", body: JSON.stringify({ text, ...options }) });
  return (await answer.json()).translations[0].text;
}

let expected;
let expectedOther;
before(async () => {
  expected = await ownTranslation(sentence);
  expectedOther = await ownTranslation(other);
});

const libreTranslate = (site, key) => new Translate({ engine: "libre", url: site + "/translate", from: "fr", to: "en", key });

test("translate", async () => {
  const client = libreTranslate(address);
  assert.equal(await client(sentence), expected);
  await assert.rejects(client(sentence, { to: "de" }), /de: only English/);
});

test("translate with a token", async () => {
  assert.equal(await libreTranslate(guarded, token)(sentence), expected);
  await assert.rejects(libreTranslate(guarded, "wrong")(other), /token/);
});

const deeplClient = (site = address, key = "any-key") => new deepl.DeepLClient(key, { serverUrl: site, maxRetries: 0 });

test("deepl-node: one text and several", async () => {
  const client = deeplClient();
  const one = await client.translateText(sentence, null, "en-GB");
  assert.equal(one.text, expected);
  assert.equal(one.detectedSourceLang, "fr");
  assert.equal(one.billedCharacters, 0);
  const several = await client.translateText([sentence, other, sentence], "fr", "en-US");
  assert.deepEqual(several.map((result) => result.text), [expected, expectedOther, expected]);
});

test("deepl-node: options", async () => {
  const client = deeplClient();
  const text = async (french, options) => (await client.translateText(french, "fr", "en-US", options)).text;
  assert.equal(await text(`<p>${sentence}</p>`, { tagHandling: "html" }), `<p>${expected}</p>`);
  assert.equal(await text(`<p>${sentence}</p><x>${other}</x>`, { tagHandling: "xml", ignoreTags: ["x"] }),
    `<p>${expected}</p><x>${other}</x>`);
  const both = `${sentence} ${other}`;
  assert.equal(await text(both, { splitSentences: "on" }), `${expected} ${expectedOther}`);
  assert.equal(await text(both, { splitSentences: "off" }), await ownTranslation(both, { split_sentences: false }));
  assert.equal(await text("Le chat dort\nsur la chaise.", { splitSentences: "nonewlines" }), expected);
  assert.equal(await text(sentence, { context: "Un salon.", formality: "more", preserveFormatting: true }), expected);
});

test("deepl-node: usage and languages", async () => {
  const client = deeplClient();
  const usage = await client.getUsage();
  assert.equal(usage.character.count, 0);
  assert.equal(usage.anyLimitReached(), false);
  assert.deepEqual((await client.getSourceLanguages()).map((language) => language.code), ["fr"]);
  const targets = await client.getTargetLanguages();
  assert.deepEqual(targets.map((language) => [language.code, language.supportsFormality]), [["en-GB", false], ["en-US", false]]);
});

const inLowerCase = (results) => results.map((result) => result.text.toLowerCase());

test("deepl-node: glossaries", async () => {
  const client = deeplClient();
  const animals = await client.createGlossary("animals", "fr", "en", new deepl.GlossaryEntries({ entries: { chat: "feline" } }));
  assert.equal(animals.entryCount, 1);
  assert.ok(Math.abs(Date.now() - animals.creationTime) < 60_000);
  assert.deepEqual(await client.getGlossary(animals.glossaryId), animals);
  assert.deepEqual((await client.getGlossaryEntries(animals)).entries(), { chat: "feline" });
  assert.deepEqual((await client.listGlossaries()).map((glossary) => glossary.name), ["animals"]);
  const [first, second] = inLowerCase(await client.translateText([sentence, other], "fr", "en-US", { glossary: animals }));
  assert.match(first, /\bfeline\b/);
  assert.equal(second, expectedOther.toLowerCase());
  await client.deleteGlossary(animals);
  assert.deepEqual(await client.listGlossaries(), []);
  await assert.rejects(client.getGlossary(animals.glossaryId), deepl.GlossaryNotFoundError);
  await assert.rejects(client.translateText(sentence, "fr", "en-US", { glossary: animals }), /no such glossary/);
});

test("deepl-node: several glossaries, of which the first with a term decides", async () => {
  const client = deeplClient();
  const animals = await client.createGlossary("animals", "fr", "en", new deepl.GlossaryEntries({ entries: { chat: "feline" } }));
  const places = await client.createGlossaryWithCsv("places", "fr", "en", Buffer.from('gare,"railway station"\nchat,tomcat\n'));
  try {
    for (const [glossaryIds, cat] of [[[animals, places], /\bfeline\b/], [[places, animals], /\btomcat\b/]]) {
      const [first, second] = inLowerCase(await client.translateText([sentence, other], "fr", "en-US", { glossaryIds }));
      assert.match(first, cat);
      assert.match(second, /\brailway station\b/);
    }
  } finally {
    await client.deleteGlossary(animals);
    await client.deleteGlossary(places);
  }
  await assert.rejects(client.translateText(sentence, "fr", "en-US", { glossaryIds: [places] }), /no such glossary/);
});

test("deepl-node: what cannot be done is an error that says so", async () => {
  const client = deeplClient();
  await assert.rejects(client.translateText(sentence, null, "de"), /Bad request, message: de: only English/);
  await assert.rejects(client.translateText(sentence, "es", "en-GB"), /Bad request, message: es: only French/);
  await assert.rejects(client.rephraseText("The cat sleeps."), /Not found/);
});

test("deepl-node with a token", async () => {
  assert.equal((await deeplClient(guarded, token).translateText(sentence, null, "en-GB")).text, expected);
  await assert.rejects(deeplClient(guarded, "wrong").translateText(sentence, null, "en-GB"), /the token is missing or wrong/);
});

test("deepl-node with a wrong token: the error for it", async () => {
  for (const call of [(client) => client.translateText(sentence, null, "en-GB"), (client) => client.getUsage()])
    await assert.rejects(call(deeplClient(guarded, "wrong")), deepl.AuthorizationError);
});

const openaiClient = (site = address, apiKey = "any-key") => new OpenAI({ baseURL: site + "/v1", apiKey, maxRetries: 0 });
const chat = (content, more = {}) => ({ model: "base", ...more,
  messages: [{ role: "system", content: "Translate into English." }, { role: "user", content }] });

test("openai: a completion", async () => {
  const client = openaiClient();
  const answer = await client.chat.completions.create(chat(sentence));
  assert.equal(answer.object, "chat.completion");
  assert.equal(answer.model, "base");
  assert.deepEqual(answer.choices.map((choice) => [choice.message.role, choice.message.content, choice.finish_reason]),
    [["assistant", expected, "stop"]]);
  assert.ok(answer.usage.prompt_tokens > 3);
  assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens);
  const parts = await client.chat.completions.create(chat([{ type: "text", text: `Translate into English: ${sentence}` }]));
  assert.equal(parts.choices[0].message.content, expected);
});

test("openai: a stream", async () => {
  const client = openaiClient();
  const pieces = [];
  let reason;
  for await (const chunk of await client.chat.completions.create(chat(`${sentence}\n${other}`, { stream: true }))) {
    assert.equal(chunk.object, "chat.completion.chunk");
    if (chunk.choices[0].delta.content) pieces.push(chunk.choices[0].delta.content);
    reason = chunk.choices[0].finish_reason;
  }
  assert.deepEqual(pieces, [expected, "\n" + expectedOther]);
  assert.equal(reason, "stop");
  // The client's own helper checks more of each chunk.
  const whole = await client.chat.completions.stream(chat(`${sentence}\n${other}`)).finalChatCompletion();
  assert.equal(whole.choices[0].message.content, `${expected}\n${expectedOther}`);
});

test("openai: models", async () => {
  const names = [];
  for await (const model of openaiClient().models.list()) names.push(model.id);
  assert.deepEqual(names, ["base"]);
});

test("openai: errors", async () => {
  await assert.rejects(openaiClient().chat.completions.create({ model: "base", messages: [] }), (error) =>
    error instanceof OpenAI.BadRequestError && /messages is missing/.test(error.message));
  await assert.rejects(openaiClient().chat.completions.create({ model: "base", messages: [], stream: true }), OpenAI.BadRequestError);
});

test("openai with a token", async () => {
  const answer = await openaiClient(guarded, token).chat.completions.create(chat(sentence));
  assert.equal(answer.choices[0].message.content, expected);
  await assert.rejects(openaiClient(guarded, "wrong").chat.completions.create(chat(sentence)), OpenAI.AuthenticationError);
});
