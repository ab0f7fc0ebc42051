// What the pages can't do without a script: signing in by a link, copying, and not refreshing under a reader's hands.
"use strict";
(() => {
  document.documentElement.classList.add("scripted");

  // A sign-in link's secret is in the fragment, which no server sees; it leaves the address at once.
  const form = document.getElementById("sign-in");
  const secret = decodeURIComponent(location.hash.slice(1));
  if (form && secret.startsWith("link=")) {
    history.replaceState(null, "", location.pathname + location.search);
    form.elements.link.value = secret.slice(5);
    form.submit();
  }

  // Copy what a button names; where the browser forbids it, select it.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const text = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    } catch {
      getSelection().selectAllChildren(text);
    }
  });

  // A living part waits while nobody looks, while it holds the focus, and while something in it is selected.
  const isBusy = (part) => {
    const selected = getSelection();
    return document.hidden || part.contains(document.activeElement) ||
      (!selected.isCollapsed && part.contains(selected.anchorNode));
  };
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target.matches("[data-live]") && isBusy(event.target)) event.preventDefault();
  });
  const mark = (away) => (event) => {
    if (event.target.matches("[data-live]")) event.target.classList.toggle("is-stale", away);
  };
  for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) document.addEventListener(name, mark(true));
  document.addEventListener("htmx:beforeSwap", mark(false));
})();
