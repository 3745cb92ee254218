// The server's HTTP interface. A request waits and repeats itself while the server is busy (429), loading (503,
// with Retry-After) or away, and asks for the token on 401; what is left are errors for the caller.
import { storedToken, storeToken } from "./store.js";

export class ApiError extends Error {
  constructor(status, message, field) {
    super(message);
    this.status = status;
    this.field = field;
  }
}

// The page fills these in: ask for a token (refused: the last one was wrong), show that a request waits.
export const apiHooks = { askToken: async (refused) => "", waiting: (reason, seconds) => {}, answered: () => {} };

const longestWait = 30;  // seconds
let tokenQuestion = null;

// Concurrent requests share one question.
function sharedQuestion() {
  tokenQuestion ??= apiHooks.askToken(storedToken() !== "").finally(() => (tokenQuestion = null));
  return tokenQuestion;
}

export function isAbort(error) {
  return error?.name === "AbortError";
}

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(new DOMException("aborted", "AbortError"));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, seconds * 1000);
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop, { once: true });
  });
}

async function errorOf(response) {
  const body = await response.json().catch(() => ({}));
  const error = typeof body.error === "string" ? { message: body.error } : body.error ?? {};
  return new ApiError(response.status, error.message ?? `HTTP ${response.status}`, error.field);
}

function waitOf(response, attempt) {
  const given = Number(response?.headers.get("Retry-After"));
  return Math.min(longestWait, given > 0 ? given : Math.min(2 + attempt, 10));
}

// body: an object (sent as JSON) or FormData. patient false: fail at once where the server is busy or away.
export async function request(path, { body, signal, patient = true } = {}) {
  for (let attempt = 0; ; ++attempt) {
    const sent = storedToken();
    const headers = sent ? { Authorization: "Bearer " + sent } : {};
    const form = body instanceof FormData;
    if (body && !form) headers["Content-Type"] = "application/json";
    if (form && sent) body.set("api_key", sent);
    let response = null;
    try {
      response = await fetch(path, {
        method: body ? "POST" : "GET", headers, body: body && (form ? body : JSON.stringify(body)), signal,
      });
    } catch (error) {
      if (isAbort(error)) throw error;
      if (!patient) throw new ApiError(0, error.message);
    }
    if (response?.ok) {
      apiHooks.answered();
      return response;
    }
    if (response?.status === 401 || response?.status === 403) {
      // Another request may have got a token while this one was under way.
      if (storedToken() === sent) {
        const given = await sharedQuestion();
        if (!given) throw await errorOf(response);
        storeToken(given);
      }
    } else if (patient && (!response || response.headers.has("Retry-After"))) {
      const seconds = waitOf(response, attempt);
      apiHooks.waiting(!response ? "offline" : response.status === 429 ? "busy" : "starting", seconds);
      await pause(seconds, signal);
    } else {
      throw await errorOf(response);
    }
  }
}

export async function getJson(path, options) {
  return (await request(path, options)).json();
}

export async function postJson(path, body, options = {}) {
  return (await request(path, { ...options, body })).json();
}

function parseEvent(block) {
  let name = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
  }
  return data.length ? { name, data: JSON.parse(data.join("\n")) } : null;
}

// Server-sent events of a POST, which EventSource cannot make: yields { name, data }.
export async function* postEvents(path, body, signal) {
  const response = await request(path, { body, signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read().catch((error) => {
      throw isAbort(error) ? error : new ApiError(0, error.message);
    });
    rest = (rest + (value ?? "")).replaceAll("\r\n", "\n");
    for (let end; (end = rest.indexOf("\n\n")) >= 0; rest = rest.slice(end + 2)) {
      const event = parseEvent(rest.slice(0, end));
      if (event) yield event;
    }
    if (done) return;
  }
}
