// Elements, numbers and times as people read them, and pictures as SVG.

const DASHES = ["", "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "1 2", "6 2 1 2 1 2"];
const CHARACTER = 6.6; // pixels, about, of the labels' font
const HEIGHT = 268;
const ROWS = 24; // of a table beside a picture
const EARLY = 10; // a record is early if there are so many times as many rewards now
const MOST = 8; // arms in one picture of beliefs
const LEVEL = 44; // pixels for the name of a level, at least
const RICH = 1000; // times the evidence of an alarm, which is drawn at most
const BANDS = 4; // arms, up to which intervals are drawn as areas

// Text goes in as text only, so that no name can become markup.
const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...some(children));
  return element;
}

const some = (children) => children.flat().filter((child) => child !== null && child !== undefined && child !== false);

export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

let made = 0;

function fresh(prefix) {
  made += 1;
  return `${prefix}-${made}`;
}

export function card(title, ...children) {
  return h("section", { class: "card", "aria-label": title }, h("h2", {}, title), children);
}

export function field(label, control, hint) {
  control.id ||= fresh("field");
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control,
    hint && h("small", {}, hint));
}

export function select(options, attributes = {}) {
  const element = h("select", attributes);
  choose(element, options);
  return element;
}

// Replaces the options of a select; what is chosen stays so.
export function choose(element, options) {
  const chosen = element.value;
  element.replaceChildren(...options.map(([value, text]) => h("option", { value }, text)));
  if (chosen) element.value = chosen;
}

// Replaces what is in an element, and keeps the focus on what has the same data-key.
export function replace(element, ...children) {
  const key = element.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  element.replaceChildren(...some(children));
  if (key !== undefined) find([key])?.focus({ preventScroll: true });
}

// The first element whose data-key is one of these.
export function find(keys) {
  return [...document.querySelectorAll("[data-key]")].find((each) => keys.includes(each.dataset.key));
}

// A table that scrolls; ``numbers`` are heads of columns at the right.
export function wide(caption, heads, body, attributes = {}, numbers = [], box = "wide") {
  return h("div", { class: box, tabindex: "0", role: "region", "aria-label": caption },
    h("table", attributes, h("caption", {}, caption), h("thead", {}, h("tr", {}, heads.map((head) =>
      h("th", { scope: "col", class: numbers.includes(head) && "number" }, head)))), body));
}

export function table(caption, heads, rows) {
  const cell = (value, place) => h(place ? "td" : "th",
    { scope: place ? null : "row", class: typeof value === "number" && "number" }, value ?? "–");
  return wide(caption, heads, h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cell)))));
}

export function openDialog(title, form, closed) {
  const dialog = h("dialog", { "aria-label": title }, form);
  dialog.addEventListener("close", () => {
    dialog.remove();
    closed();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

export async function attempt(said, work) {
  try {
    await work();
  } catch (error) {
    if (error.name !== "AbortError") said.textContent = error.message;
  }
}

export const LOADING = "Loading …";

// What to say where there is nothing, or nothing yet.
export function nothing({ trials }, least, text) {
  return trials.told < least ? text : LOADING;
}

export function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e6 || size < 1e-3
    ? value.toExponential(digits - 1).replace(/\.?0+e/, "e").replace("e+", "e")
    : String(Number(value.toPrecision(Math.max(digits, Math.ceil(Math.log10(size))))));
  return text.replace("-", "−");
}

export function signed(value) {
  return value > 0 ? `+${number(value)}` : number(value);
}

export function count(value) {
  return value.toLocaleString("en").replaceAll(",", "\u2009");
}

export function plural(value, one) {
  return `${count(value)}\u00a0${value === 1 ? one : `${one}s`}`;
}

export function percent(value, digits = 0) {
  return value === null || value === undefined ? "–" : `${(100 * value).toFixed(digits)}\u00a0%`;
}

const HERE = { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" };

export function time(text) {
  return text ? new Date(text).toLocaleString("en-GB", HERE) : "–";
}

export function ago(text) {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(text)) / 1000));
  if (seconds < 5) return "just now";
  if (seconds < 90) return `${seconds} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h ago`;
  return time(text);
}

function cell(value) {
  if (value === null || value === undefined) return "missing";
  if (typeof value === "number") return number(value, 4);
  if (typeof value === "object") return value.date || value.time || JSON.stringify(value);
  return String(value);
}

export function context(value) {
  if (Array.isArray(value)) return `(${value.map(cell).join(", ")})`;
  return Object.entries(value).map(([name, each]) => `${name} ${cell(each)}`).join(" · ");
}

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

function logTicks(low, high, wanted) {
  const powers = [...Array(12).keys()].map((power) => 10 ** power);
  const inside = (steps) => powers.flatMap((power) => steps.map((step) => step * power)).filter((v) => v >= low && v <= high);
  return [[1, 2, 5], [1, 3], [1]].map(inside).find((found) => found.length <= wanted) || inside([1]);
}

function extent(values, pad = 0.05) {
  const known = values.filter((v) => v !== null && Number.isFinite(v));
  if (!known.length) return [0, 1];
  let [low, high] = [Math.min(...known), Math.max(...known)];
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  return [low - pad * (high - low), high + pad * (high - low)];
}

// A frame with axes, which are {range, label, ticks?, format?, log?}, and room for texts at the right.
function frame({ width, height, x, y, title, description, texts, left: least = 0 }) {
  const formatY = y.format || ((v) => number(v, 3));
  const formatX = x.format || ((v) => number(v, 4));
  const ticksY = y.ticks || niceTicks(...y.range, Math.max(2, Math.floor(height / 48)));
  const left = Math.max(least, 14 + CHARACTER * Math.max(1, ...ticksY.map((v) => formatY(v).length)));
  const right = room(texts, width);
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
  const clip = fresh("inside"); // for what may reach beyond the axes
  const chart = { svg, sx, sy, box, right, clip: `url(#${clip})` };
  for (const tick of ticksY) {
    level(chart, "grid", sy(tick));
    svg.append(s("text", { class: "tick", x: box.left - 6, y: sy(tick) + 4, "text-anchor": "end" }, formatY(tick)));
  }
  const wanted = Math.max(2, Math.floor((box.right - box.left) / (x.log ? 55 : 75)));
  const ticksX = x.ticks || (x.log ? logTicks : niceTicks)(...x.range, wanted);
  for (const tick of x.whole ? ticksX.filter(Number.isInteger) : ticksX) {
    svg.append(s("text", { class: "tick", x: sx(tick), y: box.bottom + 16, "text-anchor": "middle" }, formatX(tick)));
  }
  level(chart, "axis", box.bottom);
  svg.append(s("clipPath", { id: clip }, s("rect", { x: box.left, y: box.top - 1, width: box.right - box.left, height: box.bottom - box.top + 2 })));
  svg.append(s("text", { class: "name", x: 0, y: 11 }, y.label));
  if (x.label) svg.append(s("text", { class: "name", x: box.right, y: height - 3, "text-anchor": "end" }, x.label));
  return chart;
}

function level({ svg, box }, name, y) {
  svg.append(s("line", { class: name, x1: box.left, x2: box.right, y1: y, y2: y }));
}

function line({ sx, sy }, xs, ys, attributes) {
  let path = "";
  let next = "M";
  xs.forEach((x, i) => {
    const missing = ys[i] === null || ys[i] === undefined;
    if (!missing) path += `${next}${sx(x).toFixed(1)},${sy(ys[i]).toFixed(1)}`;
    next = missing ? "M" : "L";
  });
  return s("path", { fill: "none", ...attributes, d: path });
}

function band({ sx, sy }, xs, lower, upper, attributes) {
  const there = [...xs.keys()].filter((i) => lower[i] !== null && upper[i] !== null);
  const edge = (ys, places) => places.map((i) => `${sx(xs[i]).toFixed(1)},${sy(ys[i]).toFixed(1)}`).join("L");
  const path = `M${edge(upper, there)}L${edge(lower, [...there].reverse())}Z`;
  return s("path", { stroke: "none", ...attributes, d: there.length ? path : "" });
}

function room(texts, width) {
  const longest = Math.max(0, ...texts.map((text) => text.length));
  return Math.min(0.3 * width, 14 + CHARACTER * longest);
}

function shorten(text, pixels) {
  const most = Math.max(3, Math.floor((pixels - 12) / CHARACTER));
  if (text.length <= most) return text;
  const end = Math.floor(most / 2) - 1; // names often differ at their ends
  return `${text.slice(0, most - 1 - end)}…${text.slice(text.length - end)}`;
}

// Labels at the ends of lines, moved apart.
function endLabels({ svg, box, right }, labels, above = 0, under = 0) {
  const gap = 13;
  const [top, bottom] = [box.top + above, box.bottom - under];
  const known = labels.filter((each) => Number.isFinite(each.y));
  const sorted = known.slice(0, Math.floor((bottom - top) / gap) + 1).sort((a, b) => a.y - b.y);
  sorted.forEach((each, place) => {
    each.at = Math.max(each.y, place ? sorted[place - 1].at + gap : top);
  });
  for (let place = sorted.length - 1, low = bottom; place >= 0; place -= 1, low = sorted[place + 1].at - gap) {
    sorted[place].at = Math.min(sorted[place].at, low);
  }
  for (const each of sorted) {
    svg.append(s("text", { class: `end ${each.class}`, x: box.right + 8, y: each.at + 4 },
      s("title", {}, each.text), shorten(each.text, right)));
  }
}

// A cursor over the places ``xs``, for mouse and keys.
function cursor({ svg, sx, box }, xs, say) {
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
    show(distances.indexOf(Math.min(...distances)));
  });
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    show(place + step);
  });
  return said;
}

// A picture as wide as there is room.
export class Plot {
  constructor(title, draw) {
    this.box = h("div", { class: "plot" });
    this.details = h("details", { class: "numbers" }, h("summary", {}, "As a table"));
    this.element = card(title, this.box, this.details);
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

function numbers(caption, heads, count, row) {
  const most = Math.min(count, ROWS);
  const places = [...Array(most).keys()].map((i) => Math.round((i * (count - 1)) / Math.max(1, most - 1)));
  return () => table(caption, heads, places.map(row));
}

const empty = (text) => ({ parts: [h("p", { class: "empty" }, text)], numbers: null });

function overTrials({ arms, bins }, options) {
  return frame({
    texts: arms.map((arm) => arm.text), x: { range: [1, bins.at(-1)[1] + 1], label: "trial", whole: true }, ...options,
  });
}

const between = ([first, last]) => (first === last ? `trial ${first}` : `trials ${first}–${last}`);

// Adds what belongs to such a picture.
function finished(chart, { arms, bins }, ends, caption, values) {
  endLabels(chart, arms.map((arm, i) => ({ text: arm.text, class: lookOf(arms, arm.key).class, y: ends[i] })), 6, 4);
  const say = (bin) => `${between(bins[bin])}: ${arms.map((arm, i) => `${arm.text} ${values(bin)[i]}`).join(" · ")}`;
  return {
    parts: [chart.svg, cursor(chart, bins.map(middle), say)],
    numbers: numbers(caption, ["trials", ...arms.map((arm) => arm.text)], bins.length, (bin) => [bins[bin].join("–"), ...values(bin)]),
  };
}

const middle = ([first, last]) => (first + last + 1) / 2;

export function drawPicks(series, width) {
  const { arms, bins, picks } = series;
  if (!bins.length) return empty("Nothing was asked for yet.");
  const shares = picks.map((row) => {
    const all = row.reduce((a, b) => a + b, 0);
    return row.map((n) => n / all);
  });
  const chart = overTrials(series, {
    width, height: HEIGHT,
    y: { range: [0, 1], ticks: [0, 0.5, 1], format: percent, label: "share of picks" },
    title: "Share of picks by arm over the trials",
    description: `${arms.length} arms in ${bins.length} bins. Of the last bin: `
      + arms.map((arm, i) => `${arm.text} ${percent(shares.at(-1)[i])}`).join(", "),
  });
  const { svg, sx, sy } = chart;
  const below = bins.map(() => 0);
  const ends = arms.map((arm, i) => {
    let up = "";
    let down = "";
    bins.forEach(([first, end], bin) => {
      const [x0, x1] = [sx(first).toFixed(1), sx(end + 1).toFixed(1)];
      const [low, high] = [sy(below[bin]).toFixed(1), sy(below[bin] + shares[bin][i]).toFixed(1)];
      up += `${bin ? "L" : "M"}${x0},${high}L${x1},${high}`;
      down = `L${x1},${low}L${x0},${low}${down}`;
      below[bin] += shares[bin][i];
    });
    svg.append(s("path", { class: `stack ${lookOf(arms, arm.key).class}`, d: `${up}${down}Z` }));
    return sy(below.at(-1) - shares.at(-1)[i] / 2);
  });
  return finished(chart, series, ends, "Picks by arm", (bin) => picks[bin]);
}

export function drawRewards(series, width) {
  const { arms, bins, rewards, points } = series;
  if (!points.length) return empty("No rewards were told yet.");
  const chart = overTrials(series, {
    width, height: HEIGHT + 46,
    y: { range: extent(points.map((p) => p[2])), label: "reward" },
    title: "Rewards over the trials",
    description: `Means of ${bins.length} bins by arm, and ${points.length} single rewards.`,
  });
  const { svg, sx, sy } = chart;
  svg.append(s("g", { class: "dots" }, points.map(([trial, arm, reward]) =>
    s("circle", { class: lookOf(arms, arms[arm].key).class, cx: sx(trial + 0.5).toFixed(1), cy: sy(reward).toFixed(1), r: 1.8 }))));
  const ends = arms.map((arm, i) => {
    const means = smooth(rewards.map((row) => row[i]));
    const there = [...means.keys()].filter((bin) => means[bin] !== null);
    const look = lookOf(arms, arm.key);
    svg.append(line(chart, there.map((bin) => middle(bins[bin])), there.map((bin) => means[bin]),
      { class: `mean ${look.class}`, "stroke-dasharray": look.dashes }));
    return there.length ? sy(means[there.at(-1)]) : NaN;
  });
  return finished(chart, series, ends, "Mean reward by arm", (bin) => rewards[bin].map((v) => number(v)));
}

// A running mean over a few bins.
function smooth(values) {
  const reach = Math.floor(values.length / 20);
  return values.map((value, place) => {
    if (value === null) return null;
    const near = values.slice(Math.max(0, place - reach), place + reach + 1).filter((v) => v !== null);
    return near.reduce((a, b) => a + b, 0) / near.length;
  });
}

export function drawProgress({ progress, wanted, tolerance }, width) {
  const steps = progress.filter((each) => each.settled !== null);
  if (!steps.length) return empty("No progress was recorded yet.");
  const xs = steps.map((each) => each.rewards);
  const newest = steps.at(-1);
  const x = { range: [Math.min(...xs), Math.max(...xs, Math.min(...xs) + 1)], whole: true, log: true };
  const common = { width, left: 52, texts: ["wanted", "tolerance", "90 %"] };
  const top = frame({
    ...common, height: 118, x,
    y: { range: [0, 1], ticks: [0, 0.5, 1], format: percent, label: "settled share of contexts" },
    title: "Settled share over the rewards",
    description: `${percent(newest.settled)} after ${newest.rewards} rewards; ${percent(wanted)} is wanted.`,
  });
  level(top, "goal", top.sy(wanted));
  top.svg.append(line(top, xs, steps.map((each) => each.settled), { class: "settled" }));
  endLabels(top, [{ text: "wanted", class: "quiet", y: top.sy(wanted) }]);
  const bounds = [0, 1, 2].map((q) => steps.map((each) => each.bounds?.[q] ?? null));
  const goal = tolerance === null ? [] : [tolerance];
  // The first bounds are so large that nothing could be seen of the later ones.
  const late = bounds[2].filter((_, i) => xs[i] >= newest.rewards / EARLY);
  const low = frame({
    ...common, height: 150, x: { ...x, label: "rewards, on a logarithmic scale" },
    y: { range: [0, extent([...late, ...goal, 0], 0.1)[1]], label: "regret bound: 10, 50 and 90 % of contexts" },
    title: "Quantiles of the certificates over the rewards",
    description: `Half of the contexts have a bound below ${number(newest.bounds?.[1])}, nine in ten below ${number(newest.bounds?.[2])}.`,
  });
  low.svg.append(s("g", { "clip-path": low.clip }, band(low, xs, bounds[0], bounds[2], { class: "spread" }),
    bounds.map((values, q) => line(low, xs, values, { class: q === 1 ? "settled" : "edge", "stroke-dasharray": ["2 3", "", "7 3"][q] }))));
  const ends = [2, 1, 0].map((q) => ({ text: ["10 %", "50 %", "90 %"][q], class: "quiet", y: low.sy(bounds[q].at(-1) ?? NaN) }));
  for (const value of goal) {
    level(low, "goal", low.sy(value));
    ends.push({ text: "tolerance", class: "quiet", y: low.sy(value) });
  }
  endLabels(low, ends);
  const three = (i) => (steps[i].bounds || [null, null, null]).map((v) => number(v));
  const say = (i) => `${xs[i]} rewards: ${percent(steps[i].settled, 1)} settled, bounds ${three(i).join(", ")}`;
  return {
    parts: [top.svg, low.svg, cursor(top, xs, say), cursor(low, xs, say)],
    numbers: numbers("Progress as recorded", ["rewards", "settled", "10 %", "50 %", "90 %"], steps.length,
      (i) => [xs[i], percent(steps[i].settled, 1), ...three(i)]),
  };
}

export function drawShift({ over_time: over, level: limit, alarm }, width) {
  if (!over.row.length) return empty("No row was seen yet.");
  const most = RICH * limit; // beyond which nothing would be seen of what was before
  const logs = over.evidence.map((v) => Math.log10(Math.min(Math.max(v, 1e-9), most)));
  const [low, high] = [Math.min(-1, ...logs), Math.max(Math.log10(limit), ...logs)];
  const step = Math.ceil((high - low) / 4);
  const powers = [...Array(Math.floor(high / step) - Math.ceil(low / step) + 1).keys()].map((i) => (i + Math.ceil(low / step)) * step);
  const chart = overRows(over, {
    width, height: HEIGHT, texts: ["alarm"],
    y: { range: [low, high + 0.1 * (high - low)], ticks: powers, format: (v) => number(10 ** v), label: "evidence of a shift" },
    title: "Evidence that contexts have changed, over the rows",
    description: `${number(over.evidence.at(-1))} after ${over.row.at(-1)} rows; ${alarm ? `alarm at row ${alarm.row}` : "no alarm"}.`,
  });
  level(chart, "goal", chart.sy(Math.log10(limit)));
  chart.svg.append(line(chart, over.row, logs, { class: "settled" }));
  endLabels(chart, [{ text: "alarm", class: "quiet", y: chart.sy(Math.log10(limit)) }]);
  return readable(chart, over, "Evidence over the rows", ["evidence"], (i) => [number(over.evidence[i])]);
}

export function drawDoubts({ over_time: over, expected_regret: regret }, width) {
  if (!over.row.length) return empty("No row was seen yet.");
  const texts = ["bound", "expected", "in the log"];
  const chart = overRows(over, {
    width, height: HEIGHT, texts,
    y: { range: [0, extent([...over.expected_regret, ...over.certificate, regret[1], 0], 0.1)[1]], label: "regret" },
    title: "Expected regret and regret bound over the rows",
    description: `Expected regret ${number(regret[0])}, and ${number(regret[1])} in the log.`,
  });
  level(chart, "goal", chart.sy(regret[1]));
  const known = [...over.row.keys()].filter((i) => over.expected_regret[i] !== null);
  const ends = [["certificate", "edge", "7 3"], ["expected_regret", "settled", ""]].map(([name, look, dashes], place) => {
    chart.svg.append(line(chart, known.map((i) => over.row[i]), known.map((i) => over[name][i]), { class: look, "stroke-dasharray": dashes }));
    return { text: texts[place], class: "quiet", y: known.length ? chart.sy(over[name][known.at(-1)]) : NaN };
  });
  endLabels(chart, [...ends, { text: texts[2], class: "quiet", y: chart.sy(regret[1]) }], 6, 4);
  return readable(chart, over, "Regret over the rows", ["expected", "bound", "outside what was seen"],
    (i) => [number(over.expected_regret[i]), number(over.certificate[i]), percent(over.outside[i], 1)]);
}

function overRows(over, options) {
  return frame({ x: { range: [0, over.row.at(-1)], label: "row", whole: true }, left: 52, ...options });
}

function readable(chart, over, caption, names, values) {
  const say = (i) => `up to row ${count(over.row[i])}: ${names.map((name, k) => `${name} ${values(i)[k]}`).join(" · ")}`;
  return {
    parts: [chart.svg, cursor(chart, over.row, say)],
    numbers: numbers(caption, ["up to row", ...names], over.row.length, (i) => [over.row[i], ...values(i)]),
  };
}

// Arms answered most often first, then those that promise most.
function byImportance({ arms, best, upper }) {
  const weight = (arm, i) => [best.filter((key) => key === arm.key).length, Math.max(...upper.map((row) => row[i]))];
  return arms.map((arm, i) => [i, ...weight(arm, i)]).sort((a, b) => b[1] - a[1] || b[2] - a[2]).map(([i]) => i);
}

// ``shown`` are the arms with colours of their own.
export function drawCourse({ course, shown: coloured }, width) {
  const { arms, values, ordered, mean, lower, upper } = course;
  const order = byImportance(course).slice(0, MOST);
  const texts = order.map((i) => arms[i].text);
  const dates = ordered && typeof values[0] === "string";
  const xs = ordered ? values.map((v) => (dates ? Date.parse(v) : v)) : values.map((_, i) => i);
  const range = ordered ? [Math.min(...xs), Math.max(...xs)] : [-0.5, xs.length - 0.5];
  if (range[0] === range[1]) range[1] += 1;
  const slot = (width - room(texts, width) - 50) / xs.length;
  const every = Math.ceil(LEVEL / slot);
  const x = { range, label: course.column };
  if (dates) {
    x.ticks = [0.12, 0.5, 0.88].map((share) => range[0] + share * (range[1] - range[0]));
    x.format = (v) => new Date(v).toISOString().slice(0, 10);
  } else if (!ordered) {
    x.ticks = xs.filter((i) => i % every === 0);
    x.format = (i) => shorten(cell(values[i]), 12 + every * slot - 4);
  }
  const chart = frame({
    width, height: HEIGHT - 32, x, texts,
    y: { range: extent(order.flatMap((i) => [...lower, ...upper].map((row) => row[i]))), label: "expected reward" },
    title: `What is believed along ${course.column}`,
    description: `Means and intervals of ${order.length} of ${arms.length} arms at ${values.length} values.`,
  });
  const { svg, sx, sy } = chart;
  const column = (rows, i) => rows.map((row) => row[i]);
  const labels = order.map((i, place) => {
    const look = lookOf(coloured, arms[i].key);
    if (ordered) {
      if (order.length <= BANDS) svg.append(band(chart, xs, column(lower, i), column(upper, i), { class: `belief ${look.class}` }));
      else for (const edge of [lower, upper]) svg.append(line(chart, xs, column(edge, i), { class: `edge ${look.class}` }));
      svg.append(line(chart, xs, column(mean, i), { class: `mean ${look.class}`, "stroke-dasharray": look.dashes }));
    } else {
      const shift = (place - (order.length - 1) / 2) * Math.min(12, (0.7 * slot) / order.length);
      xs.forEach((value, k) => svg.append(
        s("line", { class: `mean ${look.class}`, x1: sx(value) + shift, x2: sx(value) + shift, y1: sy(lower[k][i]), y2: sy(upper[k][i]) }),
        s("circle", { class: look.class, cx: sx(value) + shift, cy: sy(mean[k][i]), r: 3.5 })));
    }
    return { text: arms[i].text, class: look.class, y: sy(mean.at(-1)[i]) };
  });
  endLabels(chart, labels, 6, 4);
  const name = Object.fromEntries(arms.map((arm) => [arm.key, arm.text]));
  const say = (k) => `${course.column} ${cell(values[k])}: ${name[course.best[k]]} is answered · `
    + order.map((i) => `${arms[i].text} ${number(mean[k][i])}`).join(" · ");
  return {
    parts: [svg, cursor(chart, xs, say)],
    numbers: numbers(`Beliefs along ${course.column}`, [course.column, "answered", ...texts], xs.length,
      (k) => [cell(values[k]), name[course.best[k]], ...order.map((i) => `${number(mean[k][i])} (${number(lower[k][i])} to ${number(upper[k][i])})`)]),
  };
}
