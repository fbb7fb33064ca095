// Tables that are sorted by a click on a heading, each group of rows by itself below its own
// heading; as they come, they are in the order that the page was made in.
"use strict";

const valueOf = (cell, isNumber) => {
  if (!isNumber) return cell.textContent;
  const number = cell.querySelector("[data-value]");
  const value = number ? JSON.parse(number.dataset.value) : null;
  return value === null ? -Infinity : value;
};
const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    if (heading.tagName === "TD" || heading.classList.contains("still")) return;
    const isNumber = heading.classList.contains("n");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
    heading.replaceChildren(button);
    heading.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const falling = heading.getAttribute("aria-sort") === "ascending";
      for (const other of headings) other.setAttribute("aria-sort", "none");
      heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
      for (const body of table.tBodies) {
        const rows = [...body.rows].filter((row) => row.cells.length === headings.length);
        const valueIn = (row) => valueOf(row.cells[column], isNumber);
        rows.sort((a, b) => order(valueIn(a), valueIn(b)));
        body.append(...(falling ? rows.reverse() : rows));
      }
    });
  });
}
