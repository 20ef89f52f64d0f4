// The dialog that retracts or corrects a reward, with a reason, and says what that means.

import { at, get, key, post } from "./api.js";
import { field, h, table } from "./dom.js";
import { context, number } from "./format.js";

export function change(state, trial, kind) {
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
  const dialog = h("dialog", { "aria-label": title }, form);
  const once = key(); // sent again after an error, it is still the same change
  close.addEventListener("click", () => dialog.close());
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
  dialog.addEventListener("close", () => {
    dialog.remove();
    const wanted = [`${kind} ${trial.id}`, `correct ${trial.id}`];
    [...document.querySelectorAll("[data-key]")].find((each) => wanted.includes(each.dataset.key))?.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  (retract ? why : reward).focus();
}

// The frozen policies that rest on the trial; they are asked for while the dialog is open.
function resting(state, trial) {
  const said = h("p", { class: "flag", hidden: true });
  get(at(state.name, "policies", "v1"), state.signal).then(({ policies }) => {
    const names = policies.filter((each) => each.event >= trial.told_by).map((each) => `“${each.name}”`);
    said.textContent = `Policies that rest on it: ${names.join(", ")}.`;
    said.hidden = !names.length;
  }).catch(() => {}); // what was changed is said afterwards, too
  return said;
}

function recalled({ policies }) {
  if (!policies.length) return h("p", {}, "No frozen policy rests on it.");
  return table("Frozen policies that rest on it", ["policy", "decisions that change"],
    policies.map((each) => [each.policy, `${each.changed} of ${each.contexts} contexts`]));
}
