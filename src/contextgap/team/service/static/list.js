// All campaigns, the last used first.

import { get } from "./api.js";
import { h, replace } from "./dom.js";
import { ago, count, percent, time } from "./format.js";

const AGAIN = 5000; // milliseconds between updates of the list

const HEADS = ["campaign", "trials", "open", "settled", "asks left", "last event"];

export async function showList(main, signal) {
  const body = h("tbody");
  const empty = h("p", { class: "empty", hidden: true }, "There is no campaign yet: ",
    h("code", {}, "contextgap campaign create"), " begins one.");
  const box = h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "All campaigns" },
    h("table", { class: "list" }, h("caption", {}, "All campaigns"),
      h("thead", {}, h("tr", {}, HEADS.map((head, place) =>
        h("th", { scope: "col", class: place ? "number" : null }, head)))), body));
  main.append(h("h1", {}, "Campaigns"), h("section", { class: "card" }, box, empty));
  const look = async () => {
    const { campaigns } = await get("page/campaigns", signal);
    empty.hidden = campaigns.length > 0;
    box.hidden = campaigns.length === 0;
    replace(body, campaigns.map(row));
  };
  await look();
  const timer = setInterval(() => document.hidden || look().catch(() => {}), AGAIN);
  signal.addEventListener("abort", () => clearInterval(timer));
}

function row(campaign) {
  const where = `#/campaigns/${encodeURIComponent(campaign.name)}`;
  const left = campaign.asks_left;
  return h("tr", {},
    h("th", { scope: "row" }, h("a", { href: where, "data-key": campaign.name }, campaign.name)),
    h("td", { class: "number" }, count(campaign.trials)),
    h("td", { class: "number" }, count(campaign.open)),
    h("td", { class: "number" }, h("meter", {
      min: 0, max: 1, value: campaign.settled ?? 0, "aria-label": "settled share" }), " ", percent(campaign.settled)),
    h("td", { class: "number" }, left === null ? "unknown" : left === 0 ? "none" : `about ${count(left)}`),
    h("td", { class: "number", title: time(campaign.at) }, ago(campaign.at)));
}
