// The page: which campaign is shown, in which colours, and when each part is fetched again.

import { Refused, ago, at, count, get, h, listen, number, percent, plural, replace, time, wide } from "./base.js";
import { beliefs, trials, why } from "./parts.js";
import { Plot, drawPicks, drawProgress, drawRewards } from "./plots.js";
import { policies } from "./policies.js";

const THEMES = ["auto", "light", "dark"];
const LEAST = 1000; // milliseconds between two rounds of requests
const LATER = 4000; // milliseconds until what was not new yet is asked for again
const AGAIN = 3000; // milliseconds until a lost stream is opened again
const LIST = 5000; // milliseconds between updates of the list
const HEADS = ["campaign", "trials", "open", "settled", "asks left", "last event"];

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
  const [, found] = location.hash.match(/^#\/campaigns\/(.+)$/) || [];
  try {
    return found === undefined ? null : decodeURIComponent(found);
  } catch {
    return null;
  }
}

function route() {
  if (location.hash === "#main") return;
  leave?.abort();
  leave = new AbortController();
  const name = wanted();
  document.title = name === null ? "contextgap" : `${name} · contextgap`;
  main.replaceChildren();
  window.scrollTo(0, 0);
  const shown = name === null ? showList(leave.signal) : showCampaign(name, leave.signal);
  shown.catch((error) => {
    if (error.name !== "AbortError") main.replaceChildren(h("p", { class: "problem", role: "alert" }, error.message));
  });
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", route);
route();

// Does something now and then, as long as something is shown.
function repeat(milliseconds, signal, work) {
  const timer = setInterval(work, milliseconds);
  signal.addEventListener("abort", () => clearInterval(timer));
}

// All campaigns, the last used first.
async function showList(signal) {
  const body = h("tbody", {});
  const empty = h("p", { class: "empty", hidden: true }, "There is no campaign yet: ",
    h("code", {}, "contextgap campaign create"), " begins one.");
  const box = wide("All campaigns", HEADS, body, { class: "list" }, HEADS.slice(1));
  main.append(h("h1", {}, "Campaigns"), h("section", { class: "card" }, box, empty));
  const look = async () => {
    const { campaigns } = await get("page/campaigns", signal);
    empty.hidden = campaigns.length > 0;
    box.hidden = campaigns.length === 0;
    replace(body, campaigns.map(row));
  };
  await look();
  repeat(LIST, signal, () => document.hidden || look().catch(() => {}));
}

function row(campaign) {
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

// The head: the name, whether it is followed live, and the numbers that matter most.
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

// Updates what is on the screen whenever the log grew, at most once a second.
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
        // What is believed of large campaigns is computed less often; it is asked for until it is new.
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
