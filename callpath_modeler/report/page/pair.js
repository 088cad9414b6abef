// Two experiments on one call tree. The model of the page is that of new, and its former is base.
const UNTESTED = 2, OF_SIDES = ["base.", "new."];

class Pair extends Model {
  constructor(header, columns) {
    const [base, now] = OF_SIDES.map((side, k) => {
      const own = Object.entries(columns).filter(([name]) => name.startsWith(side));
      const named = own.map(([name, column]) => [name.slice(side.length), column]);
      return [{ ...header, ...header.sides[k] }, { ...columns, ...Object.fromEntries(named) }];
    });
    super(...now);
    this.former = new Model(...base);
  }
  valuesOf(where) { return new PairValues(this, where); }
  get largest() { return Math.max(this.points.at(-1), this.former.points.at(-1)); }
}

// Values of both at one target. Intervals are known at the stops of the slider.
class PairValues extends Values {
  constructor(model, where) {
    super(model, where);
    this.former = new Values(model.former, where);
    this.stop = this.isBetween ? -1 : where.linear[0][0];
  }
  change(row, inclusive) {
    const [before, now] = [this.former, this].map((side) => side.value(row, inclusive));
    return Number.isNaN(before) && Number.isNaN(now) ? NaN : (now || 0) - (before || 0);
  }
  ratio(row, inclusive) {
    const [before, now] = [this.former, this].map((side) => side.value(row, inclusive));
    return before > 0 && now > 0 ? now / before : NaN;
  }
  gap(row, inclusive) {
    if (this.stop < 0) return [NaN, NaN];
    const name = inclusive ? "Below" : "", { columns } = this.model;
    return this.model.ends(columns[`gaps${name}`][this.stop], columns[`gapCodes${name}`][this.stop],
      row, this.ratio(row, inclusive));
  }
  // 1 = new is significantly worse, -1 = better, 0 = noise may explain the difference.
  mark(row, inclusive) {
    const marks = this.model.columns[inclusive ? "markBelow" : "mark"];
    return this.markOf((stop) => marks[stop][row]);
  }
  // Between two stops, noise may explain the difference if it does at one of them.
  markOf(at) {
    const [mark, ...others] = this.where.linear.map(([stop]) => at(stop));
    return others.length ? (mark === 0 || others.includes(0) ? 0 : UNTESTED) : mark;
  }
  // The change of the whole program: ratio, interval and mark.
  all(inclusive) {
    const known = this.model.ratios[this.stop]?.[Number(inclusive)];
    return { ratio: this.total / this.former.total,
      gap: known ? known.gap.map((end) => end ?? NaN) : [NaN, NaN],
      mark: this.markOf((stop) => this.model.ratios[stop][Number(inclusive)].mark) };
  }
}

const gapText = ([low, high]) => (Number.isNaN(low) ? "" : `${changeText(low)} … ${changeText(high)}`);
const DOUBT = "noise may explain the difference";
const VERDICTS = new Map([[1, "worse, beyond noise"], [-1, "better, beyond noise"], [0, DOUBT]]);

class PairExplorer extends Explorer {
  atFirst() { return { key: "change", colour: "change", sided: "new" }; }
  build() {
    super.build();
    this.place.classList.add("pair");
  }
  colours() {
    const growth = this.model.measuredOnly ? [] : [["growth", "change of growth"]];
    return [["change", "difference"], ...growth, ["none", "none"]];
  }
  choices() {
    const width = options(this.sided, ["new", "new"], ["base", "base"]);
    width.addEventListener("change", () => { this.sided = width.value; this.showFlame(); });
    return [field("frames", width)];
  }
  get between() { return "intervals are known at the stops of the slider"; }
  framed() { return this.sided === "base" ? this.values.former : this.values; }
  total() {
    const { model, values } = this, { ratio, gap, mark } = values.all(this.inclusive), { former } = values;
    const amount = ({ total }) => make("data", { value: String(total) },
      make("strong", { textContent: quantity(total, model.unit) }));
    const band = gapText(gap), told = this.changed(changeText(ratio), mark);
    return [amount(former), " in base, ", amount(values), " in new, ", told,
      ...(band ? [` (${percent(model.confidence)} interval ${band})`] : []),
      ...(mark === 0 ? [`; ${DOUBT}`] : [])];
  }
  // A change with its colour; ~ = noise may explain it.
  changed(text, mark) {
    if (mark === 0) return make("span", { textContent: `~ ${text}`, title: DOUBT });
    const className = { 1: "lost", "-1": "gained" }[mark];
    return make("span", { textContent: text, ...(className ? { className } : {}) });
  }
  // The change of one call path, or in which experiment alone it occurs.
  changeOf(row, inclusive) {
    const { values } = this, [before, now] = [values.former, values].map((side) => side.value(row, inclusive));
    if (Number.isNaN(before) !== Number.isNaN(now)) return make("span", { textContent: Number.isNaN(now) ? "gone" : "new" });
    return this.changed(changeText(values.ratio(row, inclusive)), values.mark(row, inclusive));
  }
  signed(value) { return `${value > 0 ? "+" : ""}${quantity(value, this.model.unit)}`; }
  growthText(row, inclusive) {
    const code = (inclusive ? this.model.growthTextBelow : this.model.growthText)[row];
    return code < 0 ? "" : this.model.growthTexts[code];
  }
  facts(row) {
    const { model, values } = this, { unit } = model;
    const told = (word, inclusive) => {
      const [was, is] = [values.former, values].map((side) => side.value(row, inclusive));
      if (Number.isNaN(was) !== Number.isNaN(is)) {
        return `${word}: only in ${Number.isNaN(is) ? `base, ${quantity(was, unit)}` : `new, ${quantity(is, unit)}`}`;
      }
      const [before, now] = [was, is].map((value) => quantity(value, unit));
      const gap = gapText(values.gap(row, inclusive)), verdict = VERDICTS.get(values.mark(row, inclusive));
      return `${word}: ${before} in base, ${now} in new, ${this.changeOf(row, inclusive).textContent}`
        + `${gap && ` (${gap})`}${verdict ? `: ${verdict}` : ""}`;
    };
    const growth = this.growthText(row, false);
    return [model.fullName(row), told("exclusive", false), told("inclusive", true), ...(growth ? [`growth ${growth}`] : [])];
  }
  sizes() {
    const { below, former } = this.values;
    return (row) => Math.max(below[row] || 0, former.below[row] || 0);
  }
  keys() {
    const { model, values, inclusive } = this, codes = inclusive ? model.growthBelow : model.growth;
    return {
      known: (row) => values.change(row, inclusive),
      name: (row) => (this.byName ??= this.places(model.names))[model.region[row]],
      base: (row) => values.former.value(row, inclusive),
      new: (row) => values.value(row, inclusive),
      change: (row) => Math.abs(values.change(row, inclusive)),
      ratio: (row) => values.ratio(row, inclusive),
      band: (row) => values.gap(row, inclusive)[1],
      growth: (row) => codes[row],
    };
  }
  columns() {
    const { model, values, inclusive } = this, { unit } = model;
    const amount = (side) => (row) => this.number(side.value(row, inclusive), quantity(side.value(row, inclusive), unit));
    return [
      ["name", "call path", (row) => this.pathText(row)],
      ["base", "base", amount(values.former)], ["new", "new", amount(values)],
      ["change", "difference", (row) => this.number(values.change(row, inclusive), this.signed(values.change(row, inclusive)))],
      ["ratio", "change", (row) => this.changeOf(row, inclusive)],
      ["band", "interval", (row) => gapText(values.gap(row, inclusive))],
      ...(model.measuredOnly ? [] : [["growth", "growth", (row) => this.growthText(row, inclusive)]]),
    ];
  }
  cells(row) {
    const { model, values } = this, { former } = values;
    return [["base", this.number(former.below[row], quantity(former.below[row], model.unit))],
      ["value", this.number(values.below[row], quantity(values.below[row], model.unit))],
      ["change", this.signed(values.change(row, true))], ["ratio", this.changeOf(row, true)]];
  }
  formulas(place) {
    const { model } = this;
    return place < 0 ? [] : [["base", model.former], ["new", model]].flatMap(([name, side]) =>
      (side.formulas[place] ? [`${name}: ${model.metric}(${model.parameter}) = ${side.formulas[place]}`] : []));
  }
  charts(row) {
    const { model, values } = this;
    if (Math.max(model.points.length, model.former.points.length) < 2) return [];
    return [chart([{ model, values, name: "new" }, { model: model.former, values: values.former, name: "base" }], row)];
  }
  colourOf(row) {
    const { values } = this;
    if (this.colour === "none") return COLOURS.plain;
    if (this.colour === "growth") return /[→~]/u.test(this.growthText(row, false)) ? COLOURS.growth[3] : mixed(0);
    const [before, now] = [values.former, values].map((side) => side.value(row, true) || 0);
    if (values.mark(row, true) === 0) return COLOURS.doubted;
    return mixed(Math.max(before, now) > 0 ? (now - before) / Math.max(before, now) : 0);
  }
  samples(sample) {
    if (this.colour === "none") return [];
    if (this.colour === "growth") {
      return [sample(COLOURS.growth[3], "another growth than before"), sample(mixed(0), "the same growth")];
    }
    return [...[[-1, "only in base"], [-0.5, "half"], [0, "same"], [0.5, "double"], [1, "only in new"]]
      .map(([part, text]) => sample(mixed(part), text)), sample(COLOURS.doubted, DOUBT)];
  }
}
