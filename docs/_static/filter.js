// A field above each long table: rows that do not contain what is typed are hidden.
const ENOUGH = 15; // rows

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
