// Puts the page together.
import { setUpAppearance } from "./appearance.js";
import { showMessage } from "./dom.js";
import { loadModels, setUpSpeeds } from "./models.js";
import { setUpTranslate } from "./translate.js";
import { setUpSettings } from "./settings_dialog.js";
import { setUpServerStates } from "./token_dialog.js";
import { closeRuns, openRuns, setUpRuns } from "./runs.js";
import { openExperiments, setUpExperiments } from "./experiments.js";
import { setUpTabs } from "./tabs.js";
import { errorText } from "./server_texts.js";

setUpAppearance();
setUpServerStates();
setUpTranslate();
setUpSpeeds();
setUpSettings();
setUpRuns();
setUpExperiments();
setUpTabs({ runs: { open: openRuns, close: closeRuns }, experiments: { open: openExperiments } });
loadModels().catch((error) => showMessage(errorText(error), { kind: "warning", seconds: 0 }));
