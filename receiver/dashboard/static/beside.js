// A list and the page of one of its events side by side, where there is room: the list stays, the event opens beside
// it under its own address, and the browser's Back goes back. Without this, links are links.
"use strict";
(() => {
  const found = document.getElementById("found");
  const pane = document.getElementById("pane");
  if (!found || !pane) return;
  const room = matchMedia("(min-width: 1200px)");
  const isEvent = (url) => /\/events\/\d+$/.test(url.pathname);
  const rows = () => [...found.querySelectorAll("tr[data-row] a.id")];
  const current = () => rows().findIndex((link) => new URL(link.href).pathname === location.pathname);

  // The row of the event that is open.
  const mark = () => {
    const at = current();
    rows().forEach((link, n) => {
      link.closest("tr").classList.toggle("is-chosen", n === at);
      if (n === at) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    });
  };
  // Where the list begins or ends before it, the open row is brought into sight; what is scrolled by hand stays.
  const bring = () => found.querySelector("tr.is-chosen")?.scrollIntoView({ block: "nearest" });
  const show = async (url) => {
    await htmx.ajax("GET", url.href, { target: pane, swap: "innerHTML" });
    const heading = pane.querySelector("h1");
    if (heading) document.title = `${heading.textContent.trim()} · hookonce`;
    mark();
    bring();
    scrollTo(0, 0);
  };
  const open = (link) => {
    const url = new URL(link.href);
    if (url.href === location.href) return;
    go(url);
    show(url);
  };
  const close = (link) => {
    go(link.href);
    pane.replaceChildren();
    mark();
    found.querySelector("a.id")?.focus({ preventScroll: true });
  };
  // A link to a part of the page is a step of the history, too: what is shown stays.
  let shown = location.pathname + location.search;
  const go = (href) => {
    history.pushState(null, "", href);
    shown = location.pathname + location.search;
  };
  addEventListener("popstate", () => {
    const here = new URL(location.href);
    if (here.pathname + here.search === shown) return;
    shown = here.pathname + here.search;
    if (isEvent(here)) show(here); else { pane.replaceChildren(); mark(); }
  });
  document.addEventListener("click", (event) => {
    if (!room.matches || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const link = event.target.closest("tr[data-row] a.id, #pane .pager a");
    if (!link) return;
    const isBack = link.matches("#pane [data-back]");
    if (isBack && !rows().length) return;
    event.preventDefault();
    if (isBack) close(link); else open(link);
  });
  // Whoever comes by an event's own address gets the list that it is in.
  const from = found.dataset.from;
  const fetchList = async () => {
    if (!from || !room.matches || found.childElementCount) return;
    await htmx.ajax("GET", from, { target: found, swap: "innerHTML" });
    if (current() < 0) {
      const url = new URL(from, location.href);
      url.searchParams.set("before", Number(location.pathname.split("/").at(-1)) + 1);
      await htmx.ajax("GET", url.href, { target: found, swap: "innerHTML" });
    }
    mark();
    bring();
  };
  addEventListener("DOMContentLoaded", fetchList);
  room.addEventListener("change", fetchList);
  document.addEventListener("htmx:load", mark);

  // What j and k do: the next, the previous row, and its event where one is open.
  globalThis.walk = (by) => {
    const links = rows();
    if (!links.length || !room.matches || !pane.childElementCount) return false;
    const link = links[Math.min(Math.max(current() + by, 0), links.length - 1)];
    link.focus({ preventScroll: true });
    open(link);
    return true;
  };
})();
