// Charts as SVG: axes, marks, labels at the ends of lines, and a cursor for mouse and keys.

import { fresh, h, s } from "./dom.js";
import { number } from "./format.js";

const DASHES = ["", "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "1 2", "6 2 1 2 1 2"];
const CHARACTER = 6.6; // pixels, about, of the labels' font

// How an arm is drawn: the classes and dashes of those with a colour of their own, and of others.
export function lookOf(arms, key) {
  const place = arms.findIndex((arm) => arm.key === key);
  if (place < 0 || key === null) return { class: "arm-other", dashes: "" };
  return { class: `arm-${place}`, dashes: DASHES[place] };
}

function niceTicks(low, high, wanted) {
  const span = high - low || 1;
  const raw = span / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * span; i += 1) found.push(i * step);
  return found;
}

// One, two and five times powers of ten, or the powers alone where there is little room.
function logTicks(low, high, wanted) {
  const powers = [...Array(12).keys()].map((power) => 10 ** power);
  const inside = (steps) => powers.flatMap((power) => steps.map((step) => step * power)).filter((v) => v >= low && v <= high);
  return [[1, 2, 5], [1, 3], [1]].map(inside).find((found) => found.length <= wanted) || inside([1]);
}

export function extent(values, pad = 0.05) {
  const known = values.filter((v) => v !== null && Number.isFinite(v));
  if (!known.length) return [0, 1];
  let [low, high] = [Math.min(...known), Math.max(...known)];
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  return [low - pad * (high - low), high + pad * (high - low)];
}

// A frame with axes. ``x`` and ``y`` are {range, label, ticks?, format?, log?}.
export function frame({ width, height, x, y, title, description, left: least = 0, right = 12 }) {
  const formatY = y.format || ((v) => number(v, 3));
  const formatX = x.format || ((v) => number(v, 4));
  const ticksY = y.ticks || niceTicks(...y.range, Math.max(2, Math.floor(height / 48)));
  const left = Math.max(least, 14 + CHARACTER * Math.max(1, ...ticksY.map((v) => formatY(v).length)));
  const box = { left, right: width - right, top: 22, bottom: height - (x.label ? 36 : 22) };
  const along = x.log ? Math.log : (v) => v;
  const [first, last] = x.range.map(along);
  const sx = (v) => box.left + ((along(v) - first) / (last - first)) * (box.right - box.left);
  const sy = (v) => box.bottom - ((v - y.range[0]) / (y.range[1] - y.range[0])) * (box.bottom - box.top);
  const names = [fresh("title"), fresh("desc")];
  const svg = s("svg", {
    class: "chart", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: "0",
    "aria-labelledby": names.join(" "),
  }, s("title", { id: names[0] }, title), s("desc", { id: names[1] }, description));
  for (const tick of ticksY) {
    svg.append(
      s("line", { class: "grid", x1: box.left, x2: box.right, y1: sy(tick), y2: sy(tick) }),
      s("text", { class: "tick", x: box.left - 6, y: sy(tick) + 4, "text-anchor": "end" }, formatY(tick)));
  }
  const wanted = Math.max(2, Math.floor((box.right - box.left) / (x.log ? 55 : 75)));
  const ticksX = x.ticks || (x.log ? logTicks(...x.range, wanted) : niceTicks(...x.range, wanted));
  for (const tick of x.whole ? ticksX.filter(Number.isInteger) : ticksX) {
    svg.append(s("text", { class: "tick", x: sx(tick), y: box.bottom + 16, "text-anchor": "middle" }, formatX(tick)));
  }
  svg.append(s("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  const inside = fresh("inside"); // for what may reach beyond the axes
  svg.append(s("clipPath", { id: inside }, s("rect", { x: box.left, y: box.top - 1, width: box.right - box.left, height: box.bottom - box.top + 2 })));
  if (y.label) svg.append(s("text", { class: "name", x: 0, y: 11 }, y.label));
  if (x.label) svg.append(s("text", { class: "name", x: box.right, y: height - 3, "text-anchor": "end" }, x.label));
  return { svg, sx, sy, box, clip: `url(#${inside})` };
}

export function line(points, sx, sy, attributes) {
  let path = "";
  let on = false;
  for (const [x, y] of points) {
    if (y === null || y === undefined) {
      on = false;
      continue;
    }
    path += `${on ? "L" : "M"}${sx(x).toFixed(1)},${sy(y).toFixed(1)}`;
    on = true;
  }
  return s("path", { fill: "none", ...attributes, d: path });
}

export function band(xs, lower, upper, sx, sy, attributes) {
  const there = xs.map((x, i) => [x, lower[i], upper[i]]).filter((p) => p[1] !== null && p[2] !== null);
  const edge = (points) => points.map(([x, y]) => `${sx(x).toFixed(1)},${sy(y).toFixed(1)}`).join("L");
  const up = there.map(([x, , high]) => [x, high]);
  const down = there.map(([x, low]) => [x, low]).reverse();
  return s("path", { stroke: "none", ...attributes, d: there.length ? `M${edge(up)}L${edge(down)}Z` : "" });
}

// How much room labels at the right need, in pixels.
export function room(texts, width) {
  const longest = Math.max(0, ...texts.map((text) => text.length));
  return Math.min(0.3 * width, 14 + CHARACTER * longest);
}

export function shorten(text, pixels) {
  const most = Math.max(3, Math.floor((pixels - 12) / CHARACTER));
  if (text.length <= most) return text;
  const end = Math.floor(most / 2) - 1; // names often differ at their ends
  return `${text.slice(0, most - 1 - end)}…${text.slice(text.length - end)}`;
}

// Labels at the right ends of lines, moved apart where they would touch; the first, if many.
export function endLabels(svg, labels, x, pixels, [top, bottom]) {
  const gap = 13;
  const known = labels.filter((each) => Number.isFinite(each.y));
  const sorted = known.slice(0, Math.floor((bottom - top) / gap) + 1).sort((a, b) => a.y - b.y);
  sorted.forEach((each, place) => {
    each.at = Math.max(each.y, place ? sorted[place - 1].at + gap : top);
  });
  for (let place = sorted.length - 1, low = bottom; place >= 0; place -= 1, low = sorted[place + 1].at - gap) {
    sorted[place].at = Math.min(sorted[place].at, low);
  }
  for (const each of sorted) {
    svg.append(s("text", { class: `end ${each.class}`, x: x + 8, y: each.at + 4 },
      s("title", {}, each.text), shorten(each.text, pixels)));
  }
}

// A cursor over the places ``xs``, moved by the mouse or the arrow keys; ``say`` puts one in words.
export function cursor({ svg, sx, box }, xs, say) {
  const said = h("output", { class: "readout" });
  const rule = s("line", { class: "cursor", y1: box.top, y2: box.bottom, visibility: "hidden" });
  svg.append(rule);
  let place = -1;
  const show = (next) => {
    place = Math.max(0, Math.min(xs.length - 1, next));
    rule.setAttribute("x1", sx(xs[place]));
    rule.setAttribute("x2", sx(xs[place]));
    rule.setAttribute("visibility", "visible");
    said.textContent = say(place);
  };
  const hide = () => {
    place = -1;
    rule.setAttribute("visibility", "hidden");
    said.textContent = "";
  };
  svg.addEventListener("pointermove", (event) => {
    const at = event.clientX - svg.getBoundingClientRect().left;
    const distances = xs.map((x) => Math.abs(sx(x) - at));
    if (xs.length) show(distances.indexOf(Math.min(...distances)));
  });
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || !xs.length) return;
    event.preventDefault();
    show(Number.isFinite(step) ? place + step : step > 0 ? xs.length - 1 : 0);
  });
  return said;
}

// A box whose picture is drawn as wide as there is room, and again when that changes.
export class Plot {
  constructor(title, draw) {
    this.box = h("div", { class: "plot" });
    this.details = h("details", { class: "numbers" }, h("summary", {}, "As a table"));
    this.element = h("section", { class: "card", "aria-label": title }, h("h2", {}, title), this.box, this.details);
    this.draw = draw;
    this.width = 0;
    this.data = null;
    this.details.addEventListener("toggle", () => this.list());
    new ResizeObserver(([entry]) => {
      const width = Math.floor(entry.contentRect.width);
      if (width && width !== this.width) {
        this.width = width;
        this.render();
      }
    }).observe(this.box);
  }

  show(data) {
    this.data = data;
    this.render();
    this.list();
  }

  render() {
    if (!this.data || !this.width) return;
    const focused = this.box.contains(document.activeElement);
    const drawn = this.draw(this.data, this.width);
    this.numbers = drawn.numbers;
    this.details.hidden = !drawn.numbers;
    this.box.replaceChildren(...drawn.parts);
    if (focused) this.box.querySelector("svg")?.focus({ preventScroll: true });
  }

  list() {
    while (this.details.childNodes.length > 1) this.details.lastChild.remove();
    if (this.details.open && this.numbers) this.details.append(this.numbers());
  }
}

// At most ``most`` of some places, with the first and the last.
export function thinned(count, most) {
  if (count <= most) return [...Array(count).keys()];
  return [...Array(most).keys()].map((i) => Math.round((i * (count - 1)) / (most - 1)));
}
