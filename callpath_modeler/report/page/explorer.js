// The interactive part of the page: one target and one selected call path, shown in all views.
// Names are only ever read and written as text.
const FIRST = 100, MOST_LINES = 400, LEAST = 0.01;

const field = (text, input) => make("label", {}, make("span", { textContent: text }), input);
const options = (held, ...pairs) => make("select", {}, ...pairs.map(([value, textContent]) =>
  make("option", { value, textContent, selected: value === held })));

// The k-th smallest key, or the largest one: the heap has the k smallest ones, the largest of them
// first. So not all keys are sorted.
const smallest = (keys, k) => {
  const heap = new Float64Array(k);
  let size = 0;
  const sink = (key) => {
    let at = 0;
    for (let next = 1; next < size; next = 2 * at + 1) {
      if (next + 1 < size && heap[next + 1] > heap[next]) next++;
      if (heap[next] <= key) break;
      heap[at] = heap[next];
      at = next;
    }
    heap[at] = key;
  };
  for (const key of keys) {
    if (Number.isNaN(key)) continue;
    if (size === k) {
      if (key < heap[0]) sink(key);
      continue;
    }
    let at = size++;
    for (let above = (at - 1) >> 1; at > 0 && heap[above] < key; above = (at - 1) >> 1) {
      heap[at] = heap[above];
      at = above;
    }
    heap[at] = key;
  }
  return size ? heap[0] : NaN;
};

class Explorer extends Flame {
  constructor(model, place) {
    super();
    Object.assign(this, {
      model, place, inclusive: model.inclusive, selected: -1, zoom: -1, words: "", shown: FIRST,
      up: false, tab: "ranking", open: new Set(), all: new Set(), ...this.atFirst(model),
    });
    this.build();
    this.setTarget(model.target);
    this.select(this.order()[0][0] ?? 0);
  }

  atFirst(model) {
    return { key: "value", colour: model.measuredOnly ? "none" : "growth",
      beside: model.at(this.besideOf(model)) };
  }
  colours() {
    return [["growth", "growth"], ["excess", "excess work"], ["cause", "cause"],
      ["share", "change of share"], ["none", "none"]];
  }
  // Controls besides those of the target, the values and the search.
  choices() {
    const { model } = this, other = options(String(this.beside.p), ...model.stops.map((p) => [String(p), scaleText(p)]));
    other.addEventListener("change", () => { this.beside = model.at(Number(other.value)); this.show(); });
    return [field(`compare with ${model.parameter}`, other)];
  }
  // The scale beside the target, at first: the largest measured one.
  besideOf(model) {
    const { points, target } = model, last = points.at(-1);
    return target > last || points.length < 2 ? last : points[0];
  }
  // Controls.
  build() {
    const { model } = this, last = model.stops.length - 1;
    this.slider = make("input", { type: "range", min: 0, max: last, step: 1, ariaLabel: `target ${model.parameter}` });
    this.slider.disabled = last < 1;
    this.target = make("input", { type: "text", inputMode: "decimal", autocomplete: "off", size: 8 });
    this.basis = make("output", { className: "basis", role: "status" });
    this.search = make("input", { type: "search", placeholder: "name of a call path", autocomplete: "off" });
    this.kind = options(String(this.inclusive), ["false", "exclusive"], ["true", "inclusive"]);
    this.paint = options(this.colour, ...this.colours());
    this.matches = make("output", { className: "aside" });
    this.slider.addEventListener("input", () => this.setTarget(model.stops[this.slider.value]));
    this.target.addEventListener("change", () => this.typed());
    this.search.addEventListener("input", () => { this.words = this.search.value.toLowerCase(); this.shown = FIRST; this.show(); });
    this.kind.addEventListener("change", () => { this.inclusive = this.kind.value === "true"; this.show(); });
    this.paint.addEventListener("change", () => { this.colour = this.paint.value; this.showFlame(); });
    this.told = make("p", { className: "lede", role: "status" });
    const tools = make("div", { className: "tools" },
      field(`target ${model.parameter}`, this.target),
      make("label", { className: "slide" }, this.basis, this.slider),
      ...this.choices(), field("values", this.kind), field("find", this.search), this.matches);
    this.list = make("div", { className: "list" });
    this.flame = make("div", { className: "flame" });
    this.details = make("div", { className: "details", role: "region", ariaLabel: "selected call path" });
    this.tip = make("div", { className: "tip", hidden: true });
    this.out = make("button", { type: "button", textContent: "Zoom out" });
    this.out.addEventListener("click", () => this.zoomTo(-1));
    this.tabs = ["ranking", "tree"].map((name) => {
      const tab = make("button", { type: "button", role: "tab", textContent: { ranking: "Ranking", tree: "Call tree" }[name] });
      tab.addEventListener("click", () => { this.tab = name; this.showList(); });
      return [name, tab];
    });
    this.place.append(this.told, tools,
      make("div", { className: "bar" }, make("h3", { textContent: "Flame graph" }), field("colour", this.paint), this.out),
      this.flame,
      make("div", { className: "panes" },
        make("div", { className: "pane" },
          make("div", { className: "tabs", role: "tablist" }, ...this.tabs.map(([, tab]) => tab)), this.list),
        this.details),
      this.tip);
    this.place.addEventListener("keydown", (event) => this.pressed(event));
    this.place.addEventListener("pointermove", (event) => this.hover(event));
    this.place.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    const chosen = (act) => (event) => {
      const line = event.target.closest("[data-row]");
      if (line) act(Number(line.dataset.row));
    };
    this.place.addEventListener("click", chosen((row) => this.select(row)));
    this.place.addEventListener("dblclick", chosen((row) => this.zoomTo(row)));
    new ResizeObserver(() => {
      if (this.width === this.flame.clientWidth) return;
      this.width = this.flame.clientWidth;
      this.showFlame();
    }).observe(this.flame);
    // Asking whether the page is printed would lay it out at each step of the slider.
    matchMedia("print").addEventListener("change", ({ matches }) => {
      this.isPrinted = matches;
      this.showDetails();
    });
  }
  typed() {
    const p = Number(this.target.value.trim().replaceAll(",", ""));
    if (this.target.value.trim() && this.model.where(p)) return this.setTarget(p);
    const { stops, measuredOnly } = this.model, ends = [stops[0], stops.at(-1)].map(scaleText);
    this.target.setAttribute("aria-invalid", "true");
    this.basis.textContent = measuredOnly ? `measured scales: ${stops.map(scaleText).join(", ")}`
      : `This page knows targets from ${ends[0]} to ${ends[1]}. Use cpmodel report --target for others.`;
  }
  setTarget(p) {
    const { model } = this, values = model.at(p), { largest } = model;
    if (!values) return;
    this.values = values;
    this.target.value = scaleText(p);
    this.target.removeAttribute("aria-invalid");
    const near = model.stops.findIndex((stop) => stop >= p);
    this.slider.value = near;
    this.slider.ariaValueText = `${model.parameter} = ${scaleText(p)}`;
    const times = p > largest ? `, ${significant(p / largest).replace(/\.?0+$/, "")} × the largest run` : "";
    const between = values.isBetween ? `; ${this.between}` : "";
    this.basis.textContent = `${values.isMeasured ? "measured" : "predicted"}${times}${between}`;
    this.show();
  }
  get between() { return "bands are interpolated, or left out where they are not smooth"; }
  // The value of the program at the target.
  total() {
    const { model, values } = this, band = bandText([values.low, values.high], model.unit);
    const unknown = band === "-" ? "not known; choose a target of the slider" : band;
    const amount = values.isUnknown ? unknown : `${quantity(values.total, model.unit)}${band === "-" ? "" : ` (${band})`}`;
    return [make("data", { value: String(values.total) }, make("strong", { textContent: amount }))];
  }
  show() {
    const { model, values } = this, at = `at ${model.parameter} = ${scaleText(values.p)}${model.held && `, ${model.held}`}`;
    this.told.replaceChildren(`${model.metric} of the program ${at}: `, ...this.total());
    this.found = null;
    if (this.words) {
      const names = model.full.map((name) => name.toLowerCase().includes(this.words));
      this.found = new Uint8Array(model.size);
      let count = 0;
      for (let row = 0; row < model.size; row++) {
        const isNamed = names[model.region[row]]
          || (model.note[row] && model.fullName(row).toLowerCase().includes(this.words));
        if (isNamed) count += this.found[row] = 1;
      }
      this.matches.textContent = `${count} of ${model.size} call paths`;
    } else this.matches.textContent = "";
    this.showList();
    this.showFlame();
    this.showDetails();
  }

  // Selection.
  select(row) {
    const before = this.selected;
    this.selected = row;
    for (let at = this.model.parent[row]; at >= 0; at = this.model.parent[at]) this.open.add(at);
    const isListed = (each) => this.list.querySelector(`[data-row="${each}"]`);
    if (this.tab === "tree" && !isListed(row)) {
      for (let at = row; at >= 0; at = this.model.parent[at]) this.all.add(this.model.parent[at]);
      this.showList();
    }
    for (const each of [before, row]) this.mark(each);
    this.showDetails();
  }
  mark(row) {
    const isOn = row === this.selected;
    for (const found of this.place.querySelectorAll(`[data-row="${row}"]`)) {
      found.classList.toggle("chosen", isOn);
      if (found.matches("tr, .node")) {
        found.ariaSelected = String(isOn);
        found.tabIndex = isOn ? 0 : -1;
      }
    }
  }
  pressed(event) {
    const line = event.target.closest("[data-row]"), step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") this.zoomTo(-1);
    if (event.key === "/" && !event.target.matches("input")) {
      event.preventDefault();
      this.search.focus();
    }
    if (!line || event.target.matches("input, select")) return;
    const row = Number(line.dataset.row);
    if (event.key === "Enter") this.zoomTo(row);
    let next = null;
    if (line.matches("g")) {
      const near = (this.model.children[this.model.parent[row]] ?? this.model.roots)
        .filter((each) => this.flame.querySelector(`[data-row="${each}"]`));
      const beside = near[near.indexOf(row) + ({ ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? NaN)];
      const target = event.key === "ArrowUp" ? this.model.parent[row]
        : event.key === "ArrowDown" ? this.model.children[row]?.[0] : beside;
      next = target >= 0 ? this.flame.querySelector(`[data-row="${target}"]`) : null;
    } else if (step) {
      const lines = [...this.list.querySelectorAll("[data-row]")];
      next = lines[lines.indexOf(line) + step];
    } else if (line.matches(".node") && (event.key === "ArrowRight" || event.key === "ArrowLeft")) {
      event.preventDefault();
      this.fold(row, event.key === "ArrowRight");
      this.list.querySelector(`[data-row="${row}"]`)?.focus();
    }
    if (!next) return;
    event.preventDefault();
    this.select(Number(next.dataset.row));
    next.focus();
  }
  line(row, found) {
    found.dataset.row = row;
    found.tabIndex = row === this.selected ? 0 : -1;
    found.ariaSelected = String(row === this.selected);
    found.classList.toggle("chosen", row === this.selected);
    return found;
  }
  // The tip of the call path under the pointer.
  hover(event) {
    const line = event.target.closest?.("[data-row]");
    if (line) {
      this.tip.replaceChildren(...this.facts(Number(line.dataset.row)).map((textContent, k) =>
        make(k ? "div" : "strong", { textContent })));
      const { clientWidth: wide, clientHeight: high } = document.documentElement;
      this.tip.hidden = false;
      const { offsetWidth, offsetHeight } = this.tip, below = event.clientY + 16;
      this.tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, wide - offsetWidth - 4))}px`;
      this.tip.style.top = `${below + offsetHeight < high ? below : event.clientY - offsetHeight - 10}px`;
    }
    this.tip.hidden = !line;
  }
  facts(row) {
    const { model, values } = this, { unit } = model;
    const told = (word, inclusive) => {
      const value = values.value(row, inclusive), band = bandText(values.band(row, inclusive), unit);
      return `${word} ${quantity(value, unit)}${band === "-" ? "" : ` (${band})`}, ${percent(values.share(row, inclusive))}`;
    };
    const lost = [false, true].map((inclusive) => percent(values.excess(row, inclusive), 1));
    return [
      model.fullName(row), told("exclusive", false), told("inclusive", true),
      ...(lost[0] === "-" || values.p <= model.base ? [] : [`excess work ${lost[0]} exclusive, ${lost[1]} inclusive`]),
      ...(values.p === this.beside.p ? [] : [`at ${model.parameter} = ${scaleText(this.beside.p)}: `
        + `${quantity(this.beside.value(row, false), unit)} exclusive, ${quantity(this.beside.value(row, true), unit)} inclusive`]),
      ...(model.measuredOnly ? [] : [`growth ${this.growthText(row, false)}`]),
      ...(this.causeText(row) === "-" ? [] : [`cause at ${model.causesAt}: ${this.causeText(row)}`]),
    ];
  }
  growthText(row, inclusive) {
    const code = (inclusive ? this.model.growthTextBelow : this.model.growthText)[row];
    return code < 0 ? "no model" : this.model.growthTexts[code];
  }
  causeText(row) { return this.model.cause[row] < 0 ? "-" : this.model.causes[this.model.cause[row]]; }
  number(value, textContent) {
    return Number.isFinite(value) ? make("data", { value: String(value), textContent }) : textContent;
  }

  // The ranking.
  keys() {
    const { model, values, inclusive } = this;
    const codes = inclusive ? model.growthBelow : model.growth;
    return {
      known: (row) => values.value(row, inclusive),
      name: (row) => (this.byName ??= this.places(model.names))[model.region[row]],
      measured: (row) => this.beside.value(row, inclusive),
      ratio: (row) => values.value(row, inclusive) / this.beside.value(row, inclusive),
      value: (row) => values.value(row, inclusive),
      band: (row) => values.band(row, inclusive)[1],
      share: (row) => values.share(row, inclusive),
      excess: (row) => values.excess(row, inclusive),
      growth: (row) => codes[row],
      trust: (row) => values.trust(row, inclusive),
      cause: (row) => (this.byCause ??= this.places(model.causes))[model.cause[row]] ?? NaN,
    };
  }
  // The first call paths in the order of the ranking, and how many there are.
  order() {
    const { model } = this, of = this.keys()[this.key], sign = this.up ? 1 : -1;
    const keys = new Float64Array(model.size), { known } = this.keys();
    let count = 0;
    for (let row = 0; row < model.size; row++) {
      const isListed = (!this.found || this.found[row]) && !Number.isNaN(known(row));
      const key = isListed ? sign * of(row) : NaN;
      count += Number(isListed);
      // Unknown keys are last, and call paths that are not listed have none.
      keys[row] = isListed && Number.isNaN(key) ? Infinity : key;
    }
    const last = smallest(keys, this.shown), first = [];
    for (let row = 0; row < model.size; row++) if (keys[row] <= last) first.push(row);
    first.sort((a, b) => (keys[a] === keys[b] ? a - b : keys[a] - keys[b]));
    return [first.slice(0, this.shown), count];
  }
  // The places of texts in their order, so that names sort as numbers.
  places(texts) {
    const order = texts.map((text, k) => [text, k]).sort(([a], [b]) => a.localeCompare(b));
    const found = [];
    order.forEach(([, k], place) => { found[k] = place; });
    return found;
  }
  columns() {
    const { model, values, inclusive } = this, { unit, parameter } = model;
    const of = this.keys(), scale = scaleText(values.p);
    const amount = (key, show) => (row) => this.number(of[key](row), show(of[key](row), row));
    const isSame = values.p === this.beside.p;
    const hasLoss = values.p > model.base && !Number.isNaN(values.loss.expected) && !Number.isNaN(values.loss.runTime);
    return [
      ["name", "call path", (row) => this.pathText(row)],
      ...(isSame ? [] : [["measured", `${parameter}=${scaleText(this.beside.p)}`, amount("measured", (v) => quantity(v, unit))]]),
      ["value", `${parameter}=${scale}`, amount("value", (v) => quantity(v, unit))],
      ...(isSame ? [] : [["ratio", "change", amount("ratio", (v) => changeText(v))]]),
      ["band", values.isMeasured ? "interval" : "band", amount("band", (v, row) => bandText(values.band(row, inclusive), unit))],
      ["share", "share", amount("share", (v) => percent(v))],
      ...(hasLoss ? [["excess", "excess", amount("excess", (v) => percent(v, 1))]] : []),
      ...(model.measuredOnly ? [] : [["growth", "growth", (row) => this.growthText(row, inclusive)]]),
      ...(model.measuredOnly ? [] : [["trust", "trust", (row) => this.marks(of.trust(row))]]),
      ...(model.causes.length ? [["cause", "cause", (row) => this.causeText(row)]] : []),
    ];
  }
  marks(count) {
    if (count < 0) return "";
    const told = `${count} of ${this.model.marks} marks`;
    return make("span", { role: "img", ariaLabel: told, title: told,
      textContent: "●".repeat(count) + "○".repeat(this.model.marks - count) });
  }
  pathText(row) {
    const path = this.model.path(row), ends = path.length > 40 ? [...path.slice(0, 2), ...path.slice(-38)] : path;
    const names = ends.map((each) => this.model.name(each));
    if (names.length > 1 && names[0] === "<program>") names.shift();
    const shown = names.length > 4 ? [names[0], "…", ...names.slice(-2)] : names;
    const found = make("code", { title: names.join("/").slice(0, 600) });
    shown.forEach((name, k) => found.append(...(k ? ["/", make("wbr")] : []), name));
    return found;
  }
  showList() {
    for (const [name, tab] of this.tabs) tab.ariaSelected = String(name === this.tab);
    if (this.tab === "tree") this.showTree(); else this.showRanking();
  }
  showRanking() {
    const [rows, count] = this.order(), columns = this.columns();
    const heads = columns.map(([key, title]) => {
      const button = make("button", { type: "button", textContent: title });
      button.addEventListener("click", () => {
        this.up = this.key === key ? !this.up : key === "name" || key === "cause";
        this.key = key;
        this.showList();
      });
      const head = make("th", { scope: "col", className: key }, button);
      if (key === this.key) head.ariaSort = this.up ? "ascending" : "descending";
      return head;
    });
    const body = rows.map((row, place) => this.line(row, make("tr", {},
      make("td", { className: "rank", textContent: String(place + 1) }),
      ...columns.map(([key, title, show]) => {
        const cell = make("td", { className: key }, show(row));
        cell.dataset.title = `${title}: `;
        return cell;
      }))));
    const table = make("table", {}, make("caption", { className: "unseen", textContent: "Call paths" }),
      make("thead", {}, make("tr", {}, make("th", { scope: "col", className: "rank", textContent: "#" }), ...heads)),
      make("tbody", {}, ...body));
    const more = count - body.length, button = make("button", {
      type: "button", className: "more", textContent: `${Math.min(more, FIRST)} of ${more} more` });
    button.addEventListener("click", () => { this.shown += FIRST; this.showList(); });
    this.list.replaceChildren(table, ...(more > 0 ? [button] : []),
      ...(count ? [] : [make("p", { textContent: "No call path matches." })]));
  }

  // The call tree: inclusive values; small call paths share a line.
  showTree() {
    const { model } = this, lines = [], sizes = this.sizes(), least = LEAST * this.values.whole;
    const kept = this.words ? this.ancestors() : null;
    const isOpen = (row) => this.open.has(row) || kept?.[row] === 2;
    const todo = [[-1, [...model.roots]]];
    if (!this.open.size) this.openHot();
    while (todo.length && lines.length < MOST_LINES) {
      const family = todo.at(-1), row = family[1].shift();
      if (row === undefined) { todo.pop(); continue; }
      if (row < 0) { lines.push(this.restLine(family[0], -row, todo.length)); continue; }
      lines.push(this.node(row, todo.length, isOpen(row)));
      if (!isOpen(row) || !model.children[row]) continue;
      const below = model.children[row].filter((each) => !kept || kept[each])
        .sort((a, b) => (sizes(b) || 0) - (sizes(a) || 0));
      const shown = this.all.has(row) || kept ? below : below.filter((each) => sizes(each) >= least);
      const rest = below.length - shown.length;
      todo.push([row, rest ? [...shown, -rest] : shown]);
    }
    const cut = lines.length >= MOST_LINES
      ? [make("p", { className: "aside", textContent: `Only the first ${MOST_LINES} lines are shown. Close a subtree.` })] : [];
    this.list.replaceChildren(make("div", { className: "outline", role: "tree", ariaLabel: "call tree" }, ...lines), ...cut);
  }
  // The size of a subtree: which call paths share a line, and in which order they are.
  sizes() { return (row) => this.values.below[row]; }
  openHot() {
    const sizes = this.sizes(), large = 0.2 * this.values.whole;
    let row = this.model.roots[0];
    while (row !== undefined) {
      this.open.add(row);
      const below = this.model.children[row] ?? [];
      for (const each of below) if (sizes(each) >= large) this.open.add(each);
      row = below.reduce((best, each) =>
        (best === undefined || sizes(each) > sizes(best) ? each : best), undefined);
    }
  }
  // Matches are 1, and the callers of matches 2.
  ancestors() {
    const found = Uint8Array.from(this.found);
    for (let row = found.length - 1; row >= 0; row--) {
      if (found[row] && this.model.parent[row] >= 0) found[this.model.parent[row]] = 2;
    }
    return found;
  }
  fold(row, isOpen) {
    if (isOpen) this.open.add(row); else this.open.delete(row);
    this.showList();
  }
  node(row, depth, isOpen) {
    const { model } = this, sign = make("span", { className: "fold", textContent: model.children[row] ? (isOpen ? "▾" : "▸") : "" });
    const cell = (className, ...told) => make("span", { className }, ...told);
    const name = make("code", { textContent: model.name(row), title: model.fullName(row) });
    const found = make("div", { className: "node", role: "treeitem" },
      cell("name", sign, name), ...this.cells(row).map(([kind, told]) => cell(kind, told)));
    if (this.found?.[row]) found.classList.add("found");
    found.ariaLevel = String(depth);
    if (model.children[row]) found.ariaExpanded = String(isOpen);
    found.firstChild.style.paddingLeft = `${Math.min(depth - 1, 24) * 0.8}rem`;
    sign.addEventListener("click", (event) => { event.stopPropagation(); this.fold(row, !isOpen); });
    return this.line(row, found);
  }
  cells(row) {
    const { model, values } = this, value = values.below[row];
    return [["value", this.number(value, quantity(value, model.unit))],
      ["band", bandText(values.band(row, true), model.unit)], ["share", percent(values.share(row, true))],
      ["growth", model.measuredOnly ? "" : this.growthText(row, true)]];
  }
  restLine(caller, count, depth) {
    const button = make("button", { type: "button", className: "more", textContent: `… ${count} more below ${percent(LEAST)}` });
    button.style.marginLeft = `${Math.min(depth - 1, 24) * 0.8}rem`;
    button.addEventListener("click", () => { this.all.add(caller); this.showList(); });
    return button;
  }

  // The formulas of a main call path.
  formulas(place) {
    const { model } = this;
    return place >= 0 && model.formulas[place] ? [`${model.metric}(${model.parameter}) = ${model.formulas[place]}`] : [];
  }
  charts(row) {
    const { model, values } = this;
    return model.points.length > 1 ? [chart([{ model, values, name: "" }], row)] : [];
  }
  // Details of the selected call path: numbers, chart, and its card where the page has one.
  showDetails() {
    const { model, values, selected: row } = this;
    if (row < 0 || !values) return;
    if (this.card) this.slot.replaceWith(this.card);
    this.card = this.slot = null;
    const place = model.place[row], id = place < 0 ? "" : model.ids[place];
    const path = model.path(row), shown = path.length > 7 ? [...path.slice(0, 2), -1, ...path.slice(-4)] : path;
    const few = shown.map((each) => {
      if (each < 0) return "…";
      if (each === row) return make("strong", { textContent: model.name(each) });
      const button = make("button", { type: "button", className: "crumb", textContent: model.name(each) });
      button.addEventListener("click", () => this.select(each));
      return button;
    });
    const [, ...facts] = this.facts(row), zoom = make("button", { type: "button", textContent: "Zoom the flame graph here" });
    zoom.addEventListener("click", () => this.zoomTo(row));
    const formula = this.formulas(place).map((text) => make("p", { className: "formula" },
      make("code", { textContent: text })));
    this.details.replaceChildren(
      make("p", { className: "crumbs" }, ...few.flatMap((each, k) => (k ? [" / ", each] : [each]))),
      ...facts.map((textContent) => make("p", { textContent })), ...formula,
      ...this.charts(row), make("p", {}, zoom),
      ...(id && model.show ? [make("p", { className: "command" }, make("code", { textContent: model.show.replace("@ID", `@${id}`) }))] : []));
    const card = id && !this.isPrinted && document.getElementById(`c-${id}`);
    if (card) {
      this.card = card;
      this.slot = make("span", { hidden: true });
      card.replaceWith(this.slot);
      this.details.append(card);
    }
  }
}
