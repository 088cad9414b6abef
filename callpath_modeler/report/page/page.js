"use strict";
// Everything is there without this: it sorts, filters and folds.
const make = (name, text) => Object.assign(document.createElement(name), { textContent: text });
const number = (cell) => {
  const told = cell.dataset.order ?? cell.querySelector("data")?.value;
  return told === undefined ? NaN : Number(told);
};
const sort = (body, at, up) => {
  const rows = [...body.rows].map((row) => [row.cells[at], row]);
  const byNumber = rows.some(([cell]) => !Number.isNaN(number(cell)));
  rows.sort(([a], [b]) => {
    if (!byNumber) return (up ? 1 : -1) * a.textContent.localeCompare(b.textContent);
    const [x, y] = [number(a), number(b)];
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
    return up ? x - y : y - x;
  });
  body.append(...rows.map(([, row]) => row));
};
const ranking = document.querySelector("#ranking table");
if (ranking) {
  const body = ranking.tBodies[0];
  const heads = [...ranking.tHead.rows[0].cells];
  heads.forEach((head, at) => {
    const button = make("button", head.textContent);
    button.type = "button";
    button.addEventListener("click", () => {
      const up = head.ariaSort ? head.ariaSort === "descending" : at < 2;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.ariaSort = up ? "ascending" : "descending";
      sort(body, at, up);
    });
    head.replaceChildren(button);
  });
  const field = make("input", "");
  field.type = "search";
  field.placeholder = "Filter call paths";
  field.setAttribute("aria-label", "Filter call paths");
  const told = make("span", "");
  told.setAttribute("role", "status");
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    let count = 0;
    for (const row of body.rows) {
      const code = row.querySelector("th code");
      row.hidden = !`${code.title} ${code.textContent}`.toLowerCase().includes(wanted);
      count += !row.hidden;
    }
    told.textContent = wanted ? `${count} of ${body.rows.length}` : "";
  });
  const tools = make("div", "");
  tools.className = "tools";
  tools.append(field, told);
  ranking.parentElement.before(tools);
}
const folds = [...document.querySelectorAll("#tree details")];
if (folds.length) {
  const tools = make("div", "");
  tools.className = "tools";
  for (const [text, open] of [["Open all", true], ["Close all", false]]) {
    const button = make("button", text);
    button.type = "button";
    button.addEventListener("click", () => folds.forEach((fold) => { fold.open = open; }));
    tools.append(button);
  }
  document.querySelector("#tree .wide").before(tools);
}
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("#tree details:not([open]), #making details:not([open])")];
  folded.forEach((fold) => { fold.open = true; });
});
addEventListener("afterprint", () => folded.forEach((fold) => { fold.open = false; }));
