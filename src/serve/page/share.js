// Links that carry a text: the fragment never leaves the browser, so the text is not in the server's log.
import { t } from "./strings.js";
import { byId, copyText, showMessage } from "./dom.js";
import { decodeFragment, encodeFragment } from "./text.js";

// state(): { fr, model, with }; open(values): a link was opened.
export function setUpShare(state, open) {
  byId("share").addEventListener("click", async () => {
    const fragment = encodeFragment(state());
    history.replaceState(null, "", fragment);
    const done = await copyText(location.href);
    showMessage(t(done ? "linkCopied" : "copyFailed"));
  });
  const follow = () => {
    const values = decodeFragment(location.hash);
    if (values.fr) open(values);
  };
  addEventListener("hashchange", follow);
  return { follow };
}
