// Keys for those who stay: / finds, j and k go on and back, r goes to the button that replays, ? tells of them.
"use strict";
(() => {
  const help = document.getElementById("shortcuts");
  const box = document.getElementById("keys-on");
  const stored = { get: () => { try { return localStorage.getItem("keys"); } catch { return null; } },
    set: (value) => { try { localStorage.setItem("keys", value); } catch { /* then until the next page */ } } };
  box.checked = stored.get() !== "off";
  box.addEventListener("change", () => stored.set(box.checked ? "on" : "off"));

  const named = (key) => document.querySelector(`#pane [data-key="${key}"]`) ??
    document.querySelector(`[data-key="${key}"]`);
  const go = (by) => {
    if (globalThis.walk?.(by)) return;
    const links = [...document.querySelectorAll("tr[data-row] a.id")];
    const link = links.length
      ? links[Math.min(Math.max(links.findIndex((each) => each.closest("tr").contains(document.activeElement)) + by, 0),
        links.length - 1)]
      : document.querySelector(by > 0 ? "a[data-key=j]" : "a[data-key=k]");
    if (!link) return;
    if (links.length) link.focus(); else link.click();
  };
  const does = {
    "/": () => { const field = named("/"); field?.focus(); field?.select(); },
    j: () => go(1),
    k: () => go(-1),
    r: () => named("r")?.focus(),
    "?": () => help.showModal(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (event.target.closest("input:not([type=checkbox]), select, textarea")) return;
    if (!(event.key in does) || (!box.checked && event.key !== "?")) return;
    event.preventDefault();
    does[event.key]();
  });
  document.addEventListener("click", (event) => { if (event.target.closest("button[data-key='?']")) help.showModal(); });

  // A row opens its event wherever it is clicked, unless that was for something else.
  document.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-row]");
    if (!row || event.target.closest("a, button, input, label, summary, .pick") || !getSelection().isCollapsed) return;
    const link = row.querySelector("a");
    if (event.ctrlKey || event.metaKey) open(link.href, "_blank", "noopener"); else link.click();
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-all]");
    if (!button) return;
    const boxes = [...document.querySelectorAll("input[name=event]")];
    const all = boxes.every((each) => each.checked);
    for (const each of boxes) each.checked = !all;
  });
})();
