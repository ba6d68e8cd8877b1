// A field above each long table: rows that do not contain what is typed are hidden.  On a phone a table that is
// too wide is stacked, if its columns are few or hold sentences: its cells stand below each other (site.css).
const ENOUGH = 15; // rows
const FEW = 3; // columns
const WORDY = 60; // characters of a sentence
const PHONE = window.matchMedia("(max-width: 40em)");

// The header of a column before its cells, but for the first, which names the row.
function label(table) {
  const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
  for (const row of table.querySelectorAll("tbody tr"))
    [...row.cells].forEach((cell, i) => {
      if (i && heads[i]) cell.dataset.head = heads[i];
      cell.classList.toggle("empty", !cell.textContent.trim());
    });
}

function stack() {
  for (const table of document.querySelectorAll("article table")) {
    table.classList.remove("stacked");
    const box = table.closest(".table-wrapper") ?? table.parentElement;
    const columns = table.rows[0]?.cells.length ?? 0;
    const wordy = columns <= 2 * FEW && [...table.querySelectorAll("td")].some((c) => c.textContent.length > WORDY);
    const stacks = columns <= FEW || wordy;
    table.classList.toggle("stacked", PHONE.matches && stacks && box.scrollWidth > box.clientWidth);
  }
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("article table").forEach(label);
  stack();
  PHONE.addEventListener("change", stack);
});

document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("article table")) {
    const rows = [...table.querySelectorAll("tbody tr")];
    if (rows.length < ENOUGH) continue;
    const field = document.createElement("input");
    field.type = "search";
    field.className = "filter";
    field.placeholder = `Filter ${rows.length} rows`;
    field.setAttribute("aria-label", "Filter the rows of this table");
    field.addEventListener("input", () => {
      const sought = field.value.toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(sought);
    });
    (table.closest(".table-wrapper") ?? table).before(field);
  }
});
