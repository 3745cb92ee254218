// What the tests of the page share: the browser, a fresh page, waiting for a translation.
import { chromium } from "playwright-core";

export const address = process.env.CALQUE_URL ?? "http://127.0.0.1:8080";

const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: flags });
}

// A page of its own, with everything that the browser complained about in page.complaints.
export async function openPage(browser, { hash = "", routes = {}, ...options } = {}) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 }, locale: "en-GB", acceptDownloads: true,
    permissions: ["clipboard-read", "clipboard-write"], ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(15000);
  page.complaints = [];
  page.on("pageerror", (error) => page.complaints.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !message.text().includes("Failed to load resource")) page.complaints.push(message.text());
  });
  page.on("request", (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol.startsWith("http") && origin !== new URL(address).origin) page.complaints.push("outside: " + request.url());
  });
  for (const [pattern, handler] of Object.entries(routes)) await page.route(address + pattern, handler);
  await page.goto(address + "/" + hash);
  return page;
}

// Answers with JSON, in the place of the server.
export function fulfil(route, body, status = 200, headers = {}) {
  return route.fulfill({ status, headers, contentType: "application/json", body: JSON.stringify(body) });
}

// Answers as /v1/translate does with `stream`.
export function fulfilStream(route, translation) {
  const events = { translation: { index: 0, ...translation }, done: { model: "m", precision: "int8", seconds: 0.1 } };
  const body = Object.entries(events).map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join("");
  return route.fulfill({ contentType: "text/event-stream", body });
}

export async function translated(page, pane = 0) {
  const output = page.locator(".target").nth(pane).locator(".output");
  await output.locator(".word").first().waitFor();
  await page.waitForFunction((at) => {
    const one = document.querySelectorAll(".target .output")[at];
    return one.getAttribute("aria-busy") === "false" && one.querySelector(".word");
  }, pane);
  return textOf(page, pane);
}

export function textOf(page, pane = 0) {
  return page.locator(".target").nth(pane).locator(".output").evaluate(
    (output) => [...output.querySelectorAll(".line")].map((line) => line.textContent).join("\n"));
}

// Types a text into the French side and waits for the English one of exactly this text.
export async function translate(page, text) {
  await page.locator(".target").first().locator(".model option").first().waitFor({ state: "attached" });
  const answered = page.waitForResponse((response) =>
    response.url().endsWith("/v1/translate") && response.request().postDataJSON().text === text);
  await page.fill("#source", text);
  await answered;  // not finished(): it never returns where the page cancels the request for a newer one
  return translated(page);
}
