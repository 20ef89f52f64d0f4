// The page: which campaign is shown, its parts, and when each is fetched again.

import {
  LOADING, Plot, ago, attempt, card, choose, context, count, drawCourse, drawDoubts, drawPicks, drawProgress,
  drawRewards, drawShift, field, find, h, lookOf, nothing, number, openDialog, percent, plural, replace, s, select, signed, table, time, wide,
} from "./draw.js";

const THEMES = ["auto", "light", "dark"];
// Milliseconds.
const LEAST = 1000; // between rounds of requests
const LATER = 4000; // until what was not new is asked for again
const AGAIN = 3000; // until a lost stream is opened again
const LIST = 5000; // between updates of the list
const WATCHED = 3000; // and of a watch
const TYPING = 250; // after the last key
const LISTED = ["campaign", "trials", "open", "settled", "asks left", "last event"];
const GAP = "\u0000gap";
const FEW = 6; // cells, up to which all are shown at once
const BAR = 150; // pixels of an interval's bar
const PART = 90; // pixels of the bar of what something adds
const STATES = ["open", "told", "cancelled", "expired", "retracted"];
const HEADS = ["trial", "state", "arm", "context", "reward", "told", "by", "reason", "change"];
const FILES = [["cgap", "cgap", ".cgap"], ["onnx", "onnx", "ONNX"], ["c", "zip", "C"]];
const MOVED = 8; // columns of a watch

const TOKEN = "contextgap token";
let asking = null;

// The address that the service prints has its token behind the #, which is sent to nobody.
const [, given] = location.hash.match(/^#token=(.+)$/) || [];
if (given) {
  sessionStorage.setItem(TOKEN, decodeURIComponent(given));
  history.replaceState(null, "", location.pathname);
}

class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

function headers(more) {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { ...more, Authorization: `Bearer ${token}` } : { ...more };
}

// All requests that wait for a token share the dialog.
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

function at(campaign, rest, base = "page") {
  return `${base}/campaigns/${encodeURIComponent(campaign)}/${rest}`;
}

async function get(path, signal) {
  return (await send(path, { signal })).json();
}

async function post(path, body) {
  const options = { method: "POST", body: JSON.stringify(body) };
  return (await send(path, { ...options, headers: { "Content-Type": "application/json" } })).json();
}

// Names a change, so that it happens once.
function key() {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function download(path, name) {
  const content = await (await send(path)).blob();
  const link = h("a", { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

// Reads server-sent events; EventSource itself could not send a token.
async function listen(path, signal, tell) {
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

const main = document.getElementById("main");
const toggle = document.getElementById("theme");
let leave = null;

function setTheme(name) {
  const theme = THEMES.includes(name) ? name : "auto";
  document.documentElement.dataset.theme = theme;
  toggle.textContent = `Theme: ${theme}`;
  toggle.dataset.theme = theme;
  localStorage.setItem("contextgap theme", theme);
}

toggle.addEventListener("click", () => setTheme(THEMES[(THEMES.indexOf(toggle.dataset.theme) + 1) % THEMES.length]));
setTheme(localStorage.getItem("contextgap theme"));

function wanted() {
  const [, campaign, policy] = location.hash.match(/^#\/campaigns\/(.+?)(?:\/policies\/(.+))?$/) || [];
  try {
    return [campaign, policy].map((name) => (name === undefined ? null : decodeURIComponent(name)));
  } catch {
    return [null, null];
  }
}

function route() {
  if (location.hash === "#main") return;
  leave?.abort();
  leave = new AbortController();
  const [name, policy] = wanted();
  document.title = [policy, name, "contextgap"].filter((each) => each !== null).join(" · ");
  main.replaceChildren();
  window.scrollTo(0, 0);
  const shown = name === null ? showList(leave.signal)
    : policy === null ? showCampaign(name, leave.signal) : showWatch(name, policy, leave.signal);
  shown.catch((error) => {
    if (error.name !== "AbortError") main.replaceChildren(h("p", { class: "problem", role: "alert" }, error.message));
  });
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", route);

function repeat(milliseconds, signal, work) {
  const timer = setInterval(work, milliseconds);
  signal.addEventListener("abort", () => clearInterval(timer));
}

async function showList(signal) {
  const body = h("tbody", {});
  const empty = h("p", { class: "empty", hidden: true }, "There is no campaign yet: ",
    h("code", {}, "contextgap campaign create"), " begins one.");
  const box = wide("All campaigns", LISTED, body, { class: "list" }, LISTED.slice(1));
  main.append(h("h1", {}, "Campaigns"), h("section", { class: "card" }, box, empty));
  const look = async () => {
    const { campaigns } = await get("page/campaigns", signal);
    empty.hidden = campaigns.length > 0;
    box.hidden = campaigns.length === 0;
    replace(body, campaigns.map(listed));
  };
  await look();
  repeat(LIST, signal, () => document.hidden || look().catch(() => {}));
}

function listed(campaign) {
  const where = `#/campaigns/${encodeURIComponent(campaign.name)}`;
  const cell = (attributes, ...children) => h("td", { class: "number", ...attributes }, children);
  return h("tr", {},
    h("th", { scope: "row" }, h("a", { href: where, "data-key": campaign.name }, campaign.name)),
    cell({}, count(campaign.trials)), cell({}, count(campaign.open)),
    cell({}, meter(campaign), " ", percent(campaign.settled)), cell({}, left(campaign, "about")),
    cell({ title: time(campaign.at) }, ago(campaign.at)));
}

function meter({ settled }) {
  return h("meter", { min: 0, max: 1, value: settled ?? 0, "aria-label": "settled share" });
}

function left({ asks_left: asks }, about) {
  return asks === null ? "unknown" : asks === 0 ? "none" : `${about} ${count(asks)}`;
}

// One campaign. ``state.arms`` are those with a colour of their own.
async function showCampaign(name, signal) {
  const state = { name, signal, known: 0, arms: [] };
  const top = header(state);
  const picks = new Plot("Picks over time", drawPicks);
  const progress = new Plot("Progress", drawProgress);
  const rewards = new Plot("Rewards over time", drawRewards);
  const parts = [beliefs(state), why(state), policies(state), trials(state)];
  const [course, ...below] = parts.map((part) => part.element);
  const charts = { always: true, element: picks.element, update: async () => {
    const series = await get(at(name, "series"), signal);
    state.arms = series.arms;
    picks.show(series);
    rewards.show(series);
    progress.show({ ...state.status, progress: series.progress });
  } };
  const overview = { always: true, update: async () => {
    state.status = await get(at(name, "status"), signal);
    top.show(state.status);
  } };
  await overview.update();
  main.append(top.element, h("div", { class: "grid" }, picks.element, progress.element, rewards.element, course), ...below);
  await charts.update();
  follow(state, [overview, charts, ...parts], top);
}

function header({ name, signal }) {
  const live = h("span", { class: "live", role: "status" }, "connecting");
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const when = h("span", { class: "quiet" });
  const tiles = h("dl", { class: "tiles" });
  const element = h("header", { class: "head" },
    h("p", { class: "crumbs" }, h("a", { href: "#/" }, "Campaigns"), " / "),
    h("div", { class: "title" }, h("h1", {}, name), live), problem, tiles, when);
  let shown = null;
  const tell = () => {
    if (!shown) return;
    when.textContent = `as of event ${count(shown.event)}, ${ago(shown.at)}`;
    when.title = time(shown.at);
  };
  repeat(10000, signal, tell);
  return {
    element,
    live: (on, why = "the service stopped") => {
      live.textContent = on ? "live" : `not live: ${why}; trying again`;
      live.classList.toggle("on", on);
      if (on) problem.hidden = true;
    },
    problem: (text) => {
      problem.textContent = text;
      problem.hidden = false;
    },
    show: (status) => {
      shown = status;
      tell();
      replace(tiles, tilesOf(status));
    },
  };
}

function tile(name, value, more, extra) {
  return h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, h("strong", {}, value), extra, h("small", {}, more)));
}

function tilesOf(status) {
  const { trials: counts, bounds, tolerance } = status;
  const all = Object.values(counts).reduce((a, b) => a + b, 0);
  const states = ["open", ...["cancelled", "expired", "retracted"].filter((state) => counts[state])];
  const about = tolerance === null
    ? "of contexts have a certain best arm" : `of contexts are within ${number(tolerance)}`;
  const asks = status.asks_left;
  return [
    tile("Trials", count(all), states.map((state) => `${count(counts[state])}\u00a0${state}`).join(" · ")),
    tile("Rewards", count(counts.told), `of ${plural(status.arms.length, "arm")}`),
    tile("Settled", percent(status.settled), `${about}; ${percent(status.wanted)} wanted`, meter(status)),
    tile("Asks left", left(status, "≈"),
      asks === null ? "no progress to go by yet" : asks === 0 ? "exploring may end" : "at the rate since half as many"),
    tile("Regret bound", number(bounds?.[1]), bounds ? `median; ${number(bounds[2])} at nine in ten, after ${plural(status.settled_at, "reward")}` : "not recorded yet"),
  ];
}

// Updates what is on the screen when the log grew.
function follow(state, parts, top) {
  const { signal } = state;
  let last = 0;
  let timer = null;
  const seen = new Set();
  const stale = new Set(parts);
  const round = async () => {
    timer = null;
    last = Date.now();
    for (const part of parts) {
      if (signal.aborted) return;
      if (!stale.has(part) || !(part.always || seen.has(part.element))) continue;
      stale.delete(part);
      try {
        // Beliefs of large campaigns are computed less often.
        if (await part.update() < state.known) {
          stale.add(part);
          setTimeout(soon, LATER);
        }
      } catch (error) {
        if (error.name === "AbortError") return;
        top.problem(error.message);
      }
    }
  };
  let running = Promise.resolve();
  const soon = () => {
    if (timer || document.hidden) return;
    timer = setTimeout(() => { running = running.then(round); }, Math.max(0, last + LEAST - Date.now()));
  };
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) entry.isIntersecting ? seen.add(entry.target) : seen.delete(entry.target);
    soon();
  }, { rootMargin: "200px" });
  for (const part of parts) if (part.element) watcher.observe(part.element);
  document.addEventListener("visibilitychange", soon, { signal });
  signal.addEventListener("abort", () => { watcher.disconnect(); clearTimeout(timer); });
  state.refresh = () => { parts.forEach((part) => stale.add(part)); soon(); };
  stream(state, top, ({ event }) => {
    if (event === state.known) return;
    state.known = event;
    state.refresh();
  });
}

async function stream(state, top, tell) {
  while (!state.signal.aborted) {
    try {
      await listen(at(state.name, "events"), state.signal, (said) => { top.live(true); tell(said); });
      top.live(false);
    } catch (error) {
      if (error.name === "AbortError") return;
      top.live(false, error instanceof Refused ? error.message : "the connection was lost");
    }
    await new Promise((done) => setTimeout(done, AGAIN));
  }
}

function shortContext(value) {
  const cells = Object.entries(value);
  if (cells.length <= FEW) return h("span", {}, context(value));
  const part = (some) => context(Array.isArray(value) ? some.map(([, cell]) => cell) : Object.fromEntries(some));
  return h("span", {}, part(cells.slice(0, FEW - 1)),
    h("details", {}, h("summary", {}, `and ${cells.length - FEW + 1} more`), part(cells.slice(FEW - 1))));
}

// The fields of a form for a context, and what reads them.
function contextForm({ columns, typical, named }, without = null) {
  const inputs = columns.map((column, place) => input(column, typical[named ? column.name : place]));
  const shown = columns.map((column, place) =>
    column.name !== without && field(column.name, inputs[place].element, inputs[place].hint));
  const read = () => {
    const cells = inputs.map((each) => each.read());
    return named ? Object.fromEntries(columns.map((column, place) => [column.name, cells[place]])) : cells;
  };
  return { fields: shown.filter(Boolean), read };
}

function input(column, value) {
  if (column.kind === "category") return levels(column, value);
  const date = column.kind === "date";
  const day = date && String(column.low ?? "").length === 10;
  const element = h("input", {
    type: date ? (day ? "date" : "text") : "number", step: date ? null : "any",
    required: !column.gaps, value: typeof value === "number" ? Number(value.toPrecision(6)) : value ?? "", placeholder: column.gaps ? "missing" : null,
    autocomplete: "off",
  });
  const shown = (each) => (date ? String(each).slice(0, 10) : number(each, 4));
  const seen = column.low === null ? "" : `${shown(column.low)} to ${shown(column.high)}`;
  const read = () => {
    if (element.value === "") return null;
    return date ? element.value : Number(element.value);
  };
  return { element, hint: column.kind === "cyclic" ? `a cycle, ${seen}` : `seen ${seen}`, read };
}

function levels(column, value) {
  const options = column.levels.map((level) => [level, level]);
  if (column.gaps) options.push([GAP, "missing"]);
  const element = select(options);
  element.value = value === null && column.gaps ? GAP : value;
  if (element.selectedIndex < 0) element.selectedIndex = 0;
  return { element, hint: null, read: () => (element.value === GAP ? null : element.value) };
}

// Keeps a form like the columns of the campaign; ``before`` is said before the first reward.
function follower(state, note, before, build) {
  let known = "";
  return async () => {
    const found = await get(at(state.name, "columns"), state.signal);
    const shape = JSON.stringify(found.columns.map(({ name, kind, levels }) => [name, kind, levels]));
    if (!found.columns.length) note.textContent = nothing(state.status, 1, before);
    else if (shape !== known) {
      known = shape;
      build(found);
    }
    return found;
  };
}

function beliefs(state) {
  const plot = new Plot("Belief along a column", drawCourse);
  const controls = h("div", { class: "controls" });
  const others = h("form", { class: "context" });
  const note = h("p", { class: "note" }, LOADING);
  plot.box.before(controls);
  plot.box.after(note);
  plot.details.hidden = true;
  let column = null;
  let form = null;

  const draw = async () => {
    const course = await post(at(state.name, "along"), { column, at: form.read() });
    plot.show({ course, shown: state.arms });
    const many = course.arms.length > 8 ? ` Of ${course.arms.length} arms, those that matter most.` : "";
    note.textContent = `${course.ordered ? "Lines" : "Dots"} are expected rewards, with their intervals, as of event ${count(course.event)}.${many}`;
    return course.event;
  };
  const follow = follower(state, note, "Before the first reward there is nothing to believe.", (columns) => {
    const names = columns.columns.map((each) => each.name);
    column = names.includes(column) ? column : names[0];
    const chooser = select(names.map((name) => [name, name]));
    chooser.value = column;
    const arrange = () => {
      form = contextForm(columns, column);
      others.replaceChildren(...form.fields);
    };
    arrange();
    chooser.addEventListener("change", () => {
      column = chooser.value;
      arrange();
      attempt(note, draw);
    });
    controls.replaceChildren(field("Column", chooser),
      ...(names.length > 1 ? [h("details", {}, h("summary", {}, "The other columns"), others)] : []));
  });
  others.addEventListener("change", () => others.reportValidity() && attempt(note, draw));
  others.addEventListener("submit", (event) => event.preventDefault());
  return {
    element: plot.element,
    update: async () => {
      const { columns, event } = await follow();
      return columns.length ? draw() : event;
    },
  };
}

function why(state) {
  const fields = h("div", { class: "fields" });
  const found = h("div", { class: "found", "aria-live": "polite" });
  const form = h("form", { class: "ask", hidden: true }, fields, h("button", { class: "primary" }, "Explain"));
  const note = h("p", { class: "note" }, LOADING);
  const element = card("Why this arm?", note, form, found);
  element.classList.add("why");
  let read = null;

  const explain = async (against = null) => {
    try {
      const answer = await post(at(state.name, "why"), { context: read(), against });
      found.replaceChildren(...shown(state, answer, explain));
    } catch (error) {
      found.replaceChildren(h("p", { class: "problem", role: "alert" }, error.message));
    }
  };
  const follow = follower(state, note, "Before the first reward there is nothing to explain.", (columns) => {
    const made = contextForm(columns);
    read = made.read;
    fields.replaceChildren(...made.fields);
    form.hidden = false;
    note.textContent = "Type a context; it begins with the most typical one that was seen.";
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    explain();
  });
  return { element, update: async () => (await follow()).event };
}

function shown(state, { event, ranking, explanation }, explain) {
  const low = Math.min(...ranking.map((each) => each.lower));
  const high = Math.max(...ranking.map((each) => each.upper));
  const rows = ranking.map((each) => [
    named(state, each.arm), number(each.mean), interval(each, low, high, lookOf(state.arms, each.arm.key).class),
    `${number(each.lower)} to ${number(each.upper)}`, number(each.bound)]);
  const [first] = ranking;
  return [
    h("p", { class: "answer" }, "The answer is ", named(state, first.arm), `, with a regret bound of ${number(first.bound)}.`),
    table("Arms, best first", ["arm", "mean", "interval", "from, to", "regret bound"], rows),
    ...(explanation ? difference(state, ranking, explanation, explain) : []),
    h("p", { class: "note" }, `As of event ${count(event)}.`),
  ];
}

function named(state, arm) {
  return h("span", { class: "arm" }, s("svg", { class: "swatch", width: 12, height: 12, "aria-hidden": "true" },
    s("rect", { class: lookOf(state.arms, arm.key).class, width: 12, height: 12, rx: 3 })), arm.text);
}

function interval({ mean, lower, upper }, low, high, look) {
  const x = (value) => 5 + ((value - low) / (high - low || 1)) * (BAR - 10);
  return s("svg", { class: "interval", width: BAR, height: 16, role: "img", "aria-label": `${number(lower)} to ${number(upper)}` },
    s("line", { class: "grid", x1: 0, x2: BAR, y1: 8, y2: 8 }),
    s("line", { class: `mean wide-mean ${look}`, x1: x(lower), x2: x(upper), y1: 8, y2: 8 }),
    s("circle", { class: look, cx: x(mean), cy: 8, r: 4 }));
}

function adds(part, most) {
  const middle = PART / 2;
  const size = (Math.abs(part) / (most || 1)) * (middle - 1);
  const bar = s("svg", { class: "part", width: PART, height: 12, "aria-hidden": "true" },
    s("line", { class: "axis", x1: middle, x2: middle, y1: 0, y2: 12 }),
    s("rect", { class: part < 0 ? "minus" : "plus", x: part < 0 ? middle - size : middle, y: 2, width: size, height: 8 }));
  return h("span", { class: "adds" }, bar, signed(part));
}

function difference(state, ranking, explanation, explain) {
  const { arm, against, trials, columns, rest, others } = explanation;
  const chooser = select(ranking.filter((each) => each.arm.key !== arm.key)
    .map((each) => [each.arm.key, each.arm.text]), { class: "against" });
  chooser.value = against.key;
  chooser.addEventListener("change", () =>
    explain(ranking.find((each) => each.arm.key === chooser.value).arm.label));
  const most = Math.max(...trials.map((each) => Math.abs(each.part)), Math.abs(rest));
  const rows = trials.map((each) => [
    each.trial === null ? "–" : String(each.trial), named(state, each.arm), h("span", { class: "where" }, shortContext(each.context)),
    number(each.reward), adds(each.part, most)]);
  if (others) rows.push([plural(others, "other"), "", "", "", adds(rest, most)]);
  const sorted = [...columns].sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  const largest = Math.max(...columns.map(([, part]) => Math.abs(part)));
  return [
    h("div", { class: "versus" }, field(`${arm.text} rather than`, chooser),
      h("p", {}, "Difference of expected rewards: ", h("strong", {}, `${signed(explanation.difference)} ± ${number(explanation.std, 2)}`))),
    h("div", { class: "reasons" },
      table("Trials that add most to the difference", ["trial", "arm", "context", "reward", "adds"], rows),
      table("Columns, compared with other contexts seen", ["column", "adds"],
        sorted.map(([name, part]) => [name, adds(part, largest)]))),
  ];
}

function policies(state) {
  const facts = h("dl", { class: "facts" });
  const warnings = h("ul", { class: "warnings" });
  const scored = h("p", { class: "note" }, LOADING);
  const list = h("tbody", {});
  const none = h("p", { class: "note" }, LOADING);
  const said = h("p", { class: "note", role: "status" });
  const box = wide("Frozen policies", ["name", "frozen", "download", "in use", "recalled"], list);
  const { form, setArms } = freezing(state, said);
  const element = h("div", { class: "grid" },
    h("section", { class: "card", "aria-label": "Score card" }, h("h2", {}, "If deployed now"), facts, warnings, scored),
    card("Policies", form, said, none, box));

  return {
    element,
    update: async () => {
      const { policies: found } = await get(at(state.name, "policies", "v1"), state.signal);
      none.hidden = found.length > 0;
      none.textContent = "No policy was frozen yet.";
      box.hidden = !found.length;
      replace(list, found.map((each) => frozen(state, each, said)).reverse());
      setArms((await get(at(state.name, "arms", "v1"), state.signal)).arms);
      const score = await get(at(state.name, "score"), state.signal);
      if (!score.rows.length) {
        scored.textContent = nothing(state.status, 2, "A score card needs two rewards.");
        return score.event;
      }
      facts.replaceChildren(...pairs([...score.rows, ["last tuning", score.tuning || "never"]]));
      warnings.replaceChildren(...score.warnings.map((text) => h("li", {}, text)));
      scored.textContent = `From ${count(score.rewards)} rewards, predicted leave-one-out, as of event ${count(score.event)}.`;
      return score.event;
    },
  };
}

function pairs(rows) {
  return rows.map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", {}, text)));
}

function freezing(state, said) {
  const name = h("input", { required: true, maxlength: 200, autocomplete: "off" });
  const fallback = select([["", "none"]]);
  const tolerance = h("input", { type: "number", step: "any", min: 0 });
  const button = h("button", { class: "primary" }, "Freeze");
  const form = h("form", { class: "freeze" }, field("Name", name), field("Fallback arm", fallback),
    field("Tolerance", tolerance), button);
  tolerance.disabled = true;
  fallback.addEventListener("change", () => { tolerance.disabled = fallback.value === ""; });
  let arms = [];
  const setArms = (labels) => {
    if (JSON.stringify(labels) === JSON.stringify(arms)) return;
    arms = labels;
    choose(fallback, [["", "none"], ...arms.map((label, place) => [String(place), labelText(label)])]);
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    said.textContent = "Freezing …";
    await attempt(said, async () => {
      const safe = fallback.value === "" ? null : arms[Number(fallback.value)];
      const bound = safe === null || tolerance.value === "" ? null : Number(tolerance.value);
      const made = await post(at(state.name, "policies", "v1"),
        { name: name.value, fallback: safe, tolerance: bound, key: key() });
      said.textContent = `“${made.name}” is frozen, and rests on the log up to event ${count(made.event)}.`;
      form.reset();
      tolerance.disabled = true;
      state.refresh();
    });
    button.disabled = false;
  });
  return { form, setArms };
}

function labelText(label) {
  return label !== null && typeof label === "object" ? `(${label.tuple.map(labelText).join(", ")})` : String(label);
}

function frozen(state, policy, said) {
  const file = ([path, ending, shown]) => h("button", {
    type: "button", class: "link", "data-key": `${policy.name} ${path}`, "aria-label": `${policy.name} as ${shown}`,
    onclick: () => {
      said.textContent = "";
      attempt(said, () => download(at(state.name, `policies/${encodeURIComponent(policy.name)}/${path}`, "v1"), `${policy.name}.${ending}`));
    } }, shown);
  const watch = h("a", { href: `#/campaigns/${encodeURIComponent(state.name)}/policies/${encodeURIComponent(policy.name)}`,
    "data-key": `${policy.name} watch`, "aria-label": `Watch ${policy.name}` }, "watch");
  const recalled = policy.recalled.length
    ? h("span", { class: "flag" }, `rests on trial${policy.recalled.length > 1 ? "s" : ""} ${policy.recalled.join(", ")}, changed since`)
    : "no";
  return h("tr", {}, h("th", { scope: "row" }, policy.name),
    h("td", { class: "when", title: `event ${policy.event}, log ${policy.log}` }, time(policy.at)),
    h("td", { class: "files" }, FILES.map(file)), h("td", {}, watch), h("td", {}, recalled));
}

// The watch over a policy.
async function showWatch(name, policy, signal) {
  const path = at(name, `policies/${encodeURIComponent(policy)}/watch`, "v1");
  const said = h("p", { class: "verdict", role: "status" });
  const tiles = h("dl", { class: "tiles" });
  const shift = new Plot("Shift", drawShift);
  const doubts = new Plot("Regret where it is asked", drawDoubts);
  const [arms, columns, audits] = [1, 2, 3].map(() => h("div", {}));
  const look = async () => {
    const { watch, level } = await get(path, signal);
    said.classList.toggle("flag", Boolean(watch.alarm || watch.drift));
    said.textContent = [watch.alarm, watch.drift].filter(Boolean).map(({ advice }) => `Alarm: ${advice}.`).join(" ")
      || "No alarm.";
    replace(tiles, watchTiles(watch, level));
    shift.show({ ...watch, level });
    doubts.show(watch);
    const shares = ([now, then]) => [percent(now, 1), percent(then, 1)];
    replace(arms, table("Decisions by arm", ["arm", "now", "in the log"], watch.decisions.map(([arm, pair]) => [labelText(arm), ...shares(pair)])));
    replace(columns, table("Columns that moved most", ["column", "moved by, in std", "outside"],
      watch.moved.slice(0, MOVED).map(({ column, by, outside }) => [column, signed(by), percent(outside, 1)])));
    replace(audits, auditFacts(watch, level));
  };
  await look();
  main.append(
    h("header", { class: "head" },
      h("p", { class: "crumbs" }, h("a", { href: "#/" }, "Campaigns"), " / ", h("a", { href: `#/campaigns/${encodeURIComponent(name)}` }, name), " / "),
      h("div", { class: "title" }, h("h1", {}, policy)), said, tiles),
    h("div", { class: "grid" }, shift.element, doubts.element, card("Traffic", arms, columns), card("Audits", audits)));
  repeat(WATCHED, signal, () => document.hidden || look().catch(() => {}));
}

function watchTiles(watch, level) {
  const beside = ([now, then], text) => [text(now), `${text(then)} in the log`];
  return [
    tile("Rows", count(watch.rows), watch.since ? `averages since row ${count(watch.since)}` : "since the watch began"),
    tile("Evidence of a shift", number(watch.evidence), `alarm at ${number(level)}`),
    tile("Outside", ...beside(watch.outside, (share) => percent(share, 1))),
    tile("Expected regret", ...beside(watch.expected_regret, (value) => number(value))),
    tile("Audits", count(watch.audits), `evidence of other rewards ${number(watch.drift_evidence)}`),
  ];
}

function auditFacts({ audits, value, gain, drift_evidence: evidence, drift }, level) {
  if (!audits) return h("p", { class: "empty" }, "No reward was measured yet: only audits show that rewards have changed.");
  const between = (found) => (found === null ? "unknown" : `${number(found[0])} (${number(found[1])} to ${number(found[2])})`);
  const facts = [
    ["audits", count(audits)], ["value of the policy", between(value)], ["gain over the best single arm", between(gain)],
    ["evidence of other rewards", `${number(evidence)}, alarm at ${number(level)}`], ["rewards have changed", drift ? drift.advice : "no alarm"],
  ];
  return h("dl", { class: "facts" }, pairs(facts));
}

function trials(state) {
  const body = h("tbody", {});
  const which = select([["", "any"], ...STATES.map((each) => [each, each])]);
  const arm = select([["", "any"]]);
  const text = h("input", { type: "search", maxlength: 200, placeholder: "arm, context or reason" });
  const newer = h("button", { type: "button" }, "Newer");
  const older = h("button", { type: "button" }, "Older");
  const said = h("p", { class: "note", role: "status" });
  const filters = h("form", { class: "filters", role: "search" },
    field("State", which), field("Arm", arm), field("Text", text));
  const element = card("Trials", filters,
    wide("Trials, the newest first", HEADS, body, { class: "trials" }, ["reward"], "wide scroll"),
    h("div", { class: "pages" }, newer, older, said));
  let pages = [null]; // what to give as ``before``, page by page
  let next = null;

  const look = async () => {
    const query = new URLSearchParams();
    const given = { state: which.value, arm: arm.value, text: text.value.trim(), before: pages.at(-1) };
    for (const [name, value] of Object.entries(given)) if (value) query.set(name, value);
    const found = await get(at(state.name, `trials?${query}`), state.signal);
    next = found.next;
    newer.disabled = pages.length === 1;
    older.disabled = next === null;
    replace(body, found.trials.map((trial) => row(state, trial)));
    const numbers = found.trials.map((trial) => trial.id);
    said.textContent = numbers.length ? `Trials ${numbers.at(-1)} to ${numbers[0]}` : "No such trials.";
  };
  const again = (event) => {
    event?.preventDefault();
    pages = [null];
    attempt(said, look);
  };
  let timer = null;
  text.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(again, TYPING);
  });
  which.addEventListener("change", again);
  arm.addEventListener("change", again);
  filters.addEventListener("submit", again);
  const turn = (button, work) => button.addEventListener("click", () => { work(); attempt(said, look); });
  turn(older, () => pages.push(next));
  turn(newer, () => pages.pop());
  return {
    element,
    update: async () => {
      const { arms } = state.status;
      if (arms.length + 1 !== arm.options.length) choose(arm, [["", "any"], ...arms.map((each) => [each.key, each.text])]);
      await look();
    },
  };
}

function row(state, trial) {
  const act = (kind) => h("button", {
    type: "button", class: "link", "data-key": `${kind} ${trial.id}`, "aria-label": `${kind} trial ${trial.id}`,
    onclick: () => change(state, trial, kind) }, kind);
  const told = trial.told_by !== null;
  return h("tr", { class: trial.state },
    h("th", { scope: "row", class: "number" }, trial.id),
    h("td", {}, h("span", { class: `state ${trial.state}` }, trial.state)),
    h("td", {}, trial.text),
    h("td", { class: "where" }, shortContext(trial.context)),
    h("td", { class: "number" }, number(trial.reward, 4)),
    h("td", {}, time(trial.told)),
    h("td", {}, trial.by || ""),
    h("td", { class: "reason" }, trial.why || ""),
    h("td", { class: "act" }, told && act("correct"), told && trial.state !== "retracted" && act("retract")));
}

function change(state, trial, kind) {
  const retract = kind === "retract";
  const reward = h("input", { type: "number", step: "any", required: true, value: trial.reward });
  const why = h("textarea", { required: true, rows: 2, maxlength: 2000 });
  const said = h("div", { role: "status" });
  const close = h("button", { type: "button", value: "cancel" }, "Cancel");
  const go = h("button", { class: retract ? "danger" : "primary" }, retract ? "Retract the reward" : "Correct the reward");
  const title = `${retract ? "Retract" : "Correct"} trial ${trial.id}`;
  const form = h("form", { method: "dialog" },
    h("h2", {}, title),
    h("p", {}, `${trial.text} at ${context(trial.context)} gave ${number(trial.reward, 4)}.`),
    h("p", { class: "note" }, retract
      ? "The reward will count as never told. The log keeps what happened, and your reason."
      : "The new reward will count as told in the first place. The log keeps both, and your reason."),
    resting(state, trial),
    retract ? null : field("Right reward", reward),
    field("Reason", why),
    said,
    h("div", { class: "buttons" }, close, go));
  const once = key(); // sent again after an error, it is still the same change
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    go.disabled = true;
    said.replaceChildren(h("p", { class: "note" }, "The learner goes through the log again …"));
    try {
      const body = { why: why.value, key: once, ...(retract ? {} : { reward: Number(reward.value) }) };
      const recall = await post(at(state.name, `trials/${trial.id}/${kind}`, "v1"), body);
      for (const each of [reward, why]) each.disabled = true;
      go.remove();
      close.textContent = "Close";
      said.replaceChildren(h("p", {}, retract ? "The reward is retracted." : "The reward is corrected."), recalled(recall));
      close.focus();
      state.refresh();
    } catch (error) {
      go.disabled = false;
      said.replaceChildren(h("p", { class: "problem", role: "alert" }, error.message));
    }
  });
  const dialog = openDialog(title, form, () => find([`${kind} ${trial.id}`, `correct ${trial.id}`])?.focus());
  close.addEventListener("click", () => dialog.close());
  (retract ? why : reward).focus();
}

// The frozen policies that rest on a trial, asked for meanwhile.
function resting(state, trial) {
  const said = h("p", { class: "flag", hidden: true });
  get(at(state.name, "policies", "v1"), state.signal).then(({ policies }) => {
    const names = policies.filter((each) => each.event >= trial.told_by).map((each) => `“${each.name}”`);
    said.textContent = `Policies that rest on it: ${names.join(", ")}.`;
    said.hidden = !names.length;
  }).catch(() => {}); // it is said afterwards, too
  return said;
}

function recalled({ policies }) {
  if (!policies.length) return h("p", {}, "No frozen policy rests on it.");
  return table("Frozen policies that rest on it", ["policy", "decisions that change"],
    policies.map((each) => [each.policy, `${each.changed} of ${each.contexts} contexts`]));
}

route();
