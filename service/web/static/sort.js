// Tables that are sorted by a click on a heading; as they come, they are in the order of the bins.
"use strict";

const valueOf = (cell) => {
  const number = cell.querySelector("[data-value]");
  const value = number ? JSON.parse(number.dataset.value) : null;
  return value === null ? -Infinity : value;
};

for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
    heading.replaceChildren(button);
    heading.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const falling = heading.getAttribute("aria-sort") === "ascending";
      for (const other of headings) other.setAttribute("aria-sort", "none");
      heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows].sort(
        (a, b) => valueOf(a.cells[column]) - valueOf(b.cells[column]),
      );
      table.tBodies[0].replaceChildren(...(falling ? rows.reverse() : rows));
    });
  });
}
