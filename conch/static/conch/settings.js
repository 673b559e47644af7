// Settings: a form that goes out once, and a choice that couldn't be saved.
(() => {
  const { $, $$, announce } = window.conch;

  // A double press does one thing; the server holds to it as well.
  addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-once]");
    if (!form || event.defaultPrevented) return;
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "1";
    setTimeout(() => { delete form.dataset.sent; }, 10_000);
  });
  addEventListener("pageshow", () => $$("form[data-once]").forEach((form) => { delete form.dataset.sent; }));

  // Couldn't save: say so, put the old choice back, and offer to try again.
  const failed = (event) => {
    const source = event.detail.elt, form = source.closest("#fallback, .switches");
    if (!form) return;
    const wanted = $('input[name="pick"]:checked', form), shown = $("#fb-shown")?.value;
    if (source.id === "fb-radios") {
      $$('input[name="pick"]', form).forEach((radio) => { radio.checked = radio.value === shown; });
    } else if (source.type === "checkbox") source.checked = !source.checked;
    const note = $("#fb-failed");
    if (!note) return announce("Couldn’t save. Nothing changed.", "#alert");
    note.hidden = false;
    $("button", note).onclick = () => {
      note.hidden = true;
      if (source.type === "checkbox") return source.click();
      if (source.id !== "fb-radios" || !wanted) return form.requestSubmit();
      wanted.checked = true;
      wanted.dispatchEvent(new Event("change", { bubbles: true }));
      wanted.focus();
    };
  };
  ["htmx:responseError", "htmx:sendError", "htmx:timeout"].forEach((name) => addEventListener(name, failed));
  addEventListener("htmx:beforeRequest", () => { const note = $("#fb-failed"); if (note) note.hidden = true; });
})();
