// Every text of the interface, as [French, English]. A key with "One" appended is its singular. French punctuation has
// plain spaces here; typeset() makes them non-breaking.
const phrases = {
  tagline: ["Traduction du français vers l’anglais", "French to English translation"],
  skip: ["Aller au contenu", "Skip to content"],
  sections: ["Rubriques", "Sections"],
  tabTranslate: ["Traduire", "Translate"],
  tabRuns: ["Entraînements", "Runs"],
  tabExperiments: ["Expériences", "Experiments"],
  switchLanguage: ["EN: switch to English", "FR\u00a0: passer en français"],
  themeAuto: ["Thème : comme le système", "Theme: as the system"],
  themeLight: ["Thème : clair", "Theme: light"],
  themeDark: ["Thème : sombre", "Theme: dark"],
  settings: ["Réglages", "Settings"],
  close: ["Fermer", "Close"],
  cancel: ["Annuler", "Cancel"],

  french: ["Français", "French"],
  english: ["Anglais", "English"],
  sourceLabel: ["Texte français à traduire", "French text to translate"],
  sourcePlaceholder: ["Écrivez ou collez un texte français.", "Type or paste French text."],
  hint: ["Survolez un mot pour voir ce que le modèle regardait.", "Hover a word to see what the model looked at."],
  targetPlaceholder: ["La traduction apparaît ici.", "The translation appears here."],
  targetWords: [
    "Traduction anglaise : flèches pour changer de mot, Entrée pour d’autres possibilités",
    "English translation: arrow keys move between words, Enter shows alternatives",
  ],
  characters: ["{n} caractères", "{n} characters"],
  charactersOne: ["{n} caractère", "{n} character"],
  clear: ["Effacer", "Clear"],
  copy: ["Copier", "Copy"],
  copied: ["Copié", "Copied"],
  copyFailed: ["La copie a été refusée par le navigateur", "The browser refused to copy"],
  share: ["Partager un lien", "Share a link"],
  linkCopied: ["Lien copié", "Link copied"],
  download: ["Télécharger la traduction", "Download the translation"],
  downloadName: ["traduction.en.txt", "translation.en.txt"],
  upload: ["Traduire un fichier (.txt, .html)", "Translate a file (.txt, .html)"],
  uploading: ["Traduction de {name}…", "Translating {name}…"],
  uploadReady: ["Télécharger {name}", "Download {name}"],
  uploadWrong: ["Seuls les fichiers .txt et .html sont acceptés.", "Only .txt and .html files can be translated."],
  dropHere: ["Déposez le fichier ici", "Drop the file here"],
  history: ["Historique", "History"],
  historyNote: ["Reste dans ce navigateur.", "Kept in this browser only."],
  historyEmpty: ["Rien pour l’instant.", "Nothing yet."],
  historyOff: ["Ce navigateur ne permet pas de conserver un historique.", "This browser does not allow keeping a history."],
  historyClear: ["Tout effacer", "Clear all"],
  historyRemove: ["Retirer de l’historique", "Remove from history"],
  undo: ["Revenir au choix du modèle", "Back to the model’s choice"],
  translating: ["Traduction…", "Translating…"],
  translated: ["Traduction : {text}", "Translation: {text}"],
  seconds: ["{n} s", "{n} s"],
  looped: ["le modèle s’est répété", "the model repeated itself"],
  copiedSource: ["copié de la source", "copied from the source"],
  incomplete: ["traduction inachevée", "translation unfinished"],
  tryExample: ["Essayer un exemple", "Try an example"],

  model: ["Modèle", "Model"],
  secondModel: ["Second modèle", "Second model"],
  modelLoading: ["en chargement", "loading"],
  modelFailed: ["en échec", "failed"],
  modelsNone: ["aucun modèle", "no model"],
  parameters: ["{n} paramètres", "{n} parameters"],
  bleuOn: ["BLEU {n}, mesuré sur {on}", "BLEU {n}, measured on {on}"],
  speed: ["{n} phrases/s", "{n} sentences/s"],
  compare: ["Comparer deux modèles", "Compare two models"],
  compareStop: ["Ne plus comparer", "Stop comparing"],
  compareNeedsTwo: ["Un seul modèle est servi.", "Only one model is served."],
  differs: ["diffère de l’autre modèle", "differs from the other model"],
  differences: ["{n} mots différents, soulignés", "{n} words differ, underlined"],
  differencesOne: ["{n} mot différent, souligné", "{n} word differs, underlined"],
  same: ["Traductions identiques", "Same translation"],

  certainty: ["Certitude", "Certainty"],
  certaintyNote: ["teinte les mots dont le modèle doute", "tints the words the model doubts"],
  certaintyOf: ["certitude {n}", "certainty {n}"],
  attention: ["Attention", "Attention"],
  layer: ["Couche", "Layer"],
  head: ["Tête", "Head"],
  mean: ["moyenne", "mean"],
  map: ["Carte d’attention", "Attention map"],
  mapNote: [
    "Chaque ligne est un mot anglais ; ses cases disent la part de son attention sur chaque mot français.",
    "Each row is an English word; its cells tell the share of its attention on each French word.",
  ],
  sentence: ["Phrase", "Sentence"],
  targetWord: ["Mot anglais", "English word"],
  end: ["(fin)", "(end)"],
  alternatives: ["Autres possibilités pour « {word} »", "Alternatives for “{word}”"],
  alternativesNone: ["Aucune autre possibilité.", "No alternatives."],
  chosen: ["actuel", "current"],
  loading: ["Chargement…", "Loading…"],
  nbest: ["Autres traductions", "Other translations"],
  nbestOf: ["Autres traductions de {model}", "Other translations by {model}"],
  nbestNote: ["score du modèle ; plus haut, meilleur", "the model’s score; higher is better"],
  score: ["score {n}", "score {n}"],

  reference: ["Comparer à une référence", "Score against a reference"],
  referenceLabel: ["Traduction anglaise de référence", "English reference translation"],
  referencePlaceholder: ["Une bonne traduction, écrite par un humain.", "A good translation, written by a person."],
  evaluate: ["Évaluer", "Score"],
  scores: ["Scores par rapport à la référence", "Scores against the reference"],
  best: ["meilleur", "best"],
  terNote: ["TER : plus bas, meilleur", "TER: lower is better"],

  runsLabel: ["Liste des entraînements", "List of runs"],
  runsNone: ["Aucun entraînement dans ce dossier.", "No runs in this folder."],
  runChoose: ["Choisissez un entraînement.", "Choose a run."],
  comparisons: ["Rapports de comparaison", "Comparison reports"],
  stateDone: ["terminé", "done"],
  stateTraining: ["en cours", "training"],
  stateInterrupted: ["interrompu", "interrupted"],
  stateStopped: ["arrêté", "stopped"],
  statePaused: ["en pause", "paused"],
  stateSearch: ["recherche d’hyperparamètres", "search"],
  stateEmpty: ["vide", "empty"],
  step: ["pas", "step"],
  stepN: ["pas {n}", "step {n}"],
  loss: ["Perte", "Loss"],
  trainLoss: ["entraînement", "training"],
  validLoss: ["validation", "validation"],
  bleuChart: ["BLEU de validation", "Validation BLEU"],
  bleu: ["BLEU", "BLEU"],
  learningRate: ["taux d’apprentissage", "learning rate"],
  tokensPerSecond: ["tokens/s", "tokens/s"],
  epoch: ["époque", "epoch"],
  noData: ["Pas encore de valeurs.", "No values yet."],
  labelled: ["{label} : {text}", "{label}: {text}"],
  asTable: ["Valeurs en tableau", "Values as a table"],
  samples: ["Exemples", "Samples"],
  samplesAt: ["Validation au pas", "Validation at step"],
  sampleSource: ["source", "source"],
  sampleReference: ["référence", "reference"],
  sampleHypothesis: ["modèle", "model"],
  configuration: ["Configuration", "Configuration"],
  report: ["Rapport", "Report"],
  reportOpen: ["Ouvrir dans un onglet", "Open in a new tab"],
  live: ["en direct", "live"],
  ago: ["il y a {age}", "{age} ago"],

  experimentsLabel: ["Liste des expériences", "List of experiments"],
  experimentsIntro: [
    "Ce que l’attention sait calculer, vérifié par le code d’attention du serveur.",
    "What attention can compute, checked by the server’s own attention code.",
  ],
  experimentRun: ["Lancer", "Run"],
  experimentReset: ["Valeurs d’origine", "Reset"],
  experimentFixed: ["Cette expérience n’a pas de réglage.", "This experiment has nothing to adjust."],
  claim: ["Affirmation", "Claim"],
  expected: ["Attendu", "Expected"],
  found: ["Mesuré", "Measured"],
  holds: ["vérifié", "holds"],
  holdsNot: ["non vérifié", "does not hold"],
  allHold: ["Toutes les affirmations sont vérifiées", "All claims hold"],
  someFail: ["Avec ces valeurs, certaines affirmations ne tiennent pas", "With these values some claims do not hold"],

  search: ["Recherche", "Search"],
  beam: ["Largeur du faisceau", "Beam size"],
  beamNote: ["Plus large : plus lent, souvent meilleur. 1 : glouton.", "Wider is slower, often better. 1 is greedy."],
  nbestCount: ["Nombre de traductions", "Number of translations"],
  lengthPenalty: ["Pénalité de longueur", "Length penalty"],
  lengthPenaltyNote: ["Plus haute : traductions plus longues.", "Higher favours longer translations."],
  precision: ["Précision des poids", "Precision of the weights"],
  precisionOwn: ["celle du serveur", "the server’s"],
  settingsReset: ["Rétablir", "Restore defaults"],

  tokenTitle: ["Ce serveur demande un jeton", "This server asks for a token"],
  tokenNote: [
    "Il est gardé jusqu’à la fermeture de l’onglet et n’est envoyé qu’à ce serveur.",
    "It is kept until this tab closes and is sent to this server only.",
  ],
  tokenLabel: ["Jeton", "Token"],
  tokenWrong: ["Ce jeton a été refusé.", "This token was refused."],
  tokenSend: ["Continuer", "Continue"],
  busy: ["Le serveur est occupé. Nouvel essai dans {n} s…", "The server is busy. Trying again in {n} s…"],
  starting: ["Le modèle se charge. Nouvel essai dans {n} s…", "The model is loading. Trying again in {n} s…"],
  offline: ["Le serveur ne répond pas. Nouvel essai dans {n} s…", "The server does not answer. Trying again in {n} s…"],
  online: ["Le serveur répond à nouveau.", "The server answers again."],
  tooLong: ["Le texte est trop long pour ce serveur.", "The text is too long for this server."],
  disconnected: ["La connexion au serveur a été coupée.", "The connection to the server was lost."],
  unauthorised: ["Sans jeton, ce serveur ne répond pas.", "This server does not answer without a token."],
  failed: ["Échec : {message}", "Failed: {message}"],
};

let languageIndex = 1;

export function setLanguage(code) {
  languageIndex = code === "fr" ? 0 : 1;
  document.documentElement.lang = code;
}

export function language() {
  return languageIndex === 0 ? "fr" : "en";
}

// French typography: no line break before high punctuation, inside guillemets or before the unit of seconds.
export function typeset(french) {
  return french.replace(/ (?=[;?!%])/g, "\u202f").replace(/ (?=[:»])/g, "\u00a0").replace(/« /g, "«\u00a0").replace(/\} (?=s\b)/g, "}\u00a0");
}

// values fill {name} places; a number is written as the language writes it.
export function t(key, values = {}) {
  return filled(key, values, languageIndex);
}

// Whatever the language of the interface is.
export function english(key, values = {}) {
  return filled(key, values, 1);
}

function filled(key, values, index) {
  const single = values.n !== undefined && (values.n === 1 || (index === 0 && values.n === 0));
  const phrase = (single && phrases[key + "One"]) || phrases[key];
  const text = index === 0 ? typeset(phrase[0]) : phrase[1];
  return text.replace(/\{(\w+)\}/g, (_, name) => {
    const value = values[name];
    return typeof value === "number" ? number(value) : value;
  });
}

export function number(value, digits = 2) {
  return new Intl.NumberFormat(language(), { maximumFractionDigits: digits }).format(value);
}

// A number that is already written in digits, as the language writes decimals: .5 → 0,5.
export function decimal(text) {
  return language() === "fr" ? text.replace(/(\d?)\.(?=\d)/g, (_, digit) => `${digit || 0},`) : text;
}

export function percent(share) {
  const digits = share < 0.0995 ? 1 : 0;
  return new Intl.NumberFormat(language(), { style: "percent", maximumFractionDigits: digits }).format(share);
}

// 1109120 → 1.1 M
export function compact(value) {
  return new Intl.NumberFormat(language(), { notation: "compact", maximumFractionDigits: 1 }).format(value);
}

export function bytes(value) {
  const units = language() === "fr" ? ["o", "ko", "Mo", "Go"] : ["B", "kB", "MB", "GB"];
  let unit = 0;
  for (; value >= 1000 && unit < 3; ++unit) value /= 1000;
  return `${number(value, value < 10 ? 1 : 0)}\u00a0${units[unit]}`;
}

export function age(seconds) {
  const units = [[86400, language() === "fr" ? "j" : "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const [size, unit] = units.find(([size]) => seconds >= size) ?? units[3];
  return `${Math.round(seconds / size)}\u00a0${unit}`;
}

// Fills every element that names its phrase: data-text for its content, data-label for its label and tooltip.
export function translateInterface(root = document) {
  for (const one of root.querySelectorAll("[data-text]")) one.textContent = t(one.dataset.text);
  for (const one of root.querySelectorAll("[data-placeholder]")) one.placeholder = t(one.dataset.placeholder);
  for (const one of root.querySelectorAll("[data-label]")) {
    one.setAttribute("aria-label", t(one.dataset.label));
    if (one.matches("button, a, label")) one.title = t(one.dataset.label);
  }
}
