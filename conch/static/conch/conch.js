// Conch's own script. Nothing inline, no eval: everything else is HTML and htmx.
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

  // The browser's zone and hour cycle, for the first sign-in: the server then writes times as this person reads them.
  const { timeZone, hourCycle } = Intl.DateTimeFormat(undefined, { hour: "numeric" }).resolvedOptions();
  const keep = (name, value) => {
    if (value) document.cookie = `${name}=${encodeURIComponent(value)};path=/;max-age=31536000;samesite=lax`;
  };
  keep("conch_zone", timeZone);
  keep("conch_hours", /^h[12][1234]$/.test(hourCycle || "") ? (hourCycle < "h20" ? "h12" : "h23") : "");

  // One sentence for screen readers; the same one twice is still spoken twice.
  const announce = (text, where = "#live") => {
    const live = $(where);
    if (!live || !text) return;
    live.textContent = "";
    setTimeout(() => { live.textContent = text; }, 40);
  };

  // A control that looks off keeps its focus (aria-disabled), so its click is stopped here, and says why.
  addEventListener("click", (event) => {
    const off = event.target.closest?.('[aria-disabled="true"]');
    if (!off) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    announce(off.dataset.off);
  }, true);

  window.conch = { $, $$, announce };
})();
