// The pictures of a campaign: picks, progress, rewards, and beliefs along a column.

import { band, cursor, endLabels, extent, frame, line, lookOf, room, shorten, thinned } from "./charts.js";
import { h, s, table } from "./dom.js";
import { cell, number, percent } from "./format.js";

const HEIGHT = 268;
const ROWS = 24; // of a table beside a picture
const EARLY = 10; // a record is early if there are so many times as many rewards now
const MOST = 8; // arms in one picture of beliefs
const LEVEL = 44; // pixels for the name of a level, at least
const BANDS = 4; // arms, up to which intervals are drawn as areas

const nothing = (text) => ({ parts: [h("p", { class: "empty" }, text)], numbers: null });
const between = ([first, last]) => (first === last ? `trial ${first}` : `trials ${first}–${last}`);

export function drawPicks({ arms, bins, picks }, width) {
  if (!bins.length) return nothing("Nothing was asked for yet.");
  const shares = picks.map((row) => {
    const all = row.reduce((a, b) => a + b, 0);
    return row.map((n) => n / all);
  });
  const right = room(arms.map((arm) => arm.text), width);
  const last = bins[bins.length - 1][1];
  const chart = frame({
    width, height: HEIGHT, right,
    x: { range: [1, last + 1], label: "trial", whole: true },
    y: { range: [0, 1], ticks: [0, 0.5, 1], format: percent, label: "share of picks" },
    title: "Share of picks by arm over the trials",
    description: `${arms.length} arms in ${bins.length} bins. Of the last bin: `
      + arms.map((arm, i) => `${arm.text} ${percent(shares[shares.length - 1][i])}`).join(", "),
  });
  const { svg, sx, sy, box } = chart;
  const below = bins.map(() => 0);
  const labels = arms.map((arm, i) => {
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
    const tip = shares[shares.length - 1][i];
    return { text: arm.text, class: lookOf(arms, arm.key).class, y: sy(below[bins.length - 1] - tip / 2) };
  });
  endLabels(svg, labels, box.right, right, [box.top + 6, box.bottom - 4]);
  const say = (bin) => `${between(bins[bin])}: `
    + arms.map((arm, i) => `${arm.text} ${picks[bin][i]}`).join(" · ");
  const said = cursor(chart, bins.map(([a, b]) => (a + b + 1) / 2), say);
  const numbers = () => table("Picks by arm", ["trials", ...arms.map((arm) => arm.text)],
    thinned(bins.length, ROWS).map((bin) => [bins[bin].join("–"), ...picks[bin]]));
  return { parts: [svg, said], numbers };
}

export function drawRewards({ arms, bins, rewards, points }, width) {
  if (!points.length) return nothing("No rewards were told yet.");
  const right = room(arms.map((arm) => arm.text), width);
  const last = bins[bins.length - 1][1];
  const chart = frame({
    width, height: HEIGHT + 46, right,
    x: { range: [1, last + 1], label: "trial", whole: true },
    y: { range: extent(points.map((p) => p[2])), label: "reward" },
    title: "Rewards over the trials",
    description: `Means of ${bins.length} bins by arm, and ${points.length} single rewards.`,
  });
  const { svg, sx, sy, box } = chart;
  svg.append(s("g", { class: "dots" }, points.map(([trial, arm, reward]) =>
    s("circle", { class: lookOf(arms, arms[arm].key).class, cx: sx(trial + 0.5).toFixed(1), cy: sy(reward).toFixed(1), r: 1.8 }))));
  const middle = bins.map(([a, b]) => (a + b + 1) / 2);
  const labels = arms.map((arm, i) => {
    const known = smooth(rewards.map((row) => row[i]));
    const look = lookOf(arms, arm.key);
    svg.append(line(middle.map((x, bin) => [x, known[bin]]).filter((p) => p[1] !== null), sx, sy,
      { class: `mean ${look.class}`, "stroke-dasharray": look.dashes }));
    const tip = known.filter((v) => v !== null).pop();
    return { text: arm.text, class: look.class, y: tip === undefined ? NaN : sy(tip) };
  });
  endLabels(svg, labels, box.right, right, [box.top + 6, box.bottom - 4]);
  const say = (bin) => `${between(bins[bin])}: `
    + arms.map((arm, i) => `${arm.text} ${number(rewards[bin][i])}`).join(" · ");
  const said = cursor(chart, middle, say);
  const numbers = () => table("Mean reward by arm", ["trials", ...arms.map((arm) => arm.text)],
    thinned(bins.length, ROWS).map((bin) => [bins[bin].join("–"), ...rewards[bin].map((v) => number(v))]));
  return { parts: [svg, said], numbers };
}

// A running mean over a few bins, so that lines can be followed; gaps stay gaps.
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
  if (!steps.length) return nothing("No progress was recorded yet.");
  const xs = steps.map((each) => each.rewards);
  const range = [Math.min(...xs), Math.max(...xs, Math.min(...xs) + 1)];
  const newest = steps[steps.length - 1];
  const right = room(["wanted", "tolerance", "90 %"], width);
  const top = frame({
    width, height: 118, left: 52, right,
    x: { range, whole: true, log: true },
    y: { range: [0, 1], ticks: [0, 0.5, 1], format: percent, label: "settled share of contexts" },
    title: "Settled share over the rewards",
    description: `${percent(newest.settled)} after ${newest.rewards} rewards; ${percent(wanted)} is wanted.`,
  });
  top.svg.append(
    s("line", { class: "goal", x1: top.box.left, x2: top.box.right, y1: top.sy(wanted), y2: top.sy(wanted) }),
    line(steps.map((each) => [each.rewards, each.settled]), top.sx, top.sy, { class: "settled" }));
  endLabels(top.svg, [{ text: "wanted", class: "quiet", y: top.sy(wanted) }], top.box.right, right, [top.box.top, top.box.bottom]);
  const bounds = [0, 1, 2].map((q) => steps.map((each) => each.bounds?.[q] ?? null));
  const goal = tolerance === null ? [] : [tolerance];
  // The first bounds are so large that nothing could be seen of the later ones.
  const late = bounds[2].filter((_, i) => xs[i] >= newest.rewards / EARLY);
  const low = frame({
    width, height: 150, left: 52, right,
    x: { range, whole: true, log: true, label: "rewards, on a logarithmic scale" },
    y: { range: [0, extent([...late, ...goal, 0], 0.1)[1]], label: "regret bound: 10, 50 and 90 % of contexts" },
    title: "Quantiles of the certificates over the rewards",
    description: `Half of the contexts have a bound below ${number(newest.bounds?.[1])}, nine in ten below ${number(newest.bounds?.[2])}.`,
  });
  const drawn = s("g", { "clip-path": low.clip }, band(xs, bounds[0], bounds[2], low.sx, low.sy, { class: "spread" }));
  low.svg.append(drawn);
  bounds.forEach((values, q) => drawn.append(line(xs.map((x, i) => [x, values[i]]), low.sx, low.sy,
    { class: q === 1 ? "settled" : "edge", "stroke-dasharray": ["2 3", "", "7 3"][q] })));
  if (goal.length) low.svg.append(s("line", { class: "goal", x1: low.box.left, x2: low.box.right, y1: low.sy(tolerance), y2: low.sy(tolerance) }));
  const ends = [2, 1, 0].map((q) => ({ text: ["10 %", "50 %", "90 %"][q], class: "quiet", y: low.sy(bounds[q].at(-1) ?? NaN) }));
  if (goal.length) ends.push({ text: "tolerance", class: "quiet", y: low.sy(tolerance) });
  endLabels(low.svg, ends, low.box.right, right, [low.box.top, low.box.bottom]);
  const say = (i) => `${xs[i]} rewards: ${percent(steps[i].settled, 1)} settled, bounds ${(steps[i].bounds || []).map((v) => number(v)).join(", ")}`;
  const said = cursor(top, xs, say);
  const saidToo = cursor(low, xs, say);
  const numbers = () => table("Progress as recorded", ["rewards", "settled", "10 %", "50 %", "90 %"],
    thinned(steps.length, ROWS).map((i) => [xs[i], percent(steps[i].settled, 1), ...(steps[i].bounds || [null, null, null]).map((v) => number(v))]));
  return { parts: [top.svg, low.svg, said, saidToo], numbers };
}

// Those answered most often come first, then those that promise most somewhere.
function byImportance({ arms, best, upper }) {
  const weight = (arm, i) => [best.filter((key) => key === arm.key).length, Math.max(...upper.map((row) => row[i]))];
  return arms.map((arm, i) => [i, ...weight(arm, i)]).sort((a, b) => b[1] - a[1] || b[2] - a[2]).map(([i]) => i);
}

// ``shown`` are the arms with colours of their own.
export function drawCourse({ course, shown: coloured }, width) {
  const { arms, values, ordered, mean, lower, upper } = course;
  const order = byImportance(course).slice(0, MOST);
  const dates = ordered && typeof values[0] === "string";
  const xs = ordered ? values.map((v) => (dates ? Date.parse(v) : v)) : values.map((_, i) => i);
  const range = ordered ? [Math.min(...xs), Math.max(...xs)] : [-0.5, xs.length - 0.5];
  if (range[0] === range[1]) range[1] += 1;
  const right = room(order.map((i) => arms[i].text), width);
  const slot = (width - right - 50) / xs.length;
  const every = Math.ceil(LEVEL / slot);
  const day = (v) => new Date(v).toISOString().slice(0, 10);
  const chart = frame({
    width, height: HEIGHT - 32, right,
    x: {
      range, label: course.column,
      ticks: ordered ? (dates ? [0.12, 0.5, 0.88].map((share) => range[0] + share * (range[1] - range[0])) : undefined)
        : xs.filter((i) => i % every === 0),
      format: ordered ? (dates ? day : undefined) : (i) => shorten(cell(values[i]), 12 + every * slot - 4),
    },
    y: { range: extent(order.flatMap((i) => [...lower, ...upper].map((row) => row[i]))), label: "expected reward" },
    title: `What is believed along ${course.column}`,
    description: `Means and intervals of ${order.length} of ${arms.length} arms at ${values.length} values.`,
  });
  const { svg, sx, sy, box } = chart;
  const column = (rows, i) => rows.map((row) => row[i]);
  const labels = order.map((i, place) => {
    const look = lookOf(coloured, arms[i].key);
    if (ordered) {
      if (order.length <= BANDS) svg.append(band(xs, column(lower, i), column(upper, i), sx, sy, { class: `belief ${look.class}` }));
      else for (const edge of [lower, upper]) svg.append(line(column(edge, i).map((y, k) => [xs[k], y]), sx, sy, { class: `edge ${look.class}` }));
      svg.append(line(column(mean, i).map((y, k) => [xs[k], y]), sx, sy, { class: `mean ${look.class}`, "stroke-dasharray": look.dashes }));
    } else {
      const shift = (place - (order.length - 1) / 2) * Math.min(12, (0.7 * slot) / order.length);
      xs.forEach((x, k) => svg.append(
        s("line", { class: `mean ${look.class}`, x1: sx(x) + shift, x2: sx(x) + shift, y1: sy(lower[k][i]), y2: sy(upper[k][i]) }),
        s("circle", { class: look.class, cx: sx(x) + shift, cy: sy(mean[k][i]), r: 3.5 })));
    }
    return { text: arms[i].text, class: look.class, y: sy(mean.at(-1)[i]) };
  });
  endLabels(svg, labels, box.right, right, [box.top + 6, box.bottom - 4]);
  const name = Object.fromEntries(arms.map((arm) => [arm.key, arm.text]));
  const say = (k) => `${course.column} ${cell(values[k])}: ${name[course.best[k]]} is answered · `
    + order.map((i) => `${arms[i].text} ${number(mean[k][i])}`).join(" · ");
  const said = cursor(chart, xs, say);
  const numbers = () => table(`Beliefs along ${course.column}`, [course.column, "answered", ...order.map((i) => arms[i].text)],
    thinned(xs.length, ROWS).map((k) => [cell(values[k]), name[course.best[k]],
      ...order.map((i) => `${number(mean[k][i])} (${number(lower[k][i])} to ${number(upper[k][i])})`)]));
  return { parts: [svg, said], numbers };
}
