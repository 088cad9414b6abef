// Elements and numbers as text; names are only ever written as text.
const SVG = "http://www.w3.org/2000/svg";
const make = (name, attributes = {}, ...children) => {
  const found = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key in found && key !== "list") found[key] = value; else found.setAttribute(key, value);
  }
  found.append(...children);
  return found;
};
const draw = (name, attributes = {}, ...children) => {
  const found = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
  found.append(...children);
  return found;
};

// Numbers as text, as in `callpath_modeler.units`.
const significant = (value) => {
  if (value === 0) return "0";
  const rounded = Number(value.toExponential(2)), size = Math.floor(Math.log10(Math.abs(rounded)));
  if (size < -3 || size >= 6) return value.toExponential(2).replace(/e([+-])(\d)$/, "e$10$2");
  const [whole, rest] = rounded.toFixed(Math.max(0, 2 - size)).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, "\u00a0");
  return rest ? `${grouped}.${rest}` : grouped;
};
const SMALL = [[1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];
const LARGE = [[1e18, "E"], [1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
const quantity = (value, unit) => {
  if (Number.isNaN(value)) return "-";
  if (!Number.isFinite(value)) return "∞";
  const size = Math.abs(value), steps = unit === "s" ? SMALL : LARGE;
  const [scale, prefix] = steps.find(([each]) => size >= 0.9995 * each)
    ?? (unit === "s" && size > 0 ? [1e-9, "n"] : [1, ""]);
  return `${significant(value / scale)}\u00a0${prefix}${unit === "1" ? "" : unit}`.trim();
};
const percent = (share, digits = 0) => {
  if (!Number.isFinite(share)) return "-";
  if (!digits && share > 0 && share < 0.005) return "<1\u00a0%";
  return `${(share * 100).toFixed(digits).replace(/^-(0\.?0*)$/, "$1")}\u00a0%`;
};
const changeText = (ratio) => {
  if (!Number.isFinite(ratio)) return "-";
  if (ratio >= 10) return `×${significant(ratio).replace(/\.0$/, "")}`;
  const change = ratio - 1, text = percent(change, Math.abs(change) < 0.0995 ? 1 : 0);
  return change > 0 && text !== "0.0\u00a0%" ? `+${text}` : text;
};
const scaleText = (p) => (Number.isInteger(p) && p < 1e15 ? String(p) : String(Number(p.toPrecision(6))));
const bandText = ([low, high], unit) => {
  if (Number.isNaN(low)) return "-";
  const [start, end] = [quantity(low, unit), quantity(high, unit)];
  const [, number, measure] = /^(.*)\u00a0(\D+)$/.exec(start) ?? [start, start, ""];
  return `${measure && end.endsWith(`\u00a0${measure}`) ? number : start} … ${end}`;
};

// The measured points, the curve and the band of one experiment in a chart that ends at a scale.
const traced = ({ model, values, name }, row, first, end) => {
  const measured = model.points.map((p, k) => [p, model.measured(row, k)]).filter(([, value]) => value > 0);
  const stops = model.measuredOnly ? [] : [...new Set([
    ...Array.from({ length: 49 }, (_, k) => first * (end / first) ** (k / 48)), ...model.points, values.p])]
    .filter((p) => p <= end).sort((a, b) => a - b);
  const curve = stops.map((p) => {
    const where = model.where(p);
    if (!where) return null;
    // Inside the data, the curve is the model at measured scales as well.
    const grid = where.seen < 0 ? where : model.where(p * (1 + 1e-9));
    const value = grid ? model.aloneOf(row, p) * model.factor(grid, row) : NaN;
    return { p, value };
  }).filter((each) => each && each.value > 0);
  const bands = model.measuredOnly ? [] : model.grid.flatMap(({ at }, k) => {
    if (at < first || at > end * 1.0001) return [];
    const value = model.aloneOf(row, at) * (1 - model.lowered(k, row));
    const [low, high] = values.stored(model.seen.length + k, row, false, value);
    return high > 0 ? [[at, low, high]] : [];
  });
  const now = values.own[row], [low, high] = values.band(row, false);
  if (!values.isMeasured && high > 0) bands.push([values.p, low, high]);
  bands.sort(([a], [b]) => a - b);
  return { measured, curve, bands, now, low, high, p: values.p, last: model.points.at(-1), name };
};

// The chart of one call path in one experiment or two: measured points, model, band, target; both
// axes are logarithmic.
const chart = (sides, row) => {
  const WIDE = 560, HIGH = 270, LEFT = 74, RIGHT = 16, TOP = 12, BOTTOM = 34;
  const [{ model, values }] = sides, { unit } = model;
  const points = [...new Set(sides.flatMap((side) => side.model.points))].sort((a, b) => a - b);
  const end = Math.max(values.p, points.at(-1)), first = points[0];
  const lines = sides.map((side) => traced(side, row, first, end));
  const heights = lines.flatMap(({ measured, curve, now, bands }) => [...measured.map(([, v]) => v),
    ...curve.map(({ value }) => value), now, ...bands.map(([, , top]) => top)]).filter((v) => v > 0 && v < Infinity);
  if (!heights.length) return make("p", { className: "aside", textContent: "All values are zero or unknown, so there is no chart." });
  let top = Math.max(...heights), bottom = Math.min(...heights);
  const lows = lines.flatMap(({ bands }) => bands.map(([, low]) => low)).filter((v) => v > 0);
  bottom = Math.min(bottom, Math.max(Math.min(...lows, bottom), bottom / 30));
  if (top / bottom < 2) [top, bottom] = [top * 1.4, bottom / 1.4];
  top *= 1.12; bottom /= 1.12;
  const along = end > first ? Math.log(end / first) : 1;
  const x = (p) => LEFT + Math.log(p / first) / along * (WIDE - LEFT - RIGHT);
  const y = (v) => HIGH - BOTTOM - Math.log(Math.min(top, Math.max(bottom, v)) / bottom) / Math.log(top / bottom) * (HIGH - TOP - BOTTOM);
  const round = (v) => Math.round(v * 10) / 10;
  const line = (pairs) => `M${pairs.map(([a, b]) => `${round(a)} ${round(b)}`).join("L")}`;
  const text = (label, attributes) => {
    const found = draw("text", attributes);
    found.textContent = label;
    return found;
  };
  const parts = [];
  const powers = [];
  for (let power = Math.floor(Math.log10(bottom)); power <= Math.log10(top); power++) {
    for (const digit of top / bottom > 300 ? [1] : top / bottom > 12 ? [1, 3] : [1, 1.5, 2, 3, 5, 7]) powers.push(digit * 10 ** power);
  }
  for (const v of powers.filter((each) => each >= bottom && each <= top)) {
    parts.push(draw("line", { class: "grid", x1: LEFT, x2: WIDE - RIGHT, y1: y(v), y2: y(v) }),
      text(quantity(v, unit), { class: "end", x: LEFT - 6, y: y(v) + 4 }));
  }
  for (const { bands, name } of lines) {
    if (bands.length < 2) continue;
    const edge = [...bands.map(([p, , up]) => [x(p), y(up)]), ...bands.toReversed().map(([p, down]) => [x(p), y(down)])];
    parts.push(draw("path", { class: `band ${name}`, d: `${line(edge)}Z` }));
  }
  const last = points.at(-1);
  for (const { curve, last: known, name } of lines) {
    for (const [kind, some] of [["model", curve.filter(({ p }) => p <= known)], ["model beyond", curve.filter(({ p }) => p >= known)]]) {
      if (some.length > 1) parts.push(draw("path", { class: `${kind} ${name}`, d: line(some.map(({ p, value }) => [x(p), y(value)])) }));
    }
  }
  if (end > last) {
    parts.push(draw("line", { class: "edge", x1: x(last), x2: x(last), y1: TOP, y2: HIGH - BOTTOM }));
  }
  const rhombus = (a, b, reach) => `${line([[a, b - reach], [a + reach, b], [a, b + reach], [a - reach, b]])}Z`;
  const square = (a, b, reach) => `M${a - reach} ${b - reach}h${2 * reach}v${2 * reach}h${-2 * reach}Z`;
  const point = (name, a, b) => (name === "base" ? draw("path", { class: "point base", d: square(a, b, 3.6) })
    : draw("circle", { class: `point ${name}`, cx: a, cy: b, r: 4.2 }));
  for (const { measured, name } of lines) {
    for (const [p, value] of measured) parts.push(point(name, x(p), y(value)));
  }
  for (const { now, low, high, p, name } of lines) {
    if (!(now > 0)) continue;
    const [a, b] = [x(p), y(now)];
    if (high > 0) parts.push(draw("line", { class: `reach ${name}`, x1: a, x2: a, y1: y(low), y2: y(high) }));
    parts.push(draw("path", { class: `target ${name}`, d: rhombus(a, b, 6) }));
  }
  const ticks = [...new Set([...points, values.p])].sort((a, b) => a - b);
  const wanted = [values.p, last, ...ticks].map((p) => [p, String(scaleText(p))]), placed = [];
  for (const [p, label] of wanted) {
    const half = label.length * 3.8, at = Math.min(x(p), WIDE - half - 2);
    if (placed.some(([other, reach]) => Math.abs(other - at) < half + reach + 6)) continue;
    placed.push([at, half]);
    parts.push(text(label, { class: "middle", x: at, y: HIGH - BOTTOM + 18 }));
  }
  parts.push(text(model.parameter, { class: "name", x: LEFT - 40, y: HIGH - BOTTOM + 18 }));
  const told = lines.map(({ measured, name }) => `exclusive ${model.metric}${name && ` of ${name}`} over ${model.parameter}: `
    + measured.map(([p, v]) => `${quantity(v, unit)} at ${scaleText(p)}`).join(", ")).join("; ");
  const signs = sides.flatMap(({ name }) => {
    const named = (word) => (name ? `${name}: ${word}` : word);
    const more = model.measuredOnly ? [] : [[named("model"), draw("path", { class: `model ${name}`, d: "M1 7H19" })],
      ...(name ? [] : [["band", draw("path", { class: "band", d: "M1 2H19V12H1Z" })]])];
    return [[named("measured"), point(name, 10, 7)], ...more,
      ...(name ? [] : [["target", draw("path", { class: "target", d: rhombus(10, 7, 6) })]])];
  });
  return make("figure", { className: "curve" },
    draw("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": told }, ...parts),
    make("ul", { className: "legend" }, ...signs.map(([name, sign]) =>
      make("li", {}, draw("svg", { viewBox: "0 0 20 14" }, sign), name))));
};
