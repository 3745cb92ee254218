// What the page says while the server asks for a token, is busy, loads or is away.
import { t } from "./strings.js";
import { byId, openDialog, showMessage } from "./dom.js";
import { apiHooks } from "./api.js";

// Resolves with the token, or with "" where the question was dismissed.
function askToken(refused) {
  const dialog = byId("token-dialog");
  const input = byId("token");
  byId("token-fault").textContent = refused ? t("tokenWrong") : "";
  input.value = "";
  dialog.returnValue = "";
  return new Promise((resolve) => {
    let given = "";
    byId("token-form").onsubmit = () => (given = input.value.trim());
    dialog.addEventListener("close", () => resolve(given), { once: true });
    openDialog(dialog);
    input.focus();
  });
}

export function setUpServerStates() {
  let waited = "";
  apiHooks.askToken = askToken;
  apiHooks.waiting = (reason, seconds) => {
    waited = reason;
    showMessage(t(reason, { n: Math.ceil(seconds) }), { kind: "warning", seconds: 0 });
  };
  apiHooks.answered = () => {
    if (!waited) return;
    showMessage(waited === "offline" ? t("online") : "", { seconds: 2 });
    waited = "";
  };
}
