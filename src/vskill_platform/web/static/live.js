// Keeps a page true while it is open: follows the page's event stream, puts changed rows and numbers in place, and
// loads parts of the page again where that is simpler. Everything here is an extra: the page is whole without it.
(() => {
  "use strict";

  const root = document.querySelector("[data-live]");
  if (!root || !window.EventSource) return;

  const indicator = document.querySelector("[data-live-indicator]");
  const dot = document.querySelector("[data-live-dot]");
  const words = document.querySelector("[data-live-text]");
  const FIRST_WAIT_MS = 1000;
  const LONGEST_WAIT_MS = 30000;

  let source = null;
  let cursor = root.dataset.cursor || "";
  let wait = FIRST_WAIT_MS;
  let timer = 0;
  let refreshing = false;
  let again = false;
  let storeAway = root.hasAttribute("data-failed");

  // --- The connection, for everybody to see.

  const show = (state, text) => {
    if (!indicator) return;
    indicator.hidden = false;
    dot.className = `dot ${{ on: "dot--good", off: "dot--bad", busy: "dot--warn dot--busy" }[state]}`;
    if (words.textContent !== text) words.textContent = text;
  };

  const address = () => {
    const url = new URL(root.dataset.live, location.href);
    if (cursor) url.searchParams.set("after", cursor);
    return url;
  };

  const close = () => {
    clearTimeout(timer);
    if (source) source.close();
    source = null;
  };

  const open = () => {
    close();
    show("busy", "Connecting");
    source = new EventSource(address());
    source.addEventListener("open", () => {
      wait = FIRST_WAIT_MS;
      show(storeAway ? "off" : "on", storeAway ? "Store unreachable" : "Updates by itself");
    });
    source.addEventListener("error", () => {
      // A browser tries again by itself only while the server is merely away; in every other case we do.
      show("busy", "Reconnecting");
      if (source && source.readyState === EventSource.CLOSED) later();
    });
    for (const [name, act] of Object.entries(ACTIONS)) {
      source.addEventListener(name, (event) => {
        if (event.lastEventId) cursor = event.lastEventId;
        act(event.data ? JSON.parse(event.data) : null);
      });
    }
  };

  const later = () => {
    close();
    timer = setTimeout(open, wait * (0.75 + Math.random() / 2));
    wait = Math.min(wait * 2, LONGEST_WAIT_MS);
  };

  // --- Rows and numbers.

  const fits = (data) =>
    (!root.dataset.category || root.dataset.category === data.category) &&
    (!root.dataset.state || root.dataset.state === data.state);

  const rowOf = (html) => {
    const box = document.createElement("template");
    box.innerHTML = html;
    return box.content.querySelector("tr");
  };

  // Rows that nobody has asked for yet, by id, the oldest first: they would push down what is being read.
  const held = new Map();
  const rows = document.getElementById("queue-rows");
  const showButton = document.getElementById("queue-show");

  const tellHeld = () => {
    showButton.hidden = !held.size;
    document.getElementById("queue-order").hidden = Boolean(held.size);
    showButton.textContent = `Show ${held.size} new`;
  };

  const insertRow = (fresh) => {
    fresh.classList.add("is-fresh");
    rows.prepend(fresh);
    document.getElementById("queue-empty")?.replaceChildren();
    while (rows.rows.length > Number(rows.dataset.most)) rows.rows[rows.rows.length - 1].remove();
    document.dispatchEvent(new CustomEvent("vskill:changed", { detail: fresh }));
  };

  const replaceRow = (known, fresh) => {
    fresh.classList.add("is-fresh");
    fresh.classList.toggle("is-left", !fits(fresh.dataset));
    const focused = known.contains(document.activeElement);
    known.replaceWith(fresh);
    if (focused) fresh.querySelector("a")?.focus();
    document.dispatchEvent(new CustomEvent("vskill:changed", { detail: fresh }));
  };

  const takeRow = (fresh) => {
    const known = document.getElementById(fresh.id);
    if (known) replaceRow(known, fresh);
    else if (!fits(fresh.dataset) || root.dataset.insert !== "yes") held.delete(fresh.id);
    else if (!rows.rows.length) insertRow(fresh);
    else {
      held.delete(fresh.id);
      held.set(fresh.id, fresh);
      while (held.size > Number(rows.dataset.most)) held.delete(held.keys().next().value);
    }
    tellHeld();
  };

  const putRow = (data) => {
    const fresh = rows && rowOf(data.html);
    if (fresh) takeRow(fresh);
  };

  showButton?.addEventListener("click", () => {
    for (const fresh of held.values()) insertRow(fresh);
    held.clear();
    tellHeld();
    rows.querySelector("a")?.focus();
  });

  const putCounts = (counts) => {
    for (const one of document.querySelectorAll("[data-count]")) {
      const value = counts[one.dataset.count];
      if (value === undefined) continue;
      const text = value.toLocaleString("en-GB");
      if (one.textContent !== text) one.textContent = text;
      one.toggleAttribute("data-zero", text === "0");
    }
  };

  // --- Parts of the page that are loaded again.

  const busyIn = (part) =>
    part.contains(document.activeElement) && document.activeElement.matches("input, textarea, select");

  // The list has the latest change first: a row that it lacks, above one that it has, has left it. So has every row that
  // a list with room for more lacks.
  const markLeft = (listed) => {
    const ids = new Set(listed.map((one) => one.id));
    let inside = listed.length < Number(rows.dataset.most);
    for (const known of [...rows.rows].reverse()) {
      if (ids.has(known.id)) inside = true;
      else if (inside) known.classList.add("is-left");
    }
    for (const id of held.keys()) if (!ids.has(id)) held.delete(id);
    tellHeld();
  };

  // The newest comes last, as it does over the stream. A row that looks the same stays.
  const takeListed = (page) => {
    const listed = [...page.querySelectorAll("#queue-rows > tr")];
    markLeft(listed);
    for (const fresh of listed.reverse()) {
      const known = document.getElementById(fresh.id);
      if (known?.textContent.trim() !== fresh.textContent.trim()) takeRow(document.adoptNode(fresh));
    }
  };

  const swap = (page) => {
    for (const fresh of page.querySelectorAll("[data-region]")) {
      const part = document.getElementById(fresh.id);
      if (!part || busyIn(part) || part.innerHTML === fresh.innerHTML) continue;
      const opened = [...part.querySelectorAll("details[open]")].map((one) => [...part.querySelectorAll("details")].indexOf(one));
      const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
      part.replaceChildren(...document.adoptNode(fresh).childNodes);
      const details = part.querySelectorAll("details");
      for (const index of opened) if (details[index]) details[index].open = true;
      if (focused) document.getElementById(focused)?.focus();
      document.dispatchEvent(new CustomEvent("vskill:changed", { detail: part }));
    }
    if (rows) takeListed(page);
    const next = page.querySelector("[data-live]");
    if (next?.dataset.refreshMs) root.dataset.refreshMs = next.dataset.refreshMs;
  };

  const refresh = async () => {
    if (refreshing) {
      again = true;
      return;
    }
    refreshing = true;
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store" });
      if (answer.ok && storeAway && root.hasAttribute("data-failed")) {
        location.reload();
        return;
      }
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        swap(page);
        const counts = {};
        for (const one of page.querySelectorAll("[data-count]")) counts[one.dataset.count] = one.textContent;
        putCounts(counts);
      }
    } catch {
      // The server is away; the stream says so, and the next round tries again.
    } finally {
      refreshing = false;
      if (again) {
        again = false;
        setTimeout(refresh, 500);
      }
    }
  };

  let soon = 0;
  const refreshSoon = () => {
    clearTimeout(soon);
    soon = setTimeout(refresh, 150);
  };

  const tick = () => {
    const every = Number(root.dataset.refreshMs) || 30000;
    setTimeout(async () => {
      if (!document.hidden) await refresh();
      tick();
    }, every * (0.9 + Math.random() / 5));
  };

  const ACTIONS = {
    row: putRow,
    counts: putCounts,
    submission: refreshSoon,
    submission_decision: refreshSoon,
    reset: () => location.reload(),
    status: (data) => {
      storeAway = data.store !== "reachable";
      show(storeAway ? "off" : "on", storeAway ? "Store unreachable" : "Updates by itself");
    },
  };

  // --- A page that nobody looks at follows nothing; when it is looked at again it is told what it missed.

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      close();
      show("busy", "Paused");
    } else {
      wait = FIRST_WAIT_MS;
      open();
    }
  });
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) open();
  });

  if (!document.hidden) open();
  tick();
})();
