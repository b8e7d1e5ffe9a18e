// What makes pages nicer where scripts run. Nothing here is needed to read a page or to send a form.
(() => {
  "use strict";

  const announce = (text) => {
    const place = document.getElementById("announce");
    if (place) place.textContent = text;
  };

  // --- Theme: system, light, dark, in a circle.

  const THEMES = ["system", "light", "dark"];
  const remembered = () => document.documentElement.dataset.theme || "system";

  const showTheme = (button) => {
    const now = remembered();
    button.dataset.now = now;
    button.setAttribute("aria-label", `Theme: ${now === "system" ? "as the system" : now}. Change it`);
  };

  const nextTheme = (button) => {
    const next = THEMES[(THEMES.indexOf(remembered()) + 1) % THEMES.length];
    if (next === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    try {
      if (next === "system") localStorage.removeItem("theme");
      else localStorage.setItem("theme", next);
    } catch {
      // The choice then lasts as long as the page.
    }
    showTheme(button);
    announce(`Theme: ${next}`);
  };

  // --- Copying.

  const copied = (button) => {
    const word = button.querySelector(".copy__word");
    button.classList.add("copy--done");
    if (word) word.textContent = "Copied";
    announce("Copied");
    setTimeout(() => {
      button.classList.remove("copy--done");
      if (word) word.textContent = "Copy";
    }, 1600);
  };

  // A whole file is fetched only when somebody wants it.
  const textFor = async (button) => {
    if (!button.dataset.copyFrom) return button.dataset.copy;
    const answer = await fetch(button.dataset.copyFrom);
    if (!answer.ok) throw new Error(answer.statusText);
    return answer.text();
  };

  const copy = async (button) => {
    let text;
    try {
      text = await textFor(button);
    } catch {
      announce("The file could not be read; try Raw.");
      return;
    }
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Plain HTTP has no clipboard; the old way still works there.
      const area = document.createElement("textarea");
      area.value = text;
      area.className = "visually-hidden";
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      button.focus();
    }
    copied(button);
  };

  // --- Keys: Ctrl-K opens the palette; `/` goes to the search field; j and k, or the arrows, walk through links.

  const typing = (target) => target.closest("input, textarea, select, [contenteditable]");

  const palette = document.getElementById("palette");

  // While the palette is open, keys mean what is in it.
  const searchField = () => (palette?.open ? palette.querySelector("[data-search-here]") : document.querySelector("[data-search]"));

  // Keys count for what was found for the words in the field: what is pressed before that is there waits for it.
  let pressed = null;

  const paletteIsCurrent = () => document.getElementById("palette-results")?.dataset.q === searchField()?.value;

  const press = (event, key) => {
    event.preventDefault();
    if (paletteIsCurrent()) actOn(key);
    else pressed = key;
  };

  const actOn = (key) => {
    const items = [...palette.querySelectorAll("[data-item]")];
    if (key === "Enter") items[0]?.click();
    else items.at(key === "ArrowDown" ? 0 : -1)?.focus();
  };

  const openPalette = () => {
    if (!palette || palette.open) return;
    palette.showModal();
    pressed = null;
    const field = palette.querySelector("[data-search-here]");
    field.select();
    // htmx begins to listen in a timer that it set as it was loaded; this one comes after that one.
    setTimeout(() => field.dispatchEvent(new Event("open")));
  };

  const walk = (event, step) => {
    const items = [...(palette?.open ? palette : document).querySelectorAll("[data-keys] [data-item]")];
    if (!items.length) return;
    const at = items.indexOf(document.activeElement);
    const next = at < 0 ? (step > 0 ? 0 : items.length - 1) : at + step;
    event.preventDefault();
    if (next < 0) searchField()?.focus();
    else items[Math.min(next, items.length - 1)].focus();
  };

  const onKey = (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      openPalette();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || event.isComposing) return;
    const field = searchField();
    const inside = typing(event.target);
    if (event.key === "/" && !inside) {
      event.preventDefault();
      if (field) {
        field.focus();
        field.select();
      } else openPalette();
    } else if (event.key === "Escape" && event.target === field && !palette?.open) field.blur();
    else if (palette?.open && event.target === field) {
      // A second Enter sends the form: no answer has come for the first one.
      if (event.key === "Enter" && pressed !== "Enter") press(event, "Enter");
      else if (event.key === "ArrowDown" || event.key === "ArrowUp") press(event, event.key);
      else if (event.key.length === 1 || event.key === "Backspace") pressed = null;
    } else if (event.key === "ArrowDown" && event.target === field) walk(event, 1);
    else if (palette?.open && palette.contains(event.target) && !inside && (event.key.length === 1 || event.key === "Backspace")) {
      // The letter goes where one types.
      field.focus();
    } else if (!inside && (event.key === "j" || event.key === "k")) walk(event, event.key === "j" ? 1 : -1);
    else if (event.target.matches?.("[data-item]") && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      walk(event, event.key === "ArrowDown" ? 1 : -1);
    }
  };

  // --- Lines of code: `#L10` works by itself; `#L10-L20`, made by a second click with Shift, is marked here.

  const RANGE = /^#L(\d+)-L(\d+)$/;

  const showRange = () => {
    for (const one of document.querySelectorAll("[data-lines] .is-marked")) one.classList.remove("is-marked");
    const [, first, last] = RANGE.exec(location.hash) ?? [];
    if (!first) return;
    const [from, to] = [Number(first), Number(last)].sort((a, b) => a - b);
    const lines = [...document.querySelectorAll("[data-lines] > li")].filter((line) => {
      const number = Number(line.id.slice(1));
      return number >= from && number <= to;
    });
    for (const line of lines) line.classList.add("is-marked");
    lines[0]?.scrollIntoView({ block: "center" });
  };

  const onLine = (event) => {
    const link = event.target.closest?.("[data-lines] > li > a");
    const first = /^#L(\d+)/.exec(location.hash);
    if (!link || !event.shiftKey || !first) return;
    event.preventDefault();
    const ends = [Number(first[1]), Number(link.hash.slice(2))].sort((a, b) => a - b);
    history.replaceState(null, "", `#L${ends[0]}-L${ends[1]}`);
    showRange();
  };

  // --- Boxes that tick all of a list, and forms that are sent once.

  const setUpAll = (box) => {
    const boxes = () => [...document.querySelectorAll(`input[name="${box.dataset.all}"]:not(:disabled)`)];
    const show = () => {
      const ticked = boxes().filter((one) => one.checked).length;
      box.checked = ticked > 0 && ticked === boxes().length;
      box.indeterminate = ticked > 0 && ticked < boxes().length;
    };
    box.addEventListener("change", () => boxes().forEach((one) => { one.checked = box.checked; }));
    for (const one of boxes()) one.addEventListener("change", show);
    show();
  };

  const onSubmit = (event) => {
    const button = event.submitter;
    if (event.defaultPrevented || !button?.dataset.busy) return;
    // After the form's data were taken, so that the button's own value is sent too.
    setTimeout(() => {
      button.disabled = true;
      button.textContent = button.dataset.busy;
    }, 0);
  };

  const setUp = (root) => {
    for (const one of root.querySelectorAll("[data-all]")) setUpAll(one);
  };

  const theme = document.getElementById("theme");
  if (theme) {
    showTheme(theme);
    theme.addEventListener("click", () => nextTheme(theme));
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-copy], [data-copy-from]");
    if (button) copy(button);
    onLine(event);
    if (event.target.closest?.("[data-palette]") && palette && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      openPalette();
    }
    // A click beside the dialog closes it.
    if (event.target === palette) palette.close();
  });
  addEventListener("hashchange", showRange);
  document.addEventListener("keydown", onKey);
  document.addEventListener("submit", onSubmit);
  document.addEventListener("htmx:after:swap", () => {
    setUp(document);
    // New results took the place of the one that had the focus.
    if (!palette?.open) return;
    if (!palette.contains(document.activeElement)) searchField()?.focus();
    if (pressed && paletteIsCurrent()) {
      actOn(pressed);
      pressed = null;
    }
  });
  // live.js says so when it has put something new into the page.
  document.addEventListener("vskill:changed", () => setUp(document));
  // A page that comes back from the browser's cache has its buttons as they were left.
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });
  setUp(document);
  showRange();
  if (location.hash === "#search") searchField()?.focus();
})();
