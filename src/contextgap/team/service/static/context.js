// A form for one context, made from what the columns hold.

import { field, h, select } from "./dom.js";
import { context, number } from "./format.js";

const GAP = "\u0000gap";

const FEW = 6; // cells, up to which all are shown at once

// A context in words; of many cells, the others can be unfolded.
export function shortContext(value) {
  const cells = Object.entries(value);
  if (cells.length <= FEW) return h("span", {}, context(value));
  const part = (some) => context(Array.isArray(value) ? some.map(([, cell]) => cell) : Object.fromEntries(some));
  return h("span", {}, part(cells.slice(0, FEW - 1)),
    h("details", {}, h("summary", {}, `and ${cells.length - FEW + 1} more`), part(cells.slice(FEW - 1))));
}

// Returns the form's fields, and a function that reads the context from them.
export function contextForm({ columns, typical, named }, without = null) {
  const inputs = columns.map((column, place) => input(column, named ? typical[column.name] : typical[place]));
  const shown = columns.map((column, place) =>
    column.name === without ? null : field(column.name, inputs[place].element, inputs[place].hint));
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
