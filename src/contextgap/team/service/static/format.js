// Numbers, times and contexts as people read them.

export const LOADING = "Loading …";

// What to say where there is nothing: that there is nothing, or, if the log has enough rewards, that it comes.
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

export function signed(value, digits = 3) {
  return value > 0 ? `+${number(value, digits)}` : number(value, digits);
}

export function count(value) {
  return value.toLocaleString("en").replaceAll(",", "\u2009");
}

export function plural(value, one, many = `${one}s`) {
  return `${count(value)}\u00a0${value === 1 ? one : many}`;
}

export function percent(value, digits = 0) {
  return value === null || value === undefined ? "–" : `${(100 * value).toFixed(digits)}\u00a0%`;
}

const HERE = { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" };

export function time(text) {
  if (!text) return "–";
  return new Date(text).toLocaleString("en-GB", HERE);
}

export function ago(text, now = Date.now()) {
  const seconds = Math.max(0, Math.round((now - Date.parse(text)) / 1000));
  if (seconds < 5) return "just now";
  if (seconds < 90) return `${seconds} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h ago`;
  return time(text);
}

export function cell(value) {
  if (value === null || value === undefined) return "missing";
  if (typeof value === "number") return number(value, 4);
  if (typeof value === "object") return value.date || value.time || JSON.stringify(value);
  return String(value);
}

export function context(value) {
  if (Array.isArray(value)) return `(${value.map(cell).join(", ")})`;
  return Object.entries(value).map(([name, each]) => `${name} ${cell(each)}`).join(" · ");
}
