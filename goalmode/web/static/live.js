// Keeps a page as the store is: turns as they come over the event stream, all else by loading the page again and
// putting its parts (data-live) in the place of those that differ. What somebody is writing in stays.
"use strict";
(() => {
  const stream = document.querySelector("[data-events]");
  const source = stream || document.querySelector("[data-poll]");
  const lost = document.getElementById(source.dataset.lost);
  const served = new Map();
  for (const part of document.querySelectorAll("[data-live]")) served.set(part.id, part.outerHTML);

  const page = (html) => new DOMParser().parseFromString(html, "text/html");

  // --- parts of the page

  const isWritten = (part) => {
    const active = document.activeElement;
    if (part.contains(active) && active.matches("textarea, input")) return true;
    return [...part.querySelectorAll("textarea, input:not([type=hidden])")].some((field) =>
      field.type === "radio" ? field.checked !== field.defaultChecked : field.value !== field.defaultValue);
  };

  const like = (element, part) => [...part.querySelectorAll(element.tagName)].find((other) =>
    other.textContent === element.textContent && other.getAttribute("href") === element.getAttribute("href"));

  const put = (part, fresh) => {
    if (served.get(part.id) === fresh.outerHTML || isWritten(part)) return;
    served.set(part.id, fresh.outerHTML);
    for (const open of part.querySelectorAll("details[open]")) {
      const summary = open.querySelector("summary");
      const same = summary && like(summary, fresh);
      if (same) same.parentElement.open = true;
    }
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    const next = focused && like(focused, fresh);
    part.replaceWith(document.adoptNode(fresh));
    if (next) next.focus({ preventScroll: true });
  };

  let loading = false, again = false;
  const refresh = async () => {
    if (loading) { again = true; return; }
    loading = true;
    const begun = performance.now();
    try {
      const response = await fetch(location.href.split("#")[0], { cache: "no-store" });
      if (!response.ok) throw new Error(response.statusText);
      const fresh = page(await response.text());
      for (const part of document.querySelectorAll("[data-live]")) {
        const other = fresh.getElementById(part.id);
        if (other) put(part, other);
      }
      isLost(false);
      document.dispatchEvent(new Event("goalmode:fresh"));
    } catch {
      isLost(true);
    }
    // A page that takes long to load is not loaded all the time.
    setTimeout(() => {
      loading = false;
      if (again) { again = false; refresh(); }
    }, Math.max(1000, 5 * (performance.now() - begun)));
  };

  let doubt = 0;
  const isLost = (now) => {
    if (now) {
      doubt ||= setTimeout(() => { lost.hidden = false; }, 3000);
    } else {
      clearTimeout(doubt);
      doubt = 0;
      lost.hidden = true;
    }
  };

  // --- turns

  const place = (turn) => turn.id.split("-").slice(1).map(Number);
  const isBefore = (a, b) => a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]);

  const draw = (html) => {
    const list = document.getElementById("turns");
    const turn = document.adoptNode(page(html).body.firstElementChild);
    const old = document.getElementById(turn.id);
    if (old) { old.replaceWith(turn); return; }
    turn.classList.add("new");
    const next = [...list.children].find((other) => isBefore(place(other), place(turn)));
    list.insertBefore(turn, next || null);
    while (list.children.length > Number(list.dataset.most)) list.lastElementChild.remove();
  };

  // --- where it comes from: a browser keeps few connections to one host, so a page that nobody sees gives its up

  let events = null, last = "";
  const follow = () => {
    if (events || document.hidden) return;
    const url = new URL(stream.dataset.events, location.href);
    if (last) url.searchParams.set("after", last);
    events = new EventSource(url);
    events.addEventListener("open", () => isLost(false));
    events.addEventListener("turn", (event) => { last = event.lastEventId || last; draw(event.data); });
    events.addEventListener("refresh", refresh);
    events.addEventListener("error", () => {
      isLost(true);
      if (events && events.readyState === EventSource.CLOSED) { leave(); poll(5000); }
    });
  };
  const leave = () => { if (events) events.close(); events = null; };

  let polling = 0;
  const poll = (milliseconds) => {
    clearInterval(polling);
    polling = setInterval(() => { if (!document.hidden) refresh(); }, milliseconds);
  };

  if (stream) {
    follow();
    document.addEventListener("visibilitychange", () => (document.hidden ? leave() : follow()));
    addEventListener("pagehide", leave);
    addEventListener("pageshow", (event) => { if (event.persisted) { follow(); refresh(); } });
  } else {
    poll(Number(source.dataset.poll));
  }
})();
