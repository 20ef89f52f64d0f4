// "Why this arm?": the arms at a context that is typed in, and what makes the difference.

import { at, get, post } from "./api.js";
import { lookOf } from "./charts.js";
import { contextForm, shortContext } from "./context.js";
import { field, h, s, select, table } from "./dom.js";
import { LOADING, count, nothing, number, plural, signed } from "./format.js";

const BAR = 150; // pixels of an interval's bar
const PART = 90; // pixels of the bar of what something adds

export function why(state) {
  const fields = h("div", { class: "fields" });
  const found = h("div", { class: "found", "aria-live": "polite" });
  const button = h("button", { class: "primary" }, "Explain");
  const form = h("form", { class: "ask", hidden: true }, fields, button);
  const note = h("p", { class: "note" }, LOADING);
  const element = h("section", { class: "card why", "aria-label": "Why this arm?" },
    h("h2", {}, "Why this arm?"), note, form, found);
  let known = "";
  let read = null;

  const explain = async (against = null) => {
    try {
      const answer = await post(at(state.name, "why"), { context: read(), against });
      found.replaceChildren(...shown(state, answer, explain));
    } catch (error) {
      found.replaceChildren(h("p", { class: "problem", role: "alert" }, error.message));
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    explain();
  });
  return {
    element,
    update: async () => {
      const columns = await get(at(state.name, "columns"), state.signal);
      const shape = JSON.stringify(columns.columns.map(({ name, kind, levels }) => [name, kind, levels]));
      if (!columns.columns.length) note.textContent = nothing(state.status, 1, "Before the first reward there is nothing to explain.");
      if (!columns.columns.length || shape === known) return columns.event;
      known = shape;
      const made = contextForm(columns);
      read = made.read;
      fields.replaceChildren(...made.fields);
      form.hidden = false;
      note.textContent = "Type a context; it begins with the most typical one that was seen.";
      return columns.event;
    },
  };
}

function shown(state, { event, ranking, explanation }, explain) {
  const low = Math.min(...ranking.map((each) => each.lower));
  const high = Math.max(...ranking.map((each) => each.upper));
  const rows = ranking.map((each) => [
    named(state, each.arm), number(each.mean), interval(each, low, high, lookOf(state.arms, each.arm.key).class),
    `${number(each.lower)} to ${number(each.upper)}`, number(each.bound)]);
  const [first] = ranking;
  const parts = [
    h("p", { class: "answer" }, "The answer is ", named(state, first.arm), `, with a regret bound of ${number(first.bound)}.`),
    table("Arms, best first", ["arm", "mean", "interval", "from, to", "regret bound"], rows),
  ];
  if (explanation) parts.push(...difference(state, ranking, explanation, explain));
  parts.push(h("p", { class: "note" }, `As of event ${count(event)}.`));
  return parts;
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
  return s("svg", { class: "part", width: PART, height: 12, "aria-hidden": "true" },
    s("line", { class: "axis", x1: middle, x2: middle, y1: 0, y2: 12 }),
    s("rect", { class: part < 0 ? "minus" : "plus", x: part < 0 ? middle - size : middle, y: 2, width: size, height: 8 }));
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
    number(each.reward), h("span", { class: "adds" }, adds(each.part, most), signed(each.part))]);
  if (others) rows.push([plural(others, "other"), "", "", "", h("span", { class: "adds" }, adds(rest, most), signed(rest))]);
  const largest = Math.max(...columns.map(([, part]) => Math.abs(part)));
  const sorted = [...columns].sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  return [
    h("div", { class: "versus" }, field(`${arm.text} rather than`, chooser),
      h("p", {}, "Difference of expected rewards: ", h("strong", {}, `${signed(explanation.difference)} ± ${number(explanation.std, 2)}`))),
    h("div", { class: "reasons" },
      table("Trials that add most to the difference", ["trial", "arm", "context", "reward", "adds"], rows),
      table("Columns, compared with other contexts seen", ["column", "adds"],
        sorted.map(([name, part]) => [name, h("span", { class: "adds" }, adds(part, largest), signed(part))]))),
  ];
}
