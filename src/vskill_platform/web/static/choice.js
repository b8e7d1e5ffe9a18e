// A choice between radio buttons that is remembered from page to page. It runs where it stands, right behind the buttons:
// what was chosen before is chosen before anything is drawn, so nothing moves.
(() => {
  "use strict";
  const group = document.currentScript.previousElementSibling;
  const name = `choice:${group.dataset.remember}`;
  try {
    const last = localStorage.getItem(name);
    for (const one of group.querySelectorAll("input")) if (one.id === last) one.checked = true;
  } catch {
    // Storage may be forbidden: the first one is shown.
  }
  group.addEventListener("change", (event) => {
    try {
      localStorage.setItem(name, event.target.id);
    } catch {
      // Then the first one is shown next time.
    }
  });
})();
