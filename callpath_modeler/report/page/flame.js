// The flame graph: callers above callees; the width is the inclusive cost.
const COLOURS = {
  growth: ["#f2ece0", "#f0e442", "#f0b050", "#e08030", "#d05a10"],
  causes: ["#9ecae1", "#f0b050", "#b3a2d8", "#8fce9f", "#f2c4d6", "#d9d9c3", "#c9c9c9"],
  unknown: "#cccccc", plain: "#efc98b", doubted: "#dcdcdc",
};
// Families of causes, in the order of their colours.
const FAMILIES = [
  ["waits", (text) => text.startsWith("waits")], ["imbalance", (text) => text === "imbalance"],
  ["collective", (text) => text.startsWith("collective")],
  ["more messages or longer ones", (text) => text.endsWith("messages")],
  ["more work", (text) => text === "more work"], ["unexplained", (text) => text === "unexplained"],
];
const mixed = (part) => {
  const end = part > 0 ? [213, 94, 0] : [86, 180, 233], by = Math.min(1, Math.abs(part));
  return `rgb(${[242, 236, 224].map((from, k) => Math.round(from + (end[k] - from) * by)).join()})`;
};
// Levels of the flame graph, and callers above a zoomed one.
const DEEPEST = 400, CALLERS = 100;

class Flame {
  zoomTo(row) {
    this.zoom = row;
    this.showFlame();
    if (row >= 0) this.select(row);
  }
  // The values that are the widths of frames.
  framed() { return this.values; }
  frames(width) {
    const { model } = this, { own } = this.framed(), cost = new Float64Array(model.size);
    for (let row = model.size - 1; row >= 0; row--) {
      cost[row] += own[row] > 0 && own[row] < Infinity ? own[row] : 0;
      if (model.parent[row] >= 0) cost[model.parent[row]] += cost[row];
    }
    // Chains of calls may be 50,000 calls deep.
    const above = this.zoom >= 0 ? model.path(this.zoom).slice(0, -1).slice(-CALLERS) : [];
    const start = this.zoom >= 0 ? [this.zoom] : model.roots;
    const whole = start.reduce((sum, row) => sum + cost[row], 0), frames = [];
    above.forEach((row, depth) => frames.push({ row, depth, x: 0, w: width, isAbove: true }));
    const todo = [[start, above.length, 0]];
    while (todo.length && whole > 0) {
      const [family, depth, from] = todo.pop();
      let x = from, rest = 0, count = 0;
      for (const row of family) {
        const w = cost[row] / whole * width;
        if (w < 2) { rest += w; count += w > 0 ? model.end[row] - row : 0; continue; }
        frames.push({ row, depth, x, w });
        if (model.children[row] && depth < DEEPEST) todo.push([model.children[row], depth + 1, x]);
        x += w;
      }
      if (rest >= 0.5) frames.push({ row: -1, depth, x, w: rest, count });
    }
    return frames;
  }
  colourOf(row) {
    const { model, values } = this;
    if (this.colour === "growth") {
      return model.growth[row] < 0 ? COLOURS.unknown : COLOURS.growth[model.growthClasses[model.growth[row]]];
    }
    if (this.colour === "excess") {
      const spent = values.loss.ofTarget * values.below[row];
      return spent > 0 ? mixed(values.lost(row, true) / spent || 0) : mixed(0);
    }
    if (this.colour === "share") {
      const [was, now] = [this.beside, values].map((each) => each.share(row, true) || 0);
      return mixed(Math.max(was, now) > 0 ? (now - was) / Math.max(was, now) : 0);
    }
    if (this.colour === "cause") {
      const family = FAMILIES.findIndex(([, is]) => is(this.causeText(row)));
      return family < 0 ? COLOURS.causes.at(-1) : COLOURS.causes[family];
    }
    return COLOURS.plain;
  }
  legend() {
    const sample = (fill, text) => make("li", {},
      draw("svg", { viewBox: "0 0 14 11", width: 14, height: 11 }, draw("rect", { width: 14, height: 11, fill })), text);
    return make("ul", { className: "legend" }, ...this.samples(sample));
  }
  samples(sample) {
    const { colour, model } = this;
    const items = {
      growth: () => [...model.growthNames.map((name, k) => sample(COLOURS.growth[k], name)), sample(COLOURS.unknown, "no model")],
      excess: () => [[-1, "−100 %"], [0, "0 %"], [0.5, "+50 %"], [1, "+100 % of the cost is excess work"]].map(([part, text]) => sample(mixed(part), text)),
      share: () => [[-1, "share has shrunk"], [0, "same share"], [1, `share has grown since ${model.parameter} = ${scaleText(this.beside.p)}`]].map(([part, text]) => sample(mixed(part), text)),
      cause: () => [...FAMILIES.map(([name], k) => sample(COLOURS.causes[k], name)), sample(COLOURS.causes.at(-1), "not known, or nothing grows")],
      none: () => [],
    };
    return items[colour]();
  }
  showFlame() {
    // Asking for the width would lay out the whole page at each step of the slider.
    this.width ||= this.flame.clientWidth;
    const width = this.width - 2, HEIGHT = 19, LETTER = 6.9;
    if (width < 0) return;
    const frames = this.frames(width), levels = 1 + frames.reduce((most, { depth }) => Math.max(most, depth), 0);
    this.out.disabled = this.zoom < 0;
    const drawn = frames.map(({ row, depth, x, w, isAbove, count }) => {
      const room = Math.floor((w - 6) / LETTER), y = depth * HEIGHT;
      const name = row < 0 ? "" : this.model.name(row);
      const text = room < 3 ? "" : name.length <= room ? name : `${name.slice(0, room - 1)}…`;
      const found = draw("g", { class: "frame" },
        draw("rect", { x, y, width: Math.max(0.5, w - 0.6), height: HEIGHT - 1, fill: row < 0 ? "#e4e4e4" : this.colourOf(row) }));
      if (text) {
        const label = draw("text", { x: x + 3, y: y + 13 });
        label.textContent = text;
        found.append(label);
      }
      if (row < 0) {
        found.classList.add("several");
        const title = draw("title");
        title.textContent = `${count} call paths, each too narrow for a frame`;
        found.append(title);
        return found;
      }
      this.line(row, found);
      found.setAttribute("role", "button");
      found.setAttribute("aria-label", `${name}, ${quantity(this.framed().below[row], this.model.unit)}`);
      found.classList.toggle("above", Boolean(isAbove));
      found.classList.toggle("found", Boolean(this.found?.[row]));
      return found;
    });
    const svg = draw("svg", { width, height: levels * HEIGHT, role: "group", "aria-label": "flame graph" }, ...drawn);
    const box = make("div", { className: "frames" }, svg);
    this.flame.replaceChildren(box, this.legend());
    if (!frames.length) this.flame.replaceChildren(make("p", { textContent: "No call path has a cost here." }));
    this.mark(this.selected);
  }
}
