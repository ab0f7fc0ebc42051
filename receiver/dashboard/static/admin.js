// What the pages can't do without a script: signing in by a link, copying, telling a reader's own time, and not
// refreshing under a reader's hands.
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

  // The reader's own time, beside UTC where that stands in full, and where the pointer rests on a span of time.
  const zone = document.getElementById("zone");
  if (zone) zone.textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const here = { full: new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" }),
    time: new Intl.DateTimeFormat(undefined, { timeStyle: "medium" }) };
  const tellTimes = (part) => {
    for (const time of part.querySelectorAll("time[datetime]:not([data-told])")) {
      time.dataset.told = "";
      const at = new Date(time.dateTime);
      if (time.matches(".both") && at.getTimezoneOffset() !== 0) {
        const local = document.createElement("span");
        local.className = "of";
        local.textContent = ` · ${(at.getUTCDate() === at.getDate() ? here.time : here.full).format(at)} here`;
        time.append(local);
      } else if (time.title) time.title += ` · ${here.full.format(at)} here`;
    }
  };
  tellTimes(document);
  document.addEventListener("htmx:load", (event) => tellTimes(event.detail.elt.parentNode ?? document));

  // A link to a part of the page opens what that is folded in.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    let part = link && document.getElementById(link.hash.slice(1));
    for (; part; part = part.parentElement) if (part.localName === "details") part.open = true;
  });

  // Copy what a button names, or the page's address; where the browser forbids it, select it.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy], [data-copy-address]");
    if (!button || button.textContent === "Copied") return;
    const text = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(text ? text.textContent : location.href);
      const name = button.textContent;
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = name; }, 2000);
    } catch {
      if (!text) return void (button.textContent = "Copy it from the address bar");
      text.closest("details")?.setAttribute("open", "");
      getSelection().selectAllChildren(text);
    }
  });

  // A living part waits while nobody looks, while it holds the focus, and while something in it is selected or chosen.
  const isBusy = (part) => {
    const selected = getSelection();
    return document.hidden || part.contains(document.activeElement?.closest("input, select, button, summary, pre")) || part.querySelector("input:checked") ||
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
