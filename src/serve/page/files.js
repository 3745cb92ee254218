// Whole files: chosen or dropped, translated by the server, offered for download.
import { t } from "./strings.js";
import { announce, byId, element, icon, listen } from "./dom.js";
import { request } from "./api.js";
import { errorText } from "./server_texts.js";

const translatable = /\.(txt|html?)$/i;

let fileResult = null;

// content(): what is shown, in the language of the interface.
function showResult(content) {
  fileResult = content;
  const place = byId("file-result");
  place.hidden = false;
  place.replaceChildren(content());
}

async function translateFile(file, model) {
  if (!translatable.test(file.name)) return showResult(() => element("span", { class: "fault", text: t("uploadWrong") }));
  showResult(() => t("uploading", { name: file.name }));
  try {
    const form = new FormData();
    form.set("file", file);
    form.set("source", "fr");
    form.set("target", "en");
    if (model) form.set("model", model);
    const { translatedFileUrl } = await (await request("/translate_file", { body: form })).json();
    // The server names itself in the address as it sees itself; behind a proxy only the path is sure to be right.
    const path = new URL(translatedFileUrl, location.href).pathname;
    const name = decodeURIComponent(path.split("/").at(-1));
    showResult(() => element("a", { href: path, download: name, class: "text-button with-icon" }, icon("download"),
      t("uploadReady", { name })));
    announce(t("uploadReady", { name }));
  } catch (error) {
    showResult(() => element("span", { class: "fault", ...errorText(error) }));
  }
}

export function setUpFiles(pane) {
  const input = byId("file");
  byId("upload").addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    if (input.files[0]) translateFile(input.files[0], pane.model);
    input.value = "";  // the same file can be chosen again
  });
  listen("language", () => fileResult && showResult(fileResult));
  const zone = byId("source-pane");
  const carriesFile = (event) => event.dataTransfer?.types.includes("Files");
  for (const name of ["dragenter", "dragover"]) {
    zone.addEventListener(name, (event) => {
      if (!carriesFile(event)) return;
      event.preventDefault();
      zone.dataset.drop = t("dropHere");
    });
  }
  zone.addEventListener("dragleave", (event) => {
    if (!zone.contains(event.relatedTarget)) delete zone.dataset.drop;
  });
  zone.addEventListener("drop", (event) => {
    delete zone.dataset.drop;
    if (!carriesFile(event)) return;
    event.preventDefault();
    translateFile(event.dataTransfer.files[0], pane.model);
  });
}
