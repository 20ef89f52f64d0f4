// Makes elements. Text goes in as text only, so that no name can become markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

let made = 0;

export function fresh(prefix) {
  made += 1;
  return `${prefix}-${made}`;
}

export function field(label, control, hint) {
  control.id ||= fresh("field");
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control,
    hint && h("small", {}, hint));
}

export function select(options, attributes = {}) {
  return h("select", attributes,
    options.map(([value, text]) => h("option", { value }, text)));
}

// Replaces what is in an element, and keeps the focus on what has the same data-key.
export function replace(element, ...children) {
  const key = element.contains(document.activeElement)
    ? document.activeElement.dataset.key : undefined;
  element.replaceChildren(...children.flat().filter(Boolean));
  if (key !== undefined) {
    const again = [...element.querySelectorAll("[data-key]")].find((e) => e.dataset.key === key);
    if (again) again.focus({ preventScroll: true });
  }
}

export function table(caption, heads, rows, attributes = {}) {
  const cells = (row) => row.map((cell, place) =>
    h(place === 0 ? "th" : "td",
      { scope: place === 0 ? "row" : null, class: typeof cell === "number" ? "number" : null },
      cell instanceof Node ? cell : String(cell ?? "–")));
  return h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption },
    h("table", attributes, h("caption", {}, caption),
      h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, cells(row))))));
}
