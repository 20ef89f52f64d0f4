// The table of trials: found by the server, fifty at a time, the newest first.

import { at, get } from "./api.js";
import { change } from "./change.js";
import { shortContext } from "./context.js";
import { field, h, replace, select } from "./dom.js";
import { number, time } from "./format.js";

const STATES = ["open", "told", "cancelled", "expired", "retracted"];
const HEADS = ["trial", "state", "arm", "context", "reward", "told", "by", "reason", "change"];
const TYPING = 250; // milliseconds after the last key

export function trials(state) {
  const body = h("tbody");
  const which = select([["", "any"], ...STATES.map((each) => [each, each])]);
  const arm = select([["", "any"]]);
  const text = h("input", { type: "search", maxlength: 200, placeholder: "arm, context or reason" });
  const newer = h("button", { type: "button" }, "Newer");
  const older = h("button", { type: "button" }, "Older");
  const said = h("p", { class: "note", role: "status" });
  const filters = h("form", { class: "filters", role: "search" },
    field("State", which), field("Arm", arm), field("Text", text));
  const element = h("section", { class: "card", "aria-label": "Trials" }, h("h2", {}, "Trials"), filters,
    h("div", { class: "wide scroll", tabindex: "0", role: "region", "aria-label": "Trials, the newest first" },
      h("table", { class: "trials" }, h("caption", {}, "Trials, the newest first"), h("thead", {}, h("tr", {},
        HEADS.map((head) => h("th", { scope: "col", class: head === "reward" ? "number" : null }, head)))), body)),
    h("div", { class: "pages" }, newer, older, said));
  let pages = [null]; // what to give as ``before``, page by page
  let next = null;

  const look = async () => {
    const query = new URLSearchParams();
    if (which.value) query.set("state", which.value);
    if (arm.value) query.set("arm", arm.value);
    if (text.value.trim()) query.set("text", text.value.trim());
    if (pages.at(-1) !== null) query.set("before", pages.at(-1));
    const found = await get(at(state.name, `trials?${query}`), state.signal);
    next = found.next;
    newer.disabled = pages.length === 1;
    older.disabled = next === null;
    replace(body, found.trials.map((trial) => row(state, trial)));
    const numbers = found.trials.map((trial) => trial.id);
    said.textContent = numbers.length ? `Trials ${numbers.at(-1)} to ${numbers[0]}` : "No such trials.";
  };
  const quietly = () => look().catch((error) => { if (error.name !== "AbortError") said.textContent = error.message; });
  const again = () => {
    pages = [null];
    quietly();
  };
  let timer = null;
  text.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(again, TYPING);
  });
  which.addEventListener("change", again);
  arm.addEventListener("change", again);
  filters.addEventListener("submit", (event) => {
    event.preventDefault();
    again();
  });
  older.addEventListener("click", () => {
    pages.push(next);
    quietly();
  });
  newer.addEventListener("click", () => {
    pages.pop();
    quietly();
  });
  return {
    element,
    update: async () => {
      const chosen = arm.value;
      const arms = [["", "any"], ...state.status.arms.map((each) => [each.key, each.text])];
      if (arms.length !== arm.options.length) {
        arm.replaceChildren(...arms.map(([value, shown]) => h("option", { value }, shown)));
        arm.value = chosen;
      }
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
