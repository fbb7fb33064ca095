// Lets a reader point at what a figure shows: the same spec, drawn by Vega in the browser.
// It is loaded when a reader asks for it, and never asks another server for anything.
"use strict";

const SCRIPTS = ["vega", "vega-lite", "vega-embed"];

function load(address) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = address;
    script.onload = resolve;
    script.onerror = () => reject(new Error(`no ${address}`));
    document.head.append(script);
  });
}

let loaded = null;

function vega() {
  loaded ??= SCRIPTS.reduce(
    (before, name) => before.then(() => load(`/pages/scripts/${name}.js`)),
    Promise.resolve(),
  );
  return loaded;
}

// What the report says of the mark, without what only places it in the picture.
function told(row, sanitize) {
  const lines = Object.entries(row)
    .filter(([name]) => !/^(no_|_|place)/.test(name))
    .map(([name, value]) => {
      const shown = typeof value === "number" ? Number(value.toPrecision(4)) : value;
      return `<tr><td class="key">${sanitize(name)}</td><td>${sanitize(shown)}</td></tr>`;
    });
  return `<table>${lines.join("")}</table>`;
}

async function explore(figure, button) {
  button.setAttribute("aria-busy", "true");
  try {
    const [answer] = await Promise.all([fetch(figure.dataset.spec), vega()]);
    if (!answer.ok) throw new Error(`answered ${answer.status}`);
    const spec = await answer.json();
    spec.config.mark = { ...spec.config.mark, tooltip: { content: "data" } };
    const place = document.createElement("div");
    // Pages forbid what would make code of text, and styles that are not in files.
    await vegaEmbed(place, spec, {
      ast: true,
      actions: false,
      defaultStyle: false,
      renderer: "svg",
      tooltip: { disableDefaultStyle: true, formatTooltip: told },
    });
    const picture = figure.querySelector("svg.chart");
    const words = document.createElement("figcaption");
    const title = document.createElement("strong");
    const note = document.createElement("p");
    title.textContent = picture.querySelector("title").textContent;
    note.textContent = picture.querySelector("desc").textContent;
    note.className = "hint";
    words.append(title, note);
    picture.replaceWith(words, place);
    button.remove();
  } catch {
    button.removeAttribute("aria-busy");
    button.textContent = "Could not be loaded; try again";
  }
}

for (const figure of document.querySelectorAll("figure.chart[data-spec]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet";
  button.textContent = "Point at values";
  button.addEventListener("click", () => explore(figure, button));
  figure.insertBefore(button, figure.querySelector("details"));
}
