// Shows a report of the server, a whole HTML page, in a frame without rights. The frame inherits the page's
// content security policy, so the report's styles get the page's nonce.
import { byId, element, openDialog, say } from "./dom.js";
import { request } from "./api.js";
import { storedToken } from "./store.js";
import { errorText } from "./server_texts.js";

// On the text: a parser under the policy would report every style that has no nonce yet.
function withNonce(html) {
  // The property: a page does not see its nonce as an attribute.
  const nonce = document.querySelector("style")?.nonce ?? "";
  const rules = [];
  // The policy forbids style attributes; each becomes a rule of its own.
  const marked = html.replace(/<[a-z][^<>]*>/gi, (tag) => tag.replace(/\sstyle="([^"]*)"/i, (_, style) => {
    rules.push(`[data-rule="${rules.length}"] { ${style} }`);
    return ` data-rule="${rules.length - 1}"`;
  }));
  return marked.replace(/<style\b/gi, () => `<style nonce="${nonce}"`)
    .replace(/<\/head>/i, () => `<style nonce="${nonce}">${rules.join("\n")}</style></head>`);
}

export async function openReport(title, path) {
  // A new frame each time: one that was hidden keeps the layout of its old content for a while.
  const frame = element("iframe", { id: "report", sandbox: "", title });
  byId("report").replaceWith(frame);
  say(byId("report-title"), title);
  const link = byId("report-link");
  link.href = path;
  link.hidden = storedToken() !== "";  // a link cannot carry the token
  openDialog(byId("report-dialog"));
  try {
    frame.srcdoc = withNonce(await (await request(path)).text());
  } catch (error) {
    say(byId("report-title"), errorText(error));
  }
}
