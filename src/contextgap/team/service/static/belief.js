// Beliefs along a column that is chosen, everything else being as at one context.

import { at, get, post } from "./api.js";
import { Plot } from "./charts.js";
import { contextForm } from "./context.js";
import { field, h, select } from "./dom.js";
import { LOADING, count, nothing } from "./format.js";
import { drawCourse } from "./plots.js";

export function beliefs(state) {
  const plot = new Plot("Belief along a column", drawCourse);
  const controls = h("div", { class: "controls" });
  const others = h("form", { class: "context" });
  const note = h("p", { class: "note" }, LOADING);
  plot.box.before(controls);
  plot.box.after(note);
  plot.details.hidden = true;
  let known = "";
  let column = null;
  let form = null;

  const draw = async () => {
    const course = await post(at(state.name, "along"), { column, at: form.read() });
    plot.show({ course, shown: state.arms });
    const many = course.arms.length > 8 ? ` Of ${course.arms.length} arms, those that matter most.` : "";
    note.textContent = `${course.ordered ? "Lines" : "Dots"} are expected rewards, with their intervals, as of event ${count(course.event)}.${many}`;
    return course.event;
  };
  const problem = (error) => { note.textContent = error.message; };
  const build = (columns) => {
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
      draw().catch(problem);
    });
    controls.replaceChildren(field("Column", chooser),
      ...(names.length > 1 ? [h("details", {}, h("summary", {}, "The other columns"), others)] : []));
  };
  others.addEventListener("change", () => others.reportValidity() && draw().catch(problem));
  others.addEventListener("submit", (event) => event.preventDefault());

  return {
    element: plot.element,
    update: async () => {
      const columns = await get(at(state.name, "columns"), state.signal);
      if (!columns.columns.length) {
        note.textContent = nothing(state.status, 1, "Before the first reward there is nothing to believe.");
        return columns.event;
      }
      const shape = JSON.stringify(columns.columns.map(({ name, kind, levels }) => [name, kind, levels]));
      if (shape !== known) {
        known = shape;
        build(columns);
      }
      return draw();
    },
  };
}
