"use strict";
// Tables read as they are without this; with it, a click or Enter on a heading sorts by that column.
function sortBy(table, place, heading) {
  const ascending = heading.getAttribute("aria-sort") !== "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const isNumber = heading.classList.contains("right");
  const value = (row) => {
    const cell = row.cells[place];
    if (!isNumber) return cell.textContent;
    return "value" in cell.dataset ? Number(cell.dataset.value.replace("inf", "Infinity")) : null;
  };
  const compare = (a, b) => {
    const x = value(a), y = value(b);
    if (x === null || y === null) return (x === null) - (y === null);
    const order = isNumber ? (x > y) - (x < y) : x.localeCompare(y, "en", { numeric: true });
    return ascending ? order : -order;
  };
  table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
}
for (const table of document.querySelectorAll("table.data")) {
  [...table.tHead.rows[0].cells].forEach((heading, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortBy(table, place, heading));
    heading.append(button);
  });
}
