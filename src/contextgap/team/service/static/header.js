// The head of a campaign: its name, whether it is followed live, and the numbers that matter most.

import { h, replace } from "./dom.js";
import { ago, count, number, percent, plural, time } from "./format.js";

export function header({ name, signal }) {
  const live = h("span", { class: "live", role: "status" }, "connecting");
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const when = h("span", { class: "quiet" });
  const tiles = h("dl", { class: "tiles" });
  const element = h("header", { class: "head" },
    h("p", { class: "crumbs" }, h("a", { href: "#/" }, "Campaigns"), " / "),
    h("div", { class: "title" }, h("h1", {}, name), live), problem, tiles, when);
  let at = null;
  const tell = (status) => {
    when.textContent = `as of event ${count(status.event)}, ${ago(status.at)}`;
    when.title = time(status.at);
  };
  const timer = setInterval(() => at && tell(at), 10000);
  signal.addEventListener("abort", () => clearInterval(timer));
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
      at = status;
      tell(status);
      replace(tiles, tilesOf(status));
    },
  };
}

function tile(name, value, more, extra) {
  return h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, h("strong", {}, value), extra, h("small", {}, more)));
}

function tilesOf(status) {
  const { trials, bounds, tolerance } = status;
  const all = Object.values(trials).reduce((a, b) => a + b, 0);
  const others = ["cancelled", "expired", "retracted"].filter((state) => trials[state])
    .map((state) => `${count(trials[state])}\u00a0${state}`);
  const left = status.asks_left;
  const about = tolerance === null
    ? "of contexts have a certain best arm" : `of contexts are within ${number(tolerance)}`;
  return [
    tile("Trials", count(all), [`${count(trials.open)}\u00a0open`, ...others].join(" · ")),
    tile("Rewards", count(trials.told), `of ${plural(status.arms.length, "arm")}`),
    tile("Settled", percent(status.settled), `${about}; ${percent(status.wanted)} wanted`,
      h("meter", { min: 0, max: 1, value: status.settled ?? 0, "aria-label": "settled share" })),
    tile("Asks left", left === null ? "unknown" : left === 0 ? "none" : `≈ ${count(left)}`,
      left === null ? "no progress to go by yet" : left === 0 ? "exploring may end" : "at the rate since half as many"),
    tile("Regret bound", number(bounds?.[1]), bounds ? `median; ${number(bounds[2])} at nine in ten, after ${plural(status.settled_at, "reward")}` : "not recorded yet"),
  ];
}
