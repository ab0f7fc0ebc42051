// Lets objects and lists of JSON fold. It works on the lines that stand there, and keeps each sign of them, so that
// what is copied is what came. Without it, they are all open.
"use strict";
(() => {
  const MAX_LINES = 8000;
  const indent = (line) => line.length - line.trimStart().length;

  // No element goes over the end of a line (receiver/dashboard/highlighting.py), so each line is HTML by itself.
  const fold = (pre) => {
    const lines = pre.textContent.split("\n");
    const marked = pre.innerHTML.split("\n");
    if (lines.length > MAX_LINES) return;
    const made = document.createElement("span");
    const open = [{ into: made, depth: -1 }];
    lines.forEach((line, n) => {
      while (open.length > 1 && indent(line) <= open.at(-1).depth && /^\s*[}\]]/.test(line)) open.pop();
      const into = open.at(-1).into;
      const begins = /[{[]$/.test(line) && n + 1 < lines.length && indent(lines[n + 1]) > indent(line);
      into.insertAdjacentHTML("beforeend", marked[n]);
      if (!begins) { into.append(n + 1 < lines.length ? "\n" : ""); return; }
      const button = document.createElement("button");
      button.type = "button";
      button.className = "j-fold";
      button.setAttribute("aria-expanded", "true");
      button.setAttribute("aria-label", `Fold ${line.trim().split(":")[0].replace(/[{["]/g, "").slice(0, 60) || "this"}`);
      const inner = document.createElement("span");
      inner.append("\n");
      into.append(button, inner);
      open.push({ into: inner, depth: indent(line) });
    });
    pre.replaceChildren(made);
  };
  const foldAll = (part) => {
    for (const pre of part.querySelectorAll("pre[data-json]")) {
      delete pre.dataset.json;
      fold(pre);
    }
  };
  foldAll(document);
  document.addEventListener("htmx:load", (event) => foldAll(event.detail.elt.parentNode ?? document));

  document.addEventListener("click", (event) => {
    const button = event.target.closest(".j-fold");
    if (!button) return;
    const isOpen = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!isOpen));
    button.nextElementSibling.hidden = isOpen;
  });
})();
