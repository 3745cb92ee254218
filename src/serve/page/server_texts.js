// What the server says, in the language of the interface. The server speaks English; its errors and the texts of the
// attention experiments have French here. What has none is shown in English and marked as such.
import { decimal, english, language, t, typeset } from "./strings.js";

// English: French. {place} stands for any text, which is translated too; {PLACE} for a name, which stays as it is. In the
// French, {place:8} is filled up with blanks to 8 characters. Paragraphs are translated sentence by sentence.
const frenchOfServer = {
  "worked-example": "exemple détaillé",
  "three tokens by hand: queries, keys, values, scores, weights, output":
    "trois tokens à la main : requêtes, clés, valeurs, scores, poids, sortie",
  "Three tokens with two components each.": "Trois tokens à deux composantes chacun.",
  "Queries, keys and values are products of the tokens with three matrices.":
    "Les requêtes, les clés et les valeurs sont les produits des tokens par trois matrices.",
  "The scores of token 3 are the products of its query with every key.":
    "Les scores du token 3 sont les produits scalaires de sa requête avec chaque clé.",
  "The softmax turns them into weights, and the output is the weighted sum of the values.":
    "Le softmax les transforme en poids, et la sortie est la somme pondérée des valeurs.",
  "The matrix form softmax(Q·Kᵀ)·V computes all rows at once and gives the same result.":
    "La forme matricielle softmax(Q·Kᵀ)·V calcule toutes les lignes à la fois et donne le même résultat.",
  "queries": "requêtes",
  "keys": "clés",
  "values": "valeurs",
  "scores of token {n}": "scores du token {n}",
  "weights of token 3 on tokens 1 and 2": "poids du token 3 sur les tokens 1 et 2",
  "weight of token 3 on itself, times 10^13": "poids du token 3 sur lui-même, multiplié par 10^13",
  "output of token {n}": "sortie du token {n}",
  "largest difference between A·V and the sums of weighted values":
    "plus grand écart entre A·V et les sommes des valeurs pondérées",
  "largest difference between the fast kernel and the reference":
    "plus grand écart entre le noyau de calcul rapide et la référence",
  "error in the course material: the third component of token 2's query is 2·(-1) - 3·0 = -2, not 2":
    "erreur dans le support de cours : la troisième composante de la requête du token 2 est 2·(-1) - 3·0 = -2, et non 2",
  "Attention weights of the three tokens": "Poids d’attention des trois tokens",
  "token {n}": "token {n}",

  "copy": "copie",
  "a query aligned with one key copies its value": "une requête alignée sur une clé en copie la valeur",
  "number of keys": "nombre de clés",
  "scale of the query": "échelle de la requête",
  "{n} orthonormal keys, and a query that is {t} times the first key.":
    "{n} clés orthonormées et une requête égale à {t} fois la première clé.",
  "The weights are a distribution over the keys.": "Les poids forment une distribution de probabilité sur les clés.",
  "The first key gets the weight eᵗ / (eᵗ + n - 1), so that the output is the first value up to an error that falls as e⁻ᵗ: the value is copied.":
    "La première clé reçoit le poids eᵗ / (eᵗ + n - 1) ; la sortie est donc la première valeur, à une erreur près qui décroît comme e⁻ᵗ : la valeur est copiée.",
  "sum of the weights": "somme des poids",
  "no weight is negative": "aucun poids n’est négatif",
  "weight on the first key: eᵗ / (eᵗ + n - 1)": "poids de la première clé : eᵗ / (eᵗ + n - 1)",
  "distance between the output and the first value": "distance entre la sortie et la première valeur",
  "its largest difference from the expected distance for t = 0 … 20":
    "son plus grand écart à la distance attendue pour t = 0 … 20",
  "Distance between the output and the copied value": "Distance entre la sortie et la valeur copiée",
  "log₁₀ of the error": "log₁₀ de l’erreur",
  "scale t of the query": "échelle t de la requête",
  "measured": "mesurée",
  "(n - 1) / (eᵗ + n - 1) · distance to the mean of the others":
    "(n - 1) / (eᵗ + n - 1) · distance à la moyenne des autres",

  "average": "moyenne",
  "a query between two keys averages their values; a projection recovers one of them":
    "une requête placée entre deux clés fait la moyenne de leurs valeurs ; une projection retrouve l’une d’elles",
  "{n} orthonormal keys and the query t·(k_a + k_b), t = {t}.":
    "{n} clés orthonormées et la requête t·(k_a + k_b), avec t = {t}.",
  "Both keys have the score t, all others 0.": "Ces deux clés ont le score t, toutes les autres le score 0.",
  "Each of the two gets the weight eᵗ / (2eᵗ + n - 2), almost ½, and the output is almost the mean of their values.":
    "Chacune des deux reçoit le poids eᵗ / (2eᵗ + n - 2), presque ½, et la sortie est presque la moyenne de leurs valeurs.",
  "If v_a and v_b lie in orthogonal subspaces, the projection M = A·Aᵀ onto the first subspace recovers v_a from v_a + v_b.":
    "Si v_a et v_b appartiennent à des sous-espaces orthogonaux, la projection M = A·Aᵀ sur le premier retrouve v_a à partir de v_a + v_b.",
  "weights on the two keys: eᵗ / (2eᵗ + n - 2)": "poids des deux clés : eᵗ / (2eᵗ + n - 2)",
  "distance between the output and the mean of the two values":
    "distance entre la sortie et la moyenne des deux valeurs",
  "distance between M·(v_a + v_b) and v_a, with M = A·Aᵀ": "distance entre M·(v_a + v_b) et v_a, avec M = A·Aᵀ",
  "error in the course material: Aᵀ·A, which it also uses, is the identity and not a projection":
    "erreur dans le support de cours : Aᵀ·A, qu’il emploie aussi, est l’identité et non une projection",
  "3 × 3, the identity": "3 × 3, l’identité",
  "{rows} × {columns}, {distance} from the identity": "{rows} × {columns}, à {distance} de l’identité",
  "Distance between the output and the mean": "Distance entre la sortie et la moyenne",
  "Difference between each weight and ½, by number of keys":
    "Écart entre chaque poids et ½, selon le nombre de clés",
  "log₁₀(½ - weight)": "log₁₀(½ - poids)",

  "single-head": "une seule tête",
  "keys of random length: one head jumps between two values":
    "clés de longueur aléatoire : une seule tête saute d’une valeur à l’autre",
  "samples": "échantillons",
  "random draws of the keys": "tirages aléatoires des clés",
  "alpha": "α",
  "variance of all keys": "variance de toutes les clés",
  "Keys are drawn around orthonormal means.": "Les clés sont tirées au hasard autour de moyennes orthonormées.",
  "All are almost exact except k_a, which keeps its direction but has a random length ε ~ N(1, ½).":
    "Toutes sont presque exactes, sauf k_a, qui garde sa direction mais dont la longueur ε ~ N(1, ½) est aléatoire.",
  "The query t·(μ_a + μ_b), t = {t}, should average v_a and v_b.":
    "La requête t·(μ_a + μ_b), avec t = {t}, devrait faire la moyenne de v_a et v_b.",
  "It gives v_a the weight 1 / (1 + e^(t(1-ε)) + (n-2)e^(-tε)), a sigmoid of the length: most draws give v_a or v_b, few their mean.":
    "Elle donne à v_a le poids 1 / (1 + e^(t(1-ε)) + (n-2)e^(-tε)), une sigmoïde de la longueur : la plupart des tirages donnent v_a ou v_b, et peu leur moyenne.",
  "mean of the weight on {v}, within four standard errors": "moyenne du poids de {v}, à quatre erreurs types près",
  "mean of the weight on {v}": "moyenne du poids de {v}",
  "variance of the weight on {v}": "variance du poids de {v}",
  "draws with a weight on v_a below {low} or above {high}":
    "tirages où le poids de v_a est inférieur à {low} ou supérieur à {high}",
  "depends on {t}": "dépend de {t}",
  "Weight on v_a over the draws, one head": "Poids de v_a sur l’ensemble des tirages, une tête",
  "draws, %": "% des tirages",
  "draws, % by weight on v_a": "% des tirages selon le poids de v_a",
  "one head": "une tête",

  "multi-head": "plusieurs têtes",
  "two heads, one for each value: the mean of their outputs is stable":
    "deux têtes, une par valeur : la moyenne de leurs sorties est stable",
  "scale of the queries": "échelle des requêtes",
  "The same draws of the keys, but two heads with the queries q₁ = tμ_a and q₂ = tμ_b, t = {t}, whose outputs are averaged.":
    "Les mêmes tirages des clés, mais deux têtes, de requêtes q₁ = tμ_a et q₂ = tμ_b, avec t = {t}, et la moyenne de leurs sorties.",
  "Head 1 attends to v_a if the length of k_a is positive; head 2 always attends to v_b.":
    "L’attention de la tête 1 porte sur v_a si la longueur de k_a est positive ; celle de la tête 2 porte toujours sur v_b.",
  "Their mean stays at ½(v_a + v_b).": "Leur moyenne reste ½(v_a + v_b).",
  "error in the course material: with q₁ = q₂ = t(μ_a + μ_b), as on one of its sheets, two heads equal one, whose variance is larger":
    "erreur dans le support de cours : avec q₁ = q₂ = t(μ_a + μ_b), comme sur l’une de ses feuilles, deux têtes équivalent à une seule, dont la variance est plus grande",
  "Weight on v_a over the same draws, one head and two heads":
    "Poids de v_a sur les mêmes tirages, une tête et deux têtes",
  "two heads": "deux têtes",

  "key-query-value": "clés, requêtes, valeurs",
  "separate matrices: which word to attend to and what to take from it become independent":
    "matrices distinctes : le mot sur lequel porte l’attention et ce que l’on en tire deviennent indépendants",
  "beta": "β",
  "length of the vectors that words are sums of": "longueur des vecteurs dont les mots sont des sommes",
  "The words x₁ = u_d + u_b, x₂ = u_a and x₃ = u_c + u_b are sums of orthogonal vectors of length β = {beta}.":
    "Les mots x₁ = u_d + u_b, x₂ = u_a et x₃ = u_c + u_b sont des sommes de vecteurs orthogonaux de longueur β = {beta}.",
  "If the words themselves are queries, keys and values, word 2 attends only to itself.":
    "Si les mots eux-mêmes servent de requêtes, de clés et de valeurs, l’attention du mot 2 ne porte que sur lui-même.",
  "A vector added to it so that it attends to word 1 also appears in its output, so that it never gets u_b alone.":
    "Un vecteur qu’on lui ajoute pour que son attention porte sur le mot 1 apparaît aussi dans sa sortie : il n’obtient jamais u_b seul.",
  "With V = (u_b u_bᵀ - u_c u_cᵀ)/β², K = I and Q = (u_d u_aᵀ + u_c u_dᵀ)/β², word 2 gets exactly u_b and word 1 gets u_b - u_c: which word to attend to and what to take from it are now independent.":
    "Avec V = (u_b u_bᵀ - u_c u_cᵀ)/β², K = I et Q = (u_d u_aᵀ + u_c u_dᵀ)/β², le mot 2 obtient exactement u_b et le mot 1 obtient u_b - u_c : le mot sur lequel porte l’attention et ce que l’on en tire sont désormais indépendants.",
  "without matrices: distance between c₂ and u_a, in units of β":
    "sans matrices : distance entre c₂ et u_a, en unités de β",
  "with u_d added to x₂: distance between c₂ and u_b, in units of β":
    "avec u_d ajouté à x₂ : distance entre c₂ et u_b, en unités de β",
  "v₁ = u_b and v₃ = u_b - u_c: largest difference": "v₁ = u_b et v₃ = u_b - u_c : plus grand écart",
  "α₁, the weights of word 1": "α₁, les poids du mot 1",
  "α₂, the weights of word 2 (error in the course material: (1, 0, 1), which does not sum to 1)":
    "α₂, les poids du mot 2 (erreur dans le support de cours : (1 ; 0 ; 1), dont la somme n’est pas 1)",
  "distance between {a} and {b}, in units of β": "distance entre {a} et {b}, en unités de β",
  "Attention weights of the three words, with matrices": "Poids d’attention des trois mots, avec matrices",

  "scale": "mise à l’échelle",
  "why scores are divided by the square root of the head size":
    "pourquoi les scores sont divisés par la racine carrée de la dimension des têtes",
  "random draws of query and key": "tirages aléatoires de la requête et de la clé",
  "number of keys in the softmax": "nombre de clés dans le softmax",
  "Query and key have D independent components with mean μ and variance 1.":
    "La requête et la clé ont D composantes indépendantes de moyenne μ et de variance 1.",
  "Their product q·k has mean Dμ² and, for μ = 0, variance D.":
    "Leur produit scalaire q·k a pour moyenne Dμ² et, pour μ = 0, pour variance D.",
  "In a softmax over {n} keys, scores of that size put almost all weight on one key, and the gradient of the softmax vanishes.":
    "Dans un softmax sur {n} clés, des scores de cette taille concentrent presque tout le poids sur une seule clé, et le gradient du softmax s’évanouit.",
  "Divided by √D, the scores have variance 1 for every D.": "Divisés par √D, les scores ont une variance de 1 pour tout D.",
  "E[q·k] = 0 for μ = 0, D = 1 … 1024: largest difference, in standard errors":
    "E[q·k] = 0 pour μ = 0, D = 1 … 1024 : plus grand écart, en erreurs types",
  "E[q·k] = Dμ² for μ = ½: largest difference, in standard errors":
    "E[q·k] = Dμ² pour μ = ½ : plus grand écart, en erreurs types",
  "Var[q·k] = D: largest relative difference": "Var[q·k] = D : plus grand écart relatif",
  "trace of the softmax Jacobian at D = 1024 without scaling: under a tenth of that with scaling":
    "trace de la jacobienne du softmax pour D = 1024 sans mise à l’échelle : moins d’un dixième de celle avec mise à l’échelle",
  "with scaling, the entropy at D = 1024 is within 20 % of that at D = 1":
    "avec mise à l’échelle, l’entropie pour D = 1024 est à moins de 20 % de celle pour D = 1",
  "Variance of q·k by size D": "Variance de q·k selon la dimension D",
  "log₂ of the variance": "log₂ de la variance",
  "log₂ of the variance of q·k": "log₂ de la variance de q·k",
  "Entropy of the softmax over {n} keys": "Entropie du softmax sur {n} clés",
  "nats": "nats",
  "not scaled": "sans mise à l’échelle",
  "divided by √D": "divisés par √D",
  "Trace of the softmax Jacobian, Σ a(1 - a)": "Trace de la jacobienne du softmax, Σ a(1 - a)",

  "trained": "modèle entraîné",
  "the heads of a trained model: what each attends to, and what its removal costs":
    "les têtes d’un modèle entraîné : sur quoi porte l’attention de chacune, et ce que coûte sa suppression",
  "sentences": "phrases",
  "validation sentences to analyse": "phrases de validation à analyser",
  "bleu": "BLEU",
  "sentences to translate without each head; 0: none": "phrases à traduire en l’absence de chaque tête ; 0 : aucune",
  "The {heads} heads of {MODEL} on {sentences} validation sentences.":
    "Les {heads} têtes de {MODEL} sur {sentences} phrases de validation.",
  "A head copies if its largest weight is near 1, averages if the entropy of its weights is near the maximum, and is positional if it attends to a fixed offset.":
    "Une tête copie si son plus grand poids est proche de 1, fait la moyenne si l’entropie de ses poids est proche du maximum, et est positionnelle si son attention porte sur un décalage fixe.",
  "Each head is removed in turn to measure the change in loss and BLEU.":
    "Chaque tête est supprimée à son tour pour mesurer la variation de la perte et du score BLEU.",
  "Most important: {head} ({loss} loss).": "La plus importante : {head} (perte {loss}).",
  "Most important: {head} ({loss} loss, {bleu} BLEU).": "La plus importante : {head} (perte {loss}, BLEU {bleu}).",
  "Least important: {head} ({loss}).": "La moins importante : {head} ({loss}).",
  "layer {layer} head {head}": "couche {layer}, tête {head}",
  "layer {layer} head {head} {kind} largest {largest} entropy {entropy} offset {offset} removed: {loss} loss":
    "couche {layer:2} tête {head:2}  {kind:19} maximum {largest}  entropie {entropy}  décalage {offset}  sans elle : perte {loss}",
  "layer {layer} head {head} {kind} largest {largest} entropy {entropy} offset {offset} removed: {loss} loss, {bleu} BLEU":
    "couche {layer:2} tête {head:2}  {kind:19} maximum {largest}  entropie {entropy}  décalage {offset}  sans elle : perte {loss}, BLEU {bleu}",
  "fixed offset (itself)": "décalage nul",
  "fixed offset ({n} back)": "décalage fixe de {n}",
  "copies": "copie",
  "averages": "fait la moyenne",
  "mixed": "mixte",
  "all statistics of the heads are between 0 and 1": "toutes les statistiques des têtes sont entre 0 et 1",
  "0 to 1": "de 0 à 1",
  "see the list of heads": "voir la liste des têtes",
  "loss with all heads restored": "perte une fois toutes les têtes rétablies",
  "Mean largest weight (near 1: the head copies)": "Plus grand poids, en moyenne (proche de 1 : la tête copie)",
  "Entropy relative to the maximum (near 1: the head averages)":
    "Entropie rapportée au maximum (proche de 1 : la tête fait la moyenne)",
  "Weight at the best fixed offset (near 1: the head is positional)":
    "Poids au meilleur décalage fixe (proche de 1 : la tête est positionnelle)",
  "Increase in loss without each head, relative to the most important one ({loss})":
    "Hausse de la perte en l’absence de chaque tête, rapportée à celle de la plus importante ({loss})",
  "layer {n}": "couche {n}",
  "head {n}": "tête {n}",

  "{label}: {value}": "{label} : {value}",  // of a point in a chart

  "no such run or comparison": "cet entraînement ou ce rapport n’existe pas",
  "no such run": "cet entraînement n’existe pas",
  "there is no report yet": "il n’y a pas encore de rapport",
  "no such experiment": "cette expérience n’existe pas",
  "no such model": "ce modèle n’existe pas",
  "model {MODEL}: not served here": "le modèle {MODEL} n’est pas servi ici",
  "model {MODEL}: not served here; did you mean {OTHER}?": "le modèle {MODEL} n’est pas servi ici ; pensiez-vous à {OTHER} ?",
  "model {MODEL} is still loading": "le modèle {MODEL} se charge encore",
  "model {MODEL}: {error}": "modèle {MODEL} : {error}",
  "{NAME} ({n} sentences)": "{NAME} ({n} phrases)",
  "{MODEL}: no such run or checkpoint": "{MODEL} : ni entraînement ni point de contrôle de ce nom",
  "{MODEL}: no such run or checkpoint; did you mean {OTHER}?":
    "{MODEL} : ni entraînement ni point de contrôle de ce nom ; pensiez-vous à {OTHER} ?",
  "{MODEL}: the run has no checkpoint yet": "{MODEL} : l’entraînement n’a pas encore de point de contrôle",
  "{MODEL}: no validation set found": "{MODEL} : aucun corpus de validation trouvé",
  "{MODEL}: all pairs are longer than the model's context": "{MODEL} : toutes les paires dépassent le contexte du modèle",
  "{FILE}: no such file": "{FILE} : ce fichier n’existe pas",
  "{FILE}: No such file or directory": "{FILE} : ce fichier n’existe pas",
  "{FILE}: Permission denied": "{FILE} : accès refusé",
  "{PARAMETER}: at most {n}": "{PARAMETER} : {n} au plus",
  "beam and nbest: at most {n} here": "faisceau et nombre de traductions : {n} au plus ici",
  "precision: {PRECISION} is not served here; {COMMAND} would":
    "la précision {PRECISION} n’est pas servie ici ; {COMMAND} la servirait",
  "source: the text is empty": "le texte source est vide",
  "source: empty, or too long for the model": "le texte source est vide, ou trop long pour le modèle",
  "file: expected a text (.txt) or a page (.html)": "un fichier .txt ou .html était attendu",
  "file: not valid UTF-8": "le fichier n’est pas en UTF-8 valide",
  "no such file; only the newest are kept": "ce fichier n’existe plus ; seuls les plus récents sont gardés",
  "the request took too long": "la demande a pris trop de temps",
  "the translation took too long": "la traduction a pris trop de temps",
  "the server has stopped": "le serveur s’est arrêté",
  "it failed": "erreur interne du serveur",
};

const escaped = (text) => text.replace(/[\^$.*+?()[\]{}|]/g, "\\$&");

// "head {n}" → /^head (?<n>.+?)$/
const serverPatterns = Object.entries(frenchOfServer).filter(([english]) => english.includes("{")).map(([english, french]) => {
  const parts = english.split(/\{(\w+)\}/).map((part, i) => (i % 2 ? `(?<${part}>.+?)` : escaped(part)));
  return { pattern: new RegExp(`^${parts.join("")}$`), french };
});

// Numbers, variables and these words are the same in both languages.
function isFormula(text) {
  return !/[A-Za-z]{2}/.test(text.replace(/\b(log|nan|inf)\b/g, ""));
}

// (0.5, 20,000) → (0,5 ; 20 000)
function frenchFormula(text) {
  return typeset(decimal(text.replace(/(?<=\d),(?=\d{3})/g, "\u202f").replaceAll(", ", " ; ")));
}

function fillPlaces(french, values) {
  return typeset(french).replace(/\{(\w+)(?::(\d+))?\}/g, (_, name, width = 0) => values[name].padEnd(width));
}

// null where a part has no French.
function frenchOfParts(parts, between) {
  const french = parts.map(frenchOf);
  return french.includes(null) ? null : french.join(between);
}

function frenchOfPattern({ pattern, french }, text) {
  const values = { ...text.match(pattern)?.groups };
  if (!Object.keys(values).length) return null;
  for (const name of Object.keys(values)) if (name !== name.toUpperCase()) values[name] = frenchOf(values[name]);
  return Object.values(values).includes(null) ? null : fillPlaces(french, values);
}

function frenchOfLine(line) {
  if (Object.hasOwn(frenchOfServer, line)) return typeset(frenchOfServer[line]);
  const sentences = line.split(/(?<=\.) (?=[A-Z])/);
  if (sentences.length > 1) return frenchOfParts(sentences, " ");
  for (const one of serverPatterns) {
    const french = frenchOfPattern(one, line);
    if (french !== null) return french;
  }
  return null;
}

// null where there is none. Blanks around the text stay.
function frenchOf(text) {
  if (isFormula(text)) return frenchFormula(text);
  if (text.includes("\n")) return frenchOfParts(text.split("\n"), "\n");
  const [, before, body, after] = text.match(/^(\s*)(.*?)(\s*)$/s);
  const french = frenchOfLine(body.replace(/\s+/g, " "));
  return french === null ? null : before + french + after;
}

// Attributes for element(): the text, and its language where that is not the interface's.
export function serverText(text) {
  if (language() !== "fr") return { text };
  const french = frenchOf(text);
  return french === null ? { text, lang: "en" } : { text: french };
}

// The same for an error. What has no French is wholly English.
export function errorText(error) {
  if (error.status === 0) return { text: t("disconnected") };
  if (error.status === 413) return { text: t("tooLong") };
  if (error.status === 401 || error.status === 403) return { text: t("unauthorised") };
  const { text, lang } = serverText(error.message);
  return lang ? { text: english("failed", { message: text }), lang } : { text: t("failed", { message: text }) };
}
