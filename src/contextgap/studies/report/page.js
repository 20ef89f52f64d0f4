"use strict";
// A click on a heading, or Enter or Space as headings are buttons, sorts; another reverses.
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const words = new Intl.Collator(undefined, { numeric: true });
  headings.forEach((heading, column) => {
    const isNumber = heading.classList.contains("number");
    const value = (row) => {
      const cell = row.cells[column];
      if (!isNumber) return cell.textContent;
      return cell.dataset.value === undefined ? null : numberOf(cell.dataset.value);
    };
    heading.querySelector("button").addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      headings.forEach((other) => other.setAttribute("aria-sort", "none"));
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].map((row) => [value(row), row]);
      rows.sort(([a], [b]) => {
        // What is missing goes last either way.
        if (a === null || b === null) return (a === null) - (b === null);
        const order = isNumber ? (a > b) - (a < b) : words.compare(a, b);
        return down ? -order : order;
      });
      body.append(...rows.map(([, row]) => row));
    });
  });
}

function numberOf(text) {
  return text === "inf" ? Infinity : text === "-inf" ? -Infinity : Number(text);
}
