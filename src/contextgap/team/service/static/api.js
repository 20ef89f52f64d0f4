// Talks to the service. A token is asked for when one is needed, and kept as long as the tab is.

import { h, field } from "./dom.js";

const TOKEN = "contextgap token";
let asking = null;

// The address that the service prints has its token behind the #, which is sent to nobody.
const [, given] = location.hash.match(/^#token=(.+)$/) || [];
if (given) {
  sessionStorage.setItem(TOKEN, decodeURIComponent(given));
  history.replaceState(null, "", location.pathname);
}

export class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

function headers(more) {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { ...more, Authorization: `Bearer ${token}` } : { ...more };
}

// Opens a dialog for a token; all requests that wait for one share it.
function askForToken(why) {
  if (asking) return asking;
  asking = new Promise((done) => {
    const input = h("input", { type: "password", autocomplete: "off", required: true, spellcheck: "false" });
    const form = h("form", { method: "dialog" },
      h("h2", {}, "A token is needed"),
      h("p", {}, why),
      field("Token", input, "It is kept in this tab only, and forgotten when the tab is closed."),
      h("div", { class: "buttons" }, h("button", { class: "primary" }, "Go on")));
    const dialog = h("dialog", { "aria-label": "A token is needed" }, form);
    form.addEventListener("submit", () => sessionStorage.setItem(TOKEN, input.value.trim()));
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.addEventListener("close", () => {
      dialog.remove();
      asking = null;
      done();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
  return asking;
}

async function send(path, options = {}) {
  for (;;) {
    let answer;
    try {
      answer = await fetch(path, { ...options, headers: headers(options.headers) });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refused(0, "the service cannot be reached");
    }
    if (answer.ok) return answer;
    const said = await answer.json().catch(() => ({ detail: `the answer was ${answer.status}` }));
    if (answer.status !== 401) throw new Refused(answer.status, said.detail);
    await askForToken(said.detail);
  }
}

export function at(campaign, rest, base = "page") {
  return `${base}/campaigns/${encodeURIComponent(campaign)}/${rest}`;
}

export async function get(path, signal) {
  return (await send(path, { signal })).json();
}

export async function post(path, body) {
  const options = { method: "POST", body: JSON.stringify(body) };
  return (await send(path, { ...options, headers: { "Content-Type": "application/json" } })).json();
}

// A name for a change, so that sending it twice does it once.
export function key() {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export async function download(path, name) {
  const content = await (await send(path)).blob();
  const link = h("a", { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

// Reads server-sent events; EventSource itself could not send a token.
export async function listen(path, signal, tell) {
  const answer = await send(path, { signal, headers: { Accept: "text/event-stream" } });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const data = part.split("\n").filter((line) => line.startsWith("data: "));
      if (data.length) tell(JSON.parse(data.map((line) => line.slice(6)).join("\n")));
    }
  }
}
