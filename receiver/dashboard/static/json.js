// Colours JSON and lets its objects and lists fold. It works on the text that stands there, indented, and keeps each
// sign of it, so that what is copied is what came. Without it, the text is plain.
"use strict";
(() => {
  const MAX_LINES = 8000;
  const PARTS = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d[\d.eE+-]*)|\b(true|false|null)\b/g;

  const span = (name, text) => {
    const made = document.createElement("span");
    made.className = name;
    made.textContent = text;
    return made;
  };
  const coloured = (line) => {
    const made = document.createDocumentFragment();
    let at = 0;
    for (const part of line.matchAll(PARTS)) {
      made.append(line.slice(at, part.index));
      if (part[1]) made.append(span(part[2] ? "j-key" : "j-text", part[1]), part[2] ?? "");
      else made.append(span(part[3] ? "j-number" : "j-word", part[0]));
      at = part.index + part[0].length;
    }
    made.append(line.slice(at));
    return made;
  };
  const indent = (line) => line.length - line.trimStart().length;

  const fold = (pre) => {
    const lines = pre.textContent.split("\n");
    if (lines.length > MAX_LINES) return;
    const made = document.createDocumentFragment();
    const open = [{ into: made, depth: -1 }];
    lines.forEach((line, n) => {
      while (open.length > 1 && indent(line) <= open.at(-1).depth && /^\s*[}\]]/.test(line)) open.pop();
      const into = open.at(-1).into;
      const begins = /[{[]$/.test(line) && n + 1 < lines.length && indent(lines[n + 1]) > indent(line);
      into.append(coloured(line));
      if (!begins) { into.append(n + 1 < lines.length ? "\n" : ""); return; }
      const button = document.createElement("button");
      button.type = "button";
      button.className = "j-fold";
      button.setAttribute("aria-expanded", "true");
      button.setAttribute("aria-label", `Fold ${line.trim().split(":")[0].replace(/[{["]/g, "").slice(0, 60) || "this"}`);
      const inner = span("j-inner", "");
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
