// Three sliders that move together: what is chosen with one is asked of the service, by htmx, and
// where the others are then, and the mark on the curve, is in its answer.
"use strict";

const outcome = document.getElementById("outcome");
const controls = [...document.querySelectorAll("#choose .control")].map((control) => ({
  radio: control.querySelector("[type=radio]"),
  field: control.querySelector("[type=number]"),
  slider: control.querySelector("[type=range]"),
}));

const place = ({ field, slider }) => {
  // Where there is no threshold, they stay where they are.
  if (!slider || field.value === "") return;
  slider.value = field.value;
  slider.setAttribute("aria-valuetext", `${field.value} ${slider.dataset.unit}`.trim());
};

for (const control of controls) {
  const { radio, field, slider } = control;
  field.addEventListener("input", () => {
    radio.checked = true;
    place(control);
  });
  if (!slider) continue;
  slider.hidden = false;
  place(control);
  slider.addEventListener("input", () => {
    // Steps are no round numbers in binary.
    field.value = Number(Number(slider.value).toPrecision(6));
    radio.checked = true;
    slider.setAttribute("aria-valuetext", `${field.value} ${slider.dataset.unit}`.trim());
  });
}
// Not at every step of a slider, but for the last one surely.
const MILLISECONDS = 100;
let waiting = null;
document.getElementById("choose")?.addEventListener("input", ({ currentTarget }) => {
  waiting ??= setTimeout(() => {
    waiting = null;
    htmx.trigger(currentTarget, "chosen");
  }, MILLISECONDS);
});
for (const button of document.querySelectorAll(".without-scripts")) button.hidden = true;

outcome.addEventListener("htmx:afterSwap", () => {
  const { linked, place: at } = outcome.querySelector("[data-linked]").dataset;
  for (const control of controls) {
    const text = JSON.parse(linked)[control.field.name];
    // What has been chosen meanwhile stays where it is.
    if (text === undefined || control.radio.checked) continue;
    control.field.value = text;
    place(control);
  }
  const point = document.querySelector("g.point");
  const found = JSON.parse(at);
  if (!point) return;
  point.setAttribute("visibility", found ? "visible" : "hidden");
  if (!found) return;
  const most = Number(point.parentElement.dataset.most);
  point.setAttribute("transform", `translate(${found[0]} ${Math.min(found[1], most)})`);
});
