// Runs before the first paint, and sees every part of the page before it is painted: what a script changes is changed
// before anybody sees it, so nothing moves. The page is whole without it.
(() => {
  "use strict";

  try {
    const chosen = localStorage.getItem("theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // Storage may be forbidden; then the system decides.
  }

  // --- Times, said as people say them. The exact time stays in the title.

  const STEPS = [
    [60, "second", 1], [3600, "minute", 60], [86400, "hour", 3600],
    [604800, "day", 86400], [2629800, "week", 604800], [31557600, "month", 2629800], [Infinity, "year", 31557600],
  ];
  const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

  const relative = (then, now) => {
    const seconds = (then - now) / 1000;
    if (Math.abs(seconds) < 5) return "just now";
    const [, unit, size] = STEPS.find(([below]) => Math.abs(seconds) < below);
    return words.format(Math.trunc(seconds / size), unit);
  };

  const showTime = (one, now) => {
    const then = Date.parse(one.dateTime);
    const text = Number.isNaN(then) ? one.textContent : relative(then, now);
    if (one.textContent !== text) one.textContent = text;
  };

  const showTimes = (root = document) => {
    const now = Date.now();
    for (const one of root.querySelectorAll("time[data-relative]")) showTime(one, now);
  };

  // --- Parts that are of use only where scripts run.

  const SCRIPTED = "[data-copy][hidden], #theme[hidden], [data-live-indicator][hidden], [data-scripted][hidden]";

  const prepare = (root) => {
    for (const one of root.querySelectorAll(SCRIPTED)) one.hidden = false;
    if (root.matches("time[data-relative]")) showTime(root, Date.now());
    else showTimes(root);
  };

  new MutationObserver((records) => {
    const changed = new Set(records.map((record) => record.target));
    for (const one of changed) if (one.nodeType === Node.ELEMENT_NODE) prepare(one);
  }).observe(document.documentElement, { childList: true, subtree: true });

  setInterval(showTimes, 10_000);
})();
