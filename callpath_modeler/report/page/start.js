// Starts the page: unpacks its data, and opens folded sections for print.
const start = async () => {
  const data = document.getElementById("data"), place = document.getElementById("explore");
  if (!data || !place || !globalThis.DecompressionStream) return;
  const model = await unpack(data.textContent);
  data.remove();
  document.documentElement.classList.add("live");
  place.hidden = false;
  const explorer = new (model.former ? PairExplorer : Explorer)(model, place);
  const follow = (hash) => {
    const row = model.main[model.ids.findIndex((id) => `#c-${id}` === hash)];
    if (row === undefined) return;
    explorer.select(row);
    place.scrollIntoView();
  };
  addEventListener("hashchange", () => follow(location.hash));
  follow(location.hash);
  // In a frame of a notebook, a link to a part of the page would load the notebook into the frame.
  if (location.protocol === "about:") {
    document.addEventListener("click", (event) => {
      const hash = event.target.closest("a")?.getAttribute("href");
      if (!hash?.startsWith("#")) return;
      event.preventDefault();
      document.getElementById(hash.slice(1))?.scrollIntoView();
      follow(hash);
    });
  }
  document.documentElement.dataset.ready = "yes";
};
start();
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("#tree details:not([open]), #making details:not([open])")) {
    fold.open = true;
    fold.dataset.folded = "yes";
  }
});
addEventListener("afterprint", () => document.querySelectorAll("[data-folded]").forEach((fold) => {
  fold.open = false;
  delete fold.dataset.folded;
}));
