// Puts a field before a table that says which of its rows are shown: those that hold every word that is typed.
// <div class="searched" data-searched="LABEL"></div> stands before the table.
function searchTables() {
  for (const place of document.querySelectorAll(".searched:empty")) {
    let next = place.nextElementSibling;
    while (next && !next.matches("table") && !next.querySelector("table")) next = next.nextElementSibling;
    const rows = next ? [...next.querySelectorAll("tbody tr")] : [];
    const label = document.createElement("label");
    label.append(place.dataset.searched + " ");
    const field = document.createElement("input");
    field.type = "search";
    field.placeholder = "stripe, OAuth, token …";
    const count = document.createElement("output");
    const show = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        shown += !row.hidden;
      }
      count.textContent = ` ${shown} of ${rows.length}`;
    };
    field.addEventListener("input", show);
    label.append(field);
    place.append(label, count);
    show();
  }
}
searchTables();
