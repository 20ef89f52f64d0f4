// The score card, frozen policies, and a form that freezes one.

import {
  LOADING, at, attempt, card, choose, count, download, field, get, h, key, nothing, post, replace, select, time, wide,
} from "./base.js";

const FILES = [["cgap", "cgap", ".cgap"], ["onnx", "onnx", "ONNX"], ["c", "zip", "C"]];

export function policies(state) {
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
      replace(list, found.map((each) => row(state, each, said)).reverse());
      setArms((await get(at(state.name, "arms", "v1"), state.signal)).arms);
      const score = await get(at(state.name, "score"), state.signal);
      if (!score.rows.length) {
        scored.textContent = nothing(state.status, 2, "A score card needs two rewards.");
        return score.event;
      }
      facts.replaceChildren(...[...score.rows, ["last tuning", score.tuning || "never"]]
        .map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", {}, text))));
      warnings.replaceChildren(...score.warnings.map((text) => h("li", {}, text)));
      scored.textContent = `From ${count(score.rewards)} rewards, predicted leave-one-out, as of event ${count(score.event)}.`;
      return score.event;
    },
  };
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
    choose(fallback, [["", "none"], ...arms.map((label, place) => [String(place), text(label)])]);
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

function text(label) {
  return label !== null && typeof label === "object" ? `(${label.tuple.map(text).join(", ")})` : String(label);
}

function row(state, policy, said) {
  const file = ([path, ending, shown]) => h("button", {
    type: "button", class: "link", "data-key": `${policy.name} ${path}`, "aria-label": `${policy.name} as ${shown}`,
    onclick: () => {
      said.textContent = "";
      attempt(said, () => download(at(state.name, `policies/${encodeURIComponent(policy.name)}/${path}`, "v1"), `${policy.name}.${ending}`));
    } }, shown);
  const watch = h("button", { type: "button", class: "link", "data-key": `${policy.name} watch`,
    "aria-label": `Watch ${policy.name}`,
    onclick: async () => {
      said.textContent = LOADING;
      try {
        const found = await get(at(state.name, `policies/${encodeURIComponent(policy.name)}/watch`, "v1"), state.signal);
        replace(said, [h("strong", {}, policy.name), h("pre", { tabindex: "0" }, found.text)]);
      } catch (error) {
        said.textContent = error.message;
      }
    } }, "watch");
  const recalled = policy.recalled.length
    ? h("span", { class: "flag" }, `rests on trial${policy.recalled.length > 1 ? "s" : ""} ${policy.recalled.join(", ")}, changed since`)
    : "no";
  return h("tr", {}, h("th", { scope: "row" }, policy.name),
    h("td", { class: "when", title: `event ${policy.event}, log ${policy.log}` }, time(policy.at)),
    h("td", { class: "files" }, FILES.map(file)), h("td", {}, watch), h("td", {}, recalled));
}
