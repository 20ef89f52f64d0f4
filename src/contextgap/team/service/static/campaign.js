// One campaign: its parts, and when each is fetched again.

import { Refused, at, get, listen } from "./api.js";
import { beliefs } from "./belief.js";
import { Plot } from "./charts.js";
import { h } from "./dom.js";
import { drawPicks, drawProgress, drawRewards } from "./plots.js";
import { policies } from "./policies.js";
import { header } from "./header.js";
import { trials } from "./trials.js";
import { why } from "./why.js";

const LEAST = 1000; // milliseconds between two rounds of requests
const LATER = 4000; // milliseconds until what was not new yet is asked for again
const AGAIN = 3000; // milliseconds until a lost stream is opened again

export async function showCampaign(main, name, signal) {
  const state = { name, signal, known: 0, arms: [] }; // arms: those with a colour of their own
  const top = header(state);
  const picks = new Plot("Picks over time", drawPicks);
  const progress = new Plot("Progress", drawProgress);
  const rewards = new Plot("Rewards over time", drawRewards);
  const parts = [beliefs(state), why(state), policies(state), trials(state)];
  const [course, reasons, frozen, list] = parts;
  const charts = {
    element: picks.element,
    update: async () => {
      const [series, status] = [await get(at(name, "series"), signal), state.status];
      state.arms = series.arms;
      picks.show(series);
      rewards.show(series);
      progress.show({ progress: series.progress, wanted: status.wanted, tolerance: status.tolerance });
    },
  };
  const overview = { always: true, update: async () => {
    state.status = await get(at(name, "status"), signal);
    top.show(state.status);
  } };
  await overview.update();
  main.append(top.element, h("div", { class: "grid" }, picks.element, progress.element, rewards.element, course.element),
    reasons.element, frozen.element, list.element);
  await charts.update();
  await follow(state, [overview, { ...charts, always: true }, ...parts], top);
}

// Updates what is on the screen whenever the log grew, at most once a second.
async function follow(state, parts, top) {
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
        const event = await part.update();
        if (event < state.known) later(part);
      } catch (error) {
        if (error.name === "AbortError") return;
        top.problem(error.message);
      }
    }
  };
  // What is believed of large campaigns is looked at less often; it is asked for until it is new.
  const later = (part) => {
    stale.add(part);
    setTimeout(soon, LATER);
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
