"use strict";
// The data of the page, the models of all call paths, and their values at a target.
const ARRAYS = {
  i8: Int8Array, u8: Uint8Array, i16: Int16Array, u16: Uint16Array, i32: Int32Array,
  f32: Float32Array, f64: Float64Array,
};
const CODES = 1000, NOTHING = 65535, ENDLESS = 65534;

// Unpacks what `page_data.packed` has written: no network, and nothing of it runs.
const unpack = async (text) => {
  const letters = atob(text.trim()), packed = new Uint8Array(letters.length);
  for (let k = 0; k < packed.length; k++) packed[k] = letters.charCodeAt(k);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let at = 4 + new DataView(bytes.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, at)));
  const columns = {};
  for (const [name, kind, count] of header.columns) {
    const width = ARRAYS[kind].BYTES_PER_ELEMENT, whole = new Uint8Array(width * count);
    for (let byte = 0; byte < width; byte++, at += count) {
      for (let k = 0; k < count; k++) whole[k * width + byte] = bytes[at + k];
    }
    (columns[name] ??= []).push(new ARRAYS[kind](whole.buffer));
  }
  return header.sides ? new Pair(header, columns) : new Model(header, columns);
};

// The values of a shape, by its kind: those of `modeling.products` and `modeling.growth`.
const growthAt = (p, rate, exponent, log) =>
  p ** exponent * (log ? Math.log2(p) ** log : 1) * (rate ? 2 ** (rate * p) : 1);
const gradually = (x) => (1 + x ** 3) ** (1 / 3);
const SHAPES = {
  term: (p, rate, exponent, log) => growthAt(p, rate, exponent, log),
  difference: (p, ...orders) => {
    const larger = growthAt(p, ...orders.slice(0, 3));
    return larger === Infinity ? larger : larger - growthAt(p, ...orders.slice(3));
  },
  step: (p, at) => Number(p > at),
  once: (p, at) => Number(p === at),
  leap: (p, at, power, ...order) => (p > at ? growthAt(p, ...order) : 0),
  drop: (p, at) => Number(p <= at),
  bend: (p, at, power) => Math.max(1, p / at) ** power,
  onset: (p, at) => Math.max(0, p / at - 1),
  beyond: (p, at) => 1 - Math.min(1, at / p),
  climb: (p, at) => Math.log2(Math.max(1, p / at)),
  plateau: (p, at, power) => Math.min(1, p / at) ** power,
  floor: (p, at, power) => Math.max(1, at / p) ** power,
  swell: (p, at) => gradually(p / at),
  settle: (p, at) => gradually(at / p),
  ceiling: (p, at) => -Math.expm1(-p / at),
  levels: (p, at) => Math.ceil(Math.log(Math.max(p, 1)) / Math.log(at) * (1 - 1e-9)),
  blocks: (p, at) => Math.ceil(p / at * (1 - 1e-9)),
  sorted: (p, at) => Math.log2(Math.max(2, at / p)) / p,
};

// The weights of neighbours in a grid: along log p, the cubic through four, or the line of two.
const cubic = (places, x, k) => {
  const first = Math.max(0, Math.min(k - 1, places.length - 4));
  const near = places.slice(first, first + 4).map((place, i) => [first + i, place]);
  return near.map(([i, place]) => [i, near.reduce(
    (part, [other, there]) => (other === i ? part : part * (x - there) / (place - there)), 1)]);
};

class Model {
  constructor(header, columns) {
    Object.assign(this, header);
    this.columns = columns;
    for (const name of ["parent", "region", "note", "main", "costAtBase", "modelled", "terms",
      "coefficients", "changed", "since", "before", "beforeCoefficients", "growth", "growthBelow",
      "growthText", "growthTextBelow", "cause"]) this[name] = columns[name]?.[0];
    this.size = this.parent.length;
    this.roots = [];
    this.children = Array.from({ length: this.size }, () => null);
    this.end = new Int32Array(this.size);
    this.depth = new Int32Array(this.size);
    for (let row = 0; row < this.size; row++) {
      const caller = this.parent[row];
      if (caller < 0) this.roots.push(row);
      else {
        (this.children[caller] ??= []).push(row);
        this.depth[row] = this.depth[caller] + 1;
      }
    }
    for (let row = this.size - 1; row >= 0; row--) {
      this.end[row] = Math.max(this.end[row], row + 1);
      const caller = this.parent[row];
      if (caller >= 0) this.end[caller] = Math.max(this.end[caller], this.end[row]);
    }
    // A call path is one of the main ones, or a number among all others.
    this.place = new Int32Array(this.size).fill(-1);
    this.main.forEach((row, k) => { this.place[row] = k; });
    this.other = new Int32Array(this.size);
    let others = 0;
    for (let row = 0; row < this.size; row++) if (this.place[row] < 0) this.other[row] = others++;
    this.others = others;
    this.logs = this.grid.map(({ at }) => Math.log(at));
    this.scales = [...this.seen, ...this.grid];
    this.stops = [...new Set(this.scales.map(({ at }) => at))].sort((a, b) => a - b);
    this.isLowered = this.grid.some((each) => each.isLowered);
  }
  name(row) { return this.names[this.region[row]] + this.notes[this.note[row]]; }
  fullName(row) { return this.full[this.region[row]] + this.notes[this.note[row]]; }
  path(row) {
    const found = [];
    for (let at = row; at >= 0; at = this.parent[at]) found.push(at);
    return found.reverse();
  }
  measured(row, k) { return this.columns.measured[0][k * this.size + row]; }

  // The models by themselves at p, as `Models.values`.
  alone(p) {
    const table = Float64Array.from(this.shapes, ([kind, ...numbers]) => SHAPES[kind](p, ...numbers));
    const value = new Float64Array(this.size), { coefficients, terms, modelled } = this;
    const slots = terms.length / this.size;
    for (let row = 0, at = 0, slot = 0; row < this.size; row++) {
      let sum = coefficients[at++];
      for (const last = slot + slots; slot < last; slot++) {
        const number = coefficients[at++], code = terms[slot];
        if (number && code >= 0) sum += number * table[code];
      }
      value[row] = modelled[row] ? Math.max(sum, 0) : NaN;
    }
    for (let k = 0; k < this.changed.length; k++) {
      if (p < this.since[k]) value[this.changed[k]] = this.earlier(k, (code) => table[code]);
    }
    return value;
  }
  // The same for one call path, which has few shapes.
  aloneOf(row, p) {
    const of = (code) => { const [kind, ...numbers] = this.shapes[code]; return SHAPES[kind](p, ...numbers); };
    this.laws ??= new Map([...this.changed].map((changed, k) => [changed, k]));
    const law = this.laws.get(row), slots = this.terms.length / this.size;
    if (law !== undefined && p < this.since[law]) return this.earlier(law, of);
    let sum = this.coefficients[row * (slots + 1)];
    for (let slot = 0; slot < slots; slot++) {
      const number = this.coefficients[row * (slots + 1) + slot + 1], code = this.terms[row * slots + slot];
      if (number && code >= 0) sum += number * of(code);
    }
    return this.modelled[row] ? Math.max(sum, 0) : NaN;
  }
  // The law before a change point.
  earlier(k, of) {
    const [constant, slope] = this.beforeCoefficients.subarray(2 * k, 2 * k + 2);
    return Math.max(constant + (slope && this.before[k] >= 0 ? slope * of(this.before[k]) : 0), 0);
  }
  // The ends of a band: those of the main call paths are numbers, the others codes around a value.
  ends(numbers, codes, row, value) {
    const place = this.place[row], other = this.other[row];
    if (place >= 0) return numbers ? [numbers[place], numbers[this.main.length + place]] : [NaN, NaN];
    if (!codes || codes[other] === NOTHING) return [NaN, NaN];
    const [low, high] = [codes[other], codes[this.others + other]];
    return [low === ENDLESS ? 0 : value * Math.exp(-low / CODES), value * Math.exp(high / CODES)];
  }
  lowered(k, row) {
    const place = this.place[row];
    return place >= 0 ? this.columns.lowered[k][place] : this.columns.loweredOthers[k][this.other[row]];
  }
  // By how much a prediction at a place of the grid is lowered: a factor.
  factor(where, row) {
    let log = 0;
    for (let i = 0; i < where.smooth.length; i++) {
      const part = this.lowered(where.smooth[i][0], row);
      if (part) log += where.smooth[i][1] * Math.log1p(-part);
    }
    return log ? Math.exp(Math.min(0, log)) || 0 : 1;
  }
  // Costs at the base, with those below; predictions expect nothing of call paths without a model.
  baseBelow(isMeasured) {
    this.bases ??= [];
    return this.bases[Number(isMeasured)] ??= this.summed(isMeasured ? this.costAtBase
      : this.costAtBase.map((cost, row) => (this.modelled[row] ? cost : NaN)));
  }
  // Sums over subtrees; NaN where nothing of the subtree is known.
  summed(own) {
    const { size, parent } = this, sum = new Float64Array(size), known = new Uint8Array(size);
    for (let row = size - 1; row >= 0; row--) {
      if (own[row] === own[row]) {
        sum[row] += own[row];
        known[row] = 1;
      }
      const caller = parent[row];
      if (!known[row]) sum[row] = NaN;
      else if (caller >= 0) {
        sum[caller] += sum[row];
        known[caller] = 1;
      }
    }
    return sum;
  }
  // Where p is among the targets: at a measured scale, at a target of the grid, or between two.
  where(p) {
    const seen = this.seen.findIndex(({ at }) => at === p);
    if (seen >= 0) return { seen, smooth: [], linear: [[seen, 1]], at: p };
    const exact = this.grid.findIndex(({ at }) => at === p);
    if (exact >= 0) return { seen: -1, smooth: [[exact, 1]], linear: [[this.seen.length + exact, 1]], at: p };
    const x = Math.log(p), next = this.logs.findIndex((place) => place > x);
    if (next < 1) return null;
    const part = (x - this.logs[next - 1]) / (this.logs[next] - this.logs[next - 1]);
    const left = this.seen.length + next - 1;
    return {
      seen: -1, smooth: cubic(this.logs, x, next - 1), linear: [[left, 1 - part], [left + 1, part]], at: p,
    };
  }
  at(p) {
    const where = this.where(p);
    return where && this.valuesOf(where);
  }
  valuesOf(where) { return new Values(this, where); }
  get largest() { return this.points.at(-1); }
}

// Values of all call paths at one target, exclusive and inclusive.
class Values {
  constructor(model, where) {
    Object.assign(this, { model, where, p: where.at, isMeasured: where.seen >= 0 });
    this.isBetween = where.linear.length > 1;
    const mine = (name) => this.number(({ [name]: held }) => held);
    this.whole = mine("whole");
    [this.total, this.low, this.high] = [0, 1, 2].map((k) => this.number(({ total }) => total[k]));
    // Between two targets, some bands are not smooth; they are not shown there.
    this.interval = where.linear.length > 1 ? where.linear[0][0] - model.seen.length : -1;
    if (model.isRough[this.interval]) this.low = this.high = NaN;
    this.isUnknown = where.linear.some(([k]) => model.scales[k].unknown);
    this.loss = { runTime: mine("runTime"), ofTarget: mine("ofTarget"), expected: mine("expected") };
    this.own = this.exclusive();
    this.below = model.summed(this.own);
  }
  // A number of the whole program; between two targets, it lies on a line in logarithms.
  number(of) {
    const { scales } = this.model, ends = this.where.linear;
    if (ends.some(([k]) => of(scales[k]) === null)) return NaN;
    if (ends.length === 1) return of(scales[ends[0][0]]);
    const near = this.where.smooth.map(([k, weight]) => [of(this.model.grid[k]), weight]);
    if (near.some(([value]) => value === null || !(value > 0))) {
      return ends.reduce((sum, [k, weight]) => sum + weight * of(scales[k]), 0);
    }
    return Math.exp(near.reduce((sum, [value, weight]) => sum + weight * Math.log(value), 0));
  }
  exclusive() {
    const { model, where } = this;
    if (this.isMeasured) {
      const k = model.points.indexOf(this.p);
      return model.columns.measured[0].slice(k * model.size, (k + 1) * model.size);
    }
    const value = model.alone(this.p);
    if (where.smooth.some(([k]) => model.grid[k].isLowered)) {
      for (let row = 0; row < model.size; row++) value[row] *= model.factor(where, row);
    }
    return value;
  }
  value(row, inclusive) { return (inclusive ? this.below : this.own)[row]; }
  share(row, inclusive) { return this.value(row, inclusive) / this.whole; }
  // The cost per process beyond the expected one.
  lost(row, inclusive) {
    const { ofTarget, expected } = this.loss, value = this.value(row, inclusive);
    if (Number.isNaN(value) && !this.isMeasured) return NaN;
    const before = (inclusive ? this.model.baseBelow(this.isMeasured) : this.model.costAtBase)[row];
    const counts = inclusive || this.isMeasured || this.model.modelled[row];
    return ofTarget * (value || 0) - (counts ? before || 0 : 0) * expected;
  }
  excess(row, inclusive) { return this.lost(row, inclusive) / this.loss.runTime; }
  // The band or the interval of a value; between two targets, its distance lies on a line.
  band(row, inclusive) {
    const value = this.value(row, inclusive), ends = this.where.linear;
    if (Number.isNaN(value)) return [NaN, NaN];
    if (ends.length === 1) return this.stored(ends[0][0], row, inclusive, value);
    if (this.isRough(row, inclusive)) return [NaN, NaN];
    const away = [0, 0];
    for (const [k, weight] of ends) {
      const there = this.model.valuesAt(k).value(row, inclusive);
      const found = this.stored(k, row, inclusive, there);
      away[0] += weight * Math.log(found[0] / there);
      away[1] += weight * Math.log(found[1] / there);
    }
    return Number.isNaN(away[1]) ? [value ? NaN : 0, value ? NaN : 0]
      : [value * Math.exp(away[0]), value * Math.exp(away[1])];
  }
  isRough(row, inclusive) {
    const rough = this.model.columns.rough?.[this.interval];
    return Boolean(rough && rough[row] & (inclusive ? 2 : 1));
  }
  stored(k, row, inclusive, value) {
    const name = inclusive ? "Below" : "", { columns } = this.model;
    return this.model.ends(columns[`ends${name}`]?.[k], columns[`codes${name}`]?.[k], row, value);
  }
  trust(row, inclusive) {
    if (this.isRough(row, inclusive)) return -1;
    const columns = this.model.columns[inclusive ? "trustBelow" : "trust"];
    return Math.min(...this.where.linear.map(([k]) => columns[k][row]));
  }
}
// The values at the targets of the grid are needed between them; the last two are kept.
Model.prototype.valuesAt = function (k) {
  this.kept ??= [];
  let found = this.kept.find((each) => each.k === k);
  if (!found) {
    const { at } = this.scales[k], place = this.grid.findIndex((each) => each.at === at);
    const where = k < this.seen.length ? this.where(at)
      : { seen: -1, smooth: [[place, 1]], linear: [[k, 1]], at };
    found = { k, values: new Values(this, where) };
    this.kept = [found, ...this.kept].slice(0, 2);
  }
  return found.values;
};
