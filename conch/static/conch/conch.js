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

  announce($("#live")?.dataset.say); // what came of a first message before its page was there

  // A control that looks off keeps its focus (aria-disabled), so its click is stopped here, and says why.
  addEventListener("click", (event) => {
    const off = event.target.closest?.('[aria-disabled="true"]');
    if (!off) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    announce(off.dataset.off);
  }, true);

  // ── The chat ───────────────────────────────────────────────────────────────────────────────────────────────────
  const box = $("#say"), form = $("#composer"), scroller = $("#scroll"), problem = $("#problem");
  const touch = !matchMedia("(pointer: fine)").matches;
  const shortcuts = !document.body.hasAttribute("data-no-shortcuts");
  const composing = (event) => event.isComposing || event.keyCode === 229; // Enter that ends a word of an input method

  // A draft survives anything until the server has said yes. One a chat.
  let draft = form && `draft:${form.dataset.draft}`;
  const store = (name, value) => {
    try { value ? localStorage.setItem(name, value) : localStorage.removeItem(name); } catch { /* then no draft */ }
  };
  const stored = (name) => { try { return localStorage.getItem(name) || ""; } catch { return ""; } };
  let sent = "";
  if (box) {
    box.value ||= stored(draft);
    box.addEventListener("input", () => { store(draft, box.value); problem.textContent = ""; });
    box.addEventListener("keydown", (event) => {
      const last = event.key === "ArrowUp" && shortcuts && !box.value && $$("[data-edit]").at(-1);
      if (last && !composing(event)) {
        event.preventDefault();
        last.click();
      }
      if (composing(event) || event.key !== "Enter" || event.shiftKey || event.altKey || touch) return;
      event.preventDefault();
      if (box.value.trim() || $("#images").files.length) form.requestSubmit($("#send .go"));
    });
    const files = $("#images"), names = $("#files");
    let held = [];
    const hold = (chosen) => {
      const all = new DataTransfer();
      chosen.forEach((file) => all.items.add(file));
      files.files = all.files;
      held = chosen;
      names.hidden = !held.length;
      names.replaceChildren(...held.map((file) => {
        const chip = $("#a-file").content.cloneNode(true).firstElementChild;
        $("bdi", chip).textContent = file.name;
        chip.setAttribute("aria-label", `Remove ${file.name}`);
        chip.onclick = () => { hold(held.filter((one) => one !== file)); box.focus(); };
        return chip;
      }));
    };
    files.addEventListener("change", () => hold([...held, ...files.files]));
    const take = (event) => {
      const given = [...(event.clipboardData || event.dataTransfer).files];
      if (!given.length) return;
      event.preventDefault();
      hold([...held, ...given]);
      box.focus();
    };
    box.addEventListener("paste", take);
    addEventListener("drop", take); // beside the box, too: else the browser would leave the page for the file
    addEventListener("dragover", (event) => {
      if (event.dataTransfer.types.includes("Files")) event.preventDefault();
    });
    if (!touch && !location.hash && !$("[autofocus]")) box.focus({ preventScroll: true });
    form.addEventListener("htmx:beforeRequest", (event) => {
      if (event.detail.elt !== form) return;
      sent = box.value;
      if (!sent.trim() && !files.files.length) event.preventDefault();
    });
    form.addEventListener("htmx:afterRequest", (event) => {
      const { elt, successful, xhr } = event.detail;
      const made = /\/c\/(\d+)/.exec(xhr.getResponseHeader("HX-Redirect") || ""); // a new chat: its page comes next
      if (elt !== form || !(successful || made)) return;
      if (box.value === sent) box.value = "";
      if (made) { // what was typed on meanwhile is that chat's
        store(draft, "");
        draft = `draft:${made[1]}`;
      }
      store(draft, box.value);
      hold([]);
      problem.textContent = "";
      $(".hello")?.remove();
      store("conch:sent", `${form.dataset.draft} ${Date.now()}`); // other tabs look again
      toEnd();
    });
  }

  // Editing a message that was sent: a form in its place. What is typed there is a draft, too.
  const editing = (event) => event.target.closest?.(".editing");
  const drafted = (edit) => `draft:${edit.dataset.draft}`;
  const leave = (edit) => {
    store(drafted(edit), "");
    edit.remove();
    box?.focus();
  };
  const unfolded = new Set(); // what somebody unfolded stays so when its turn is drawn anew
  addEventListener("toggle", ({ target }) => unfolded[target.open ? "add" : "delete"](target.id), true);
  addEventListener("input", (event) => { if (editing(event)) store(drafted(editing(event)), event.target.value); });
  addEventListener("htmx:load", (event) => {
    const came = event.detail.elt;
    if (came.matches?.(".editing") && stored(drafted(came))) $("textarea", came).value = stored(drafted(came));
    $$("details[id]", came).forEach((one) => { one.open ||= unfolded.has(one.id); });
    // A turn that a look and a stream have both brought is there once: the later of them.
    if (came.matches?.(".turn")) $$(`[id="${came.id}"]`).forEach((twin) => { if (twin !== came) twin.remove(); });
  });
  addEventListener("click", (event) => {
    if (!event.target.closest?.("[data-cancel]") || !box) return;
    event.preventDefault();
    leave(editing(event));
  });
  addEventListener("htmx:afterRequest", (event) => {
    const { requestConfig, successful } = event.detail;
    const elt = requestConfig?.elt; // its own message has left the page by now, and the form with it
    if (!elt?.matches(".editing") || !successful) return;
    leave(elt);
    store("conch:sent", `${elt.dataset.draft} ${Date.now()}`);
    toEnd();
  });

  // A new chat for which another account or model is picked keeps the tools that were chosen for it.
  const chosen = () => $$("#tools [form=composer]").filter((one) => one.checked || one.type === "hidden");
  addEventListener("formdata", (event) => {
    if (event.target.closest("#who")) chosen().forEach((one) => event.formData.append("tools", one.value));
  });
  addEventListener("click", (event) => {
    const row = event.target.closest?.("#who a.row");
    if (row) row.search += chosen().map((one) => `&tools=${encodeURIComponent(one.value)}`).join("");
  });

  // What the server says no to is read beside the box; what was typed stays in it.
  addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, requestConfig: { elt: asked } = {} } = event.detail;
    // Whoever asked has left the page: a look then knows less than the page does; what a press did is looked for.
    const gone = scroller && asked?.isConnected === false;
    if (gone) event.detail.shouldSwap = false;
    if (gone && asked.id !== "watch") look();
    if (!problem || !xhr || xhr.status < 400) return;
    const said = xhr.status < 500 && xhr.status !== 404;
    event.detail.shouldSwap = said;
    event.detail.target = problem;
    event.detail.swapOverride = "innerHTML";
    if (!said) problem.textContent = "That didn’t work on Conch’s side. What you typed is still here.";
  });
  addEventListener("htmx:sendError", ({ detail: { elt } }) => {
    if (problem && elt?.id !== "watch") problem.textContent = "Conch can’t be reached. What you typed is still here.";
  });

  // Follow the answer only for somebody who is within 80 px of its end.
  let follow = true;
  const down = $("#down");
  const toEnd = () => { follow = true; if (scroller) scroller.scrollTop = scroller.scrollHeight; };
  if (scroller) {
    scroller.addEventListener("scroll", () => {
      down.hidden = follow = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 80;
    }, { passive: true });
    new ResizeObserver(() => { if (follow) toEnd(); }).observe($("#log"));
    down.addEventListener("click", () => { toEnd(); box?.focus(); });
    const marked = location.hash && $(location.hash);
    marked ? marked.scrollIntoView() : toEnd();
  }

  // A hidden tab lets its stream go; shown again, the turn is drawn as it is and taken up from there.
  let source = null;
  addEventListener("htmx:sseOpen", (event) => {
    source = event.detail.source;
    if (document.hidden) source.close();
  });
  addEventListener("htmx:configRequest", (event) => {
    if (event.detail.elt.id === "watch" && document.hidden) event.detail.parameters.hidden = "1";
  });
  const look = () => document.body.dispatchEvent(new Event("conch:look"));
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return source?.close();
    const live = $("[data-live]");
    const watch = $("#watch");
    if (live && watch && source?.readyState === 2) {
      watch.setAttribute("hx-get", watch.getAttribute("hx-get").replace(/live=\d*/, "live=").replace(/v=\w*/, "v="));
      window.htmx.process(watch);
    }
    look();
  });
  addEventListener("storage", (event) => { if (event.key === "conch:sent" && !document.hidden) look(); });

  $("#chats [aria-current]")?.scrollIntoView({ block: "nearest" });

  // How many chats have something new, in the tab's title.
  const title = document.title;
  const count = () => {
    const unread = Number($("#chats")?.dataset.unread || 0);
    document.title = unread ? `(${unread}) ${title}` : title;
  };
  count();
  addEventListener("htmx:oobAfterSwap", count);

  // A pressed button that its own answer took away leaves the focus to the box, not to the top of the page.
  addEventListener("htmx:afterSettle", () => {
    const lost = document.activeElement === document.body && !touch && !$("[popover]:popover-open");
    if (lost) box?.focus({ preventScroll: true });
  });

  addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy], .copy-code");
    if (!button) return;
    const { copy, source } = button.dataset;
    const from = copy ? document.getElementById(copy) : $("pre", button.closest("figure"));
    const words = async () => {
      const got = source ? await fetch(source) : null; // a reply goes along in Markdown, as it was written
      if (got && (!got.ok || got.redirected)) throw got;
      return new Blob([got ? await got.text() : from.innerText], { type: "text/plain" });
    };
    try { await navigator.clipboard.write([new ClipboardItem({ "text/plain": words() })]); } catch {
      getSelection().selectAllChildren(from); // as it is shown: a browser has no clipboard to write to without HTTPS
      if (!document.execCommand("copy")) return announce("Couldn’t copy.", "#alert");
    }
    announce("Copied.");
    button.classList.add("did");
    setTimeout(() => button.classList.remove("did"), 1500);
  });

  addEventListener("keydown", (event) => {
    if (composing(event) || !shortcuts) return;
    const key = event.ctrlKey || event.metaKey;
    const act = (does) => { event.preventDefault(); does?.(); };
    const edit = editing(event);
    if (edit && key && event.key === "Enter") return act(() => edit.requestSubmit());
    if (edit && event.key === "Escape") return act(() => leave(edit));
    if (event.key === "Escape" && event.shiftKey) return act(() => box?.focus());
    if (event.key === "Escape" && !$("[popover]:popover-open, dialog[open]") && $("#stop")) {
      return act(() => { $("#stop").click(); box?.focus(); });
    }
    if (key && event.shiftKey && event.code === "KeyO") return act(() => $("#new")?.click());
    if (key && !event.shiftKey && event.code === "KeyK" && $("#find")) {
      return act(() => { if (!$("#find").checkVisibility()) $("#side").showPopover(); $("#find").focus(); });
    }
    if (key && event.key === "/") act(() => $("#keys")?.togglePopover());
  });

  window.conch = { $, $$, announce };
})();
