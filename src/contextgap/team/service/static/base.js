// What all parts of the page use: elements, numbers and times as people read them, and the service.

// Text goes in as text only, so that no name can become markup.
const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...some(children));
  return element;
}

const some = (children) => children.flat().filter((child) => child !== null && child !== undefined && child !== false);

export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

let made = 0;

export function fresh(prefix) {
  made += 1;
  return `${prefix}-${made}`;
}

export function card(title, ...children) {
  return h("section", { class: "card", "aria-label": title }, h("h2", {}, title), children);
}

export function field(label, control, hint) {
  control.id ||= fresh("field");
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control,
    hint && h("small", {}, hint));
}

export function select(options, attributes = {}) {
  const element = h("select", attributes);
  choose(element, options);
  return element;
}

// Replaces the options of a select; what is chosen stays so.
export function choose(element, options) {
  const chosen = element.value;
  element.replaceChildren(...options.map(([value, text]) => h("option", { value }, text)));
  if (chosen) element.value = chosen;
}

// Replaces what is in an element, and keeps the focus on what has the same data-key.
export function replace(element, ...children) {
  const key = element.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  element.replaceChildren(...some(children));
  if (key !== undefined) find([key])?.focus({ preventScroll: true });
}

// The first element whose data-key is one of these.
export function find(keys) {
  return [...document.querySelectorAll("[data-key]")].find((each) => keys.includes(each.dataset.key));
}

// A table that scrolls; ``numbers`` are heads of columns at the right.
export function wide(caption, heads, body, attributes = {}, numbers = [], box = "wide") {
  return h("div", { class: box, tabindex: "0", role: "region", "aria-label": caption },
    h("table", attributes, h("caption", {}, caption), h("thead", {}, h("tr", {}, heads.map((head) =>
      h("th", { scope: "col", class: numbers.includes(head) && "number" }, head)))), body));
}

export function table(caption, heads, rows) {
  const cell = (value, place) => h(place ? "td" : "th",
    { scope: place ? null : "row", class: typeof value === "number" && "number" }, value ?? "–");
  return wide(caption, heads, h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cell)))));
}

export function openDialog(title, form, closed) {
  const dialog = h("dialog", { "aria-label": title }, form);
  dialog.addEventListener("close", () => {
    dialog.remove();
    closed();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

// Does something; what goes wrong is said.
export async function attempt(said, work) {
  try {
    await work();
  } catch (error) {
    if (error.name !== "AbortError") said.textContent = error.message;
  }
}

export const LOADING = "Loading …";

// What to say where there is nothing: that there is nothing, or, if the log has enough rewards, that it comes.
export function nothing({ trials }, least, text) {
  return trials.told < least ? text : LOADING;
}

export function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e6 || size < 1e-3
    ? value.toExponential(digits - 1).replace(/\.?0+e/, "e").replace("e+", "e")
    : String(Number(value.toPrecision(Math.max(digits, Math.ceil(Math.log10(size))))));
  return text.replace("-", "−");
}

export function signed(value) {
  return value > 0 ? `+${number(value)}` : number(value);
}

export function count(value) {
  return value.toLocaleString("en").replaceAll(",", "\u2009");
}

export function plural(value, one) {
  return `${count(value)}\u00a0${value === 1 ? one : `${one}s`}`;
}

export function percent(value, digits = 0) {
  return value === null || value === undefined ? "–" : `${(100 * value).toFixed(digits)}\u00a0%`;
}

const HERE = { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" };

export function time(text) {
  return text ? new Date(text).toLocaleString("en-GB", HERE) : "–";
}

export function ago(text) {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(text)) / 1000));
  if (seconds < 5) return "just now";
  if (seconds < 90) return `${seconds} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h ago`;
  return time(text);
}

export function cell(value) {
  if (value === null || value === undefined) return "missing";
  if (typeof value === "number") return number(value, 4);
  if (typeof value === "object") return value.date || value.time || JSON.stringify(value);
  return String(value);
}

export function context(value) {
  if (Array.isArray(value)) return `(${value.map(cell).join(", ")})`;
  return Object.entries(value).map(([name, each]) => `${name} ${cell(each)}`).join(" · ");
}

// A token is asked for when one is needed, and kept as long as the tab is.
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
    form.addEventListener("submit", () => sessionStorage.setItem(TOKEN, input.value.trim()));
    const dialog = openDialog("A token is needed", form, () => {
      asking = null;
      done();
    });
    dialog.addEventListener("cancel", (event) => event.preventDefault());
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
    for (const [, data] of parts.map((part) => part.match(/^data: (.*)$/m)).filter(Boolean)) tell(JSON.parse(data));
  }
}
