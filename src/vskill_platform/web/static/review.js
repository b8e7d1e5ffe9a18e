// Single keys for reviewers. Each does what a link or a button on the page does, and they can be turned off.
(() => {
  "use strict";

  const OFF = "review-keys-off";
  const help = document.getElementById("shortcuts");
  const opener = document.querySelector("[data-shortcuts]");
  if (!help || !opener) return;

  const remembered = () => {
    try {
      return localStorage.getItem(OFF) === "yes";
    } catch {
      return false;
    }
  };

  let off = remembered();
  const box = document.getElementById("shortcuts-on");
  box.checked = !off;
  box.addEventListener("change", () => {
    off = !box.checked;
    try {
      if (off) localStorage.setItem(OFF, "yes");
      else localStorage.removeItem(OFF);
    } catch {
      // The choice then lasts as long as the page.
    }
  });

  const showHelp = () => {
    if (!help.open) help.showModal();
  };
  opener.hidden = false;
  opener.querySelector("[data-shortcuts-open]").addEventListener("click", showHelp);

  const inField = (target) => target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");

  const unfold = (key) => {
    const fold = document.querySelector(`[data-decide="${key}"] details`);
    if (!fold) return false;
    fold.open = true;
    const reason = fold.querySelector("input[name=reason]");
    reason.scrollIntoView({ block: "nearest" });
    reason.focus();
    return true;
  };

  const toFinding = (step) => {
    const findings = [...document.querySelectorAll("[data-finding]")];
    if (!findings.length) return false;
    const at = findings.indexOf(document.activeElement.closest("[data-finding]"));
    const next = at < 0 ? (step > 0 ? 0 : findings.length - 1) : Math.min(Math.max(at + step, 0), findings.length - 1);
    findings[next].focus();
    return true;
  };

  const tick = () => {
    const row = document.activeElement.closest("[data-keys] tr");
    const own = row?.querySelector("input[name=tick]");
    if (!own) return false;
    own.click();
    return true;
  };

  const follow = (key) => {
    const link = document.querySelector(`[data-key="${key}"]`);
    link?.click();
    return Boolean(link);
  };

  const KEYS = {
    a: () => unfold("a"),
    r: () => unfold("r"),
    n: () => toFinding(1),
    p: () => toFinding(-1),
    x: tick,
    j: () => follow("j"),
    k: () => follow("k"),
    u: () => follow("u"),
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (event.key === "Escape" && inField(event.target)) {
      event.target.blur();
      return;
    }
    if (inField(event.target)) return;
    if (event.key === "?") {
      event.preventDefault();
      showHelp();
    } else if (!off && KEYS[event.key]?.()) event.preventDefault();
  });

  // After a decision the next item opens: what became of the last one is said first.
  const told = document.querySelector("main [role=status]");
  if (told) {
    told.tabIndex = -1;
    told.focus({ preventScroll: true });
  }
})();
