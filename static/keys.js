/* The keyboard: letters that move and answer, and the guard that no answer reaches a card that nobody has read.

   A card counts as read from a moment after it was drawn. From the press that chooses another one until that one stands
   there, and for that moment, neither a key nor a button of the card answers anything; a line says so. */
"use strict";
(() => {
  const READ_MS = 300, QUICK_MS = 250, GATHER_MS = 120, STRAY_MS = 300, HELD_MS = 2000, TWICE_MS = 6000, TOLD_MS = 6000;
  const byId = (id) => document.getElementById(id), now = () => performance.now();
  const FIELDS = "input:not([data-row]), textarea, select, dialog[open], [contenteditable]";

  /* ---- a quiet line that says what a press did not do --------------------------------------------------------- */
  let telling = 0;
  function tell(words) {
    const place = byId("told");
    if (!place) return;
    place.textContent = words;
    clearTimeout(telling);
    telling = setTimeout(() => { place.textContent = ""; }, TOLD_MS);
  }

  /* ---- the guard ------------------------------------------------------------------------------------------------ */
  let coming = "", asked = null, drawn = "", drawnAt = 0;     // the id of the card to come, its request, what stands here
  const card = () => document.querySelector("#question .question");
  const face = () => (card() ? `${card().id} ${card().querySelector("[name=shown]")?.value ?? ""}` : "");
  const sent = () => document.querySelector("#question form[data-sent]");
  function unread() {
    if (coming) return "Still loading: nothing was answered.";
    return drawn && now() - drawnAt < READ_MS ? "Only just shown: nothing was answered. Read it, then press again." : "";
  }
  let refusedAt = -1e9;             // nobody walks on from a question that they think answered: the next step is held back
  function refuse(why) { refusedAt = now(); tell(why); }
  function showGuard() {
    const state = coming ? "loading" : unread() ? "new" : "";
    if (state) document.body.dataset.unread = state; else delete document.body.dataset.unread;
    if (state === "new") setTimeout(showGuard, READ_MS + 5 - (now() - drawnAt));
  }
  function expectCard(id) {
    if (id === card()?.id) return;
    coming = id;
    outline();
    showGuard();
  }
  function outline() {              // the row of the card to come, before it is here
    const row = coming && document.querySelector(`[data-row="open"][data-opens="${coming}"]`);
    if (!row) return;
    for (const other of document.querySelectorAll('[data-row="open"][aria-current]')) other.removeAttribute("aria-current");
    row.setAttribute("aria-current", "true");
  }
  function drew() {
    if (face() !== drawn) { drawn = face(); drawnAt = now(); armed = null; }
    const arrived = coming && card()?.id === coming;
    if (arrived) coming = ""; else outline();
    showGuard();
    return arrived;
  }
  function gaveUp(words) {          // the card that was to come does not: the outline goes back to the one that stands here
    coming = "";
    const row = card() && document.querySelector(`[data-row="open"][data-opens="${card().id}"]`);
    for (const other of document.querySelectorAll('[data-row="open"][aria-current]')) if (other !== row) other.removeAttribute("aria-current");
    if (row) row.setAttribute("aria-current", "true");
    showGuard();
    if (words) tell(words);
  }
  document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => { if (ctx.sourceElement?.dataset?.opens) asked = ctx; });
  document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => {
    if (ctx !== asked) return;
    asked = null;
    if (coming) gaveUp(ctx.response?.status === 200 ? "" : "That question could not be opened: nothing was answered. Try again.");
  });
  document.addEventListener("submit", (event) => {
    const why = event.target.closest("#question .question") && unread();
    if (!why) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    refuse(why);
  }, true);
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-opens]");
    if (opener && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.button) { opened = true; expectCard(opener.dataset.opens); return; }
    const why = event.target.closest("#question .question a[data-key]") && unread();
    if (why) { event.preventDefault(); refuse(why); }
  }, true);

  /* ---- where the focus goes when a card or a page is there ------------------------------------------------------ */
  let opened = false, inList = false; // a person chose a question, and moves through the list with the arrows
  function focusOn(place) {
    if (!place.hasAttribute("tabindex") && !place.matches("a, button, input, textarea, select")) place.tabIndex = -1;
    place.focus({ preventScroll: true });
  }
  document.addEventListener("htmx:after:swap", () => {
    mark();
    const arrived = drew(), question = opened && byId("question"), top = question ? question.getBoundingClientRect().top : 0;
    if (top < 0 || top > innerHeight * 0.7) question.scrollIntoView();
    if (arrived && !inList) focusOn(document.querySelector("#question h1"));
    if (!coming) opened = false;
  });
  function begin() {
    drew();
    countTicked();
    const filtered = sessionStorage.getItem("oz0-filtered");   // before the filters again, where letters work
    sessionStorage.removeItem("oz0-filtered");
    if (filtered && document.querySelector("main h1")) { focusOn(document.querySelector("main h1")); return; }
    const told = document.querySelector("[data-focus-told]") && document.querySelector(".messages");
    const form = document.querySelector("form[data-focus-first]");
    const place = document.querySelector("[data-focus]") || told
      || (form && [...form.elements].find((field) => field.matches("input:not([type=hidden]), textarea, select") && !field.disabled));
    if (!place) return;
    focusOn(place);
    const seen = place.closest(".question")?.querySelector(".note") || place, { top, bottom } = seen.getBoundingClientRect();
    if (top < 0 || bottom > innerHeight) (place.closest("#question") || place).scrollIntoView();
  }

  /* ---- moving in a list ------------------------------------------------------------------------------------------- */
  let steppedAt = -1e9, gathering = 0;
  function placeOf(rows, by) {      // where the next step begins
    if (coming) return rows.findIndex((row) => row.dataset.opens === coming);
    const focused = rows.findIndex((row) => row === document.activeElement), current = rows.findIndex((row) => row.hasAttribute("aria-current"));
    const next = rows.findIndex((row) => row.dataset.next !== undefined);
    if (rows[0].dataset.row !== "open") return focused >= 0 ? focused : current;
    return current >= 0 ? current : next < 0 ? -1 : by > 0 ? next - 1 : next;
  }
  function step(by, fromList) {
    const rows = [...document.querySelectorAll("[data-row]")];
    if (!rows.length) return;
    if (sent()) { tell("Your answer is on its way."); return; }
    if (now() - refusedAt < HELD_MS) { refusedAt = -1e9; tell("Not moved on: your last press answered nothing, and this question still waits."); return; }
    const at = placeOf(rows, by), next = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
    if (rows[0].dataset.row !== "open") { next.focus(); return; }
    if (at + by >= rows.length) { tell(document.querySelector('#waiting-list [data-key="n"]') ? "The last here. n shows more." : "The last one."); return; }
    if (at >= 0 && at + by < 0) { tell("The first one."); return; }
    if (at < 0 || !coming) { if (next.dataset.next === "first" && by > 0) tell("Nothing waits below: this is the first one again."); }
    inList = Boolean(fromList);
    opened = true;
    next.focus();
    const quick = now() - steppedAt < QUICK_MS;
    steppedAt = now();
    if (asked) { const earlier = asked; asked = null; earlier.request.abort?.(); }
    clearTimeout(gathering);
    if (next.dataset.opens === card()?.id) { gaveUp(""); return; }   // back to the one that still stands here
    expectCard(next.dataset.opens);
    gathering = setTimeout(() => { document.querySelector(`[data-row="open"][data-opens="${coming}"]`)?.click(); }, quick ? GATHER_MS : 0);
  }

  /* ---- calls that are ticked, to be answered together ---------------------------------------------------------------- */
  function countTicked() {
    const place = byId("ticked"), boxes = [...document.querySelectorAll('[data-row="tick"]')];
    if (place) place.textContent = `${boxes.filter((box) => box.checked).length} of ${boxes.length} ticked`;
  }
  document.addEventListener("change", ({ target }) => { if (target.dataset.row === "tick") countTicked(); });

  /* ---- letters: off when a person says so ------------------------------------------------------------------------- */
  const keysOff = () => localStorage.getItem("oz0-keys") === "off";
  function mark() {
    document.body.classList.toggle("keys-off", keysOff());
    const box = byId("keys-switch");
    if (box) box.checked = !keysOff();
  }
  document.addEventListener("change", ({ target }) => {
    if (target.id === "keys-switch") { localStorage.setItem("oz0-keys", target.checked ? "on" : "off"); mark(); }
  });
  function fitHelp() {              // only what does something on this page
    for (const line of document.querySelectorAll("#keys [data-when]")) line.hidden = !document.querySelector(line.dataset.when);
  }
  document.addEventListener("click", ({ target }) => { if (target.closest('[data-dialog="keys"]')) fitHelp(); }, true);

  let armed = null, stray = null;   // a button that wants its letter twice; the letter that led into a field
  function intoField(field, key) {
    field.focus();
    stray = { key, held: true, until: now() + STRAY_MS };
  }
  function press(target, key) {
    const why = target.closest("#question .question") && unread();
    if (why) { refuse(why); return; }
    if (sent()) { tell("Your answer is on its way."); return; }
    const needs = target.form && [...target.form.elements].find((field) => field.required);   // words first, always
    if (needs) { intoField(needs, key); return; }
    if (target.dataset.twice && !(armed && armed.target === target && now() - armed.at < TWICE_MS)) {
      armed = { target, at: now() };
      target.focus();
      tell(target.dataset.twice);
      return;
    }
    if (target.dataset.twice && now() - armed.at < READ_MS) return;   // one press that bounced
    if (target.matches("details")) target.open = true; else { target.focus(); target.click(); }
  }
  function fillIn(preset) {         // a ready-made reason comes into the field; sending it is another press
    const field = preset.form.querySelector("textarea"), words = preset.textContent.trim();
    const ready = [...preset.form.querySelectorAll("[name=preset]")].map((one) => one.textContent.trim());
    const own = field.value.trim();
    field.value = !own || ready.includes(own) ? words : `${own} ${words}`.slice(0, field.maxLength);
    field.setCustomValidity("");
    intoField(field, "");
    tell("The reason is filled in. Ctrl+Enter denies with it.");
  }
  document.addEventListener("invalid", (event) => {
    const { target } = event;
    if (!target.dataset.missing) return;
    target.setCustomValidity(target.value ? "" : target.dataset.missing);
    tell(target.dataset.missing);
  }, true);
  document.addEventListener("input", ({ target }) => { if (target.dataset.missing) target.setCustomValidity(""); });

  function inField(event) {         // what a key does while somebody writes
    const { key, target } = event;
    if (stray && key === stray.key && (stray.held || now() < stray.until)) { event.preventDefault(); return; }
    const answer = target.closest("form.answer"), ready = stray && !target.value && !event.ctrlKey && !event.metaKey && !event.altKey
      && /^[1-9]$/.test(key) && answer?.querySelectorAll(".presets button")[Number(key) - 1];   // d, 3: the third reason
    stray = null;
    if (!answer) return;
    if (ready) { event.preventDefault(); fillIn(ready); return; }
    if (key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      const button = answer.querySelector("button[data-key]");
      if (button && !button.disabled && !sent()) answer.requestSubmit(button);
    } else if (key === "Escape") {
      event.preventDefault();
      focusOn(document.querySelector("#question h1"));
    }
  }
  document.addEventListener("keyup", ({ key }) => { if (stray && key === stray.key) stray.held = false; });

  let warned = false;
  function leave(event) {           // Escape goes back where a page says so, and not over what somebody typed
    const back = document.querySelector("a[data-escape]");
    if (!back || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    const fields = [...document.querySelectorAll("main form input, main form textarea, main form select")];
    const changed = document.querySelector("form[data-changed]") || fields.some((field) => field.type === "checkbox" || field.type === "radio" ? field.checked !== field.defaultChecked
      : field.tagName === "SELECT" ? [...field.options].some((option) => option.selected !== option.defaultSelected && field.selectedIndex > 0) : field.type !== "hidden" && field.value !== field.defaultValue);
    if (changed && !warned) { warned = true; tell("You changed something. Escape once more leaves it unsent."); return; }
    back.click();
  }

  document.addEventListener("keydown", (event) => {
    const { key, target } = event, help = byId("keys");
    if (event.isComposing) return;
    if (key === "k" && (event.ctrlKey || event.metaKey)) {
      const find = byId("find");
      if (find) { event.preventDefault(); find.focus(); }
      return;
    }
    if (key === "?" && help?.open) { event.preventDefault(); help.close(); return; }
    if (target.closest(FIELDS)) { inField(event); if (key === "Escape" && !event.defaultPrevented) leave(event); return; }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (key === "Escape") { leave(event); return; }
    if (key === "ArrowDown" || key === "ArrowUp") {
      const list = target.closest("#waiting-list");
      if (!list && (keysOff() || !document.querySelector('[data-row="open"]') || !target.matches("body, main, h1"))) return;
      event.preventDefault();
      step(key === "ArrowDown" ? 1 : -1, list);
      return;
    }
    if (event.repeat) return;
    if (key === "?") { if (help) { event.preventDefault(); fitHelp(); help.showModal(); } return; }
    const letter = /^[a-z]$/.test(key) && document.querySelector(`[data-key="${key}"]`);
    const preset = /^[1-9]$/.test(key) && document.querySelectorAll("#question .presets button")[Number(key) - 1];
    const tick = key === "x" && target.dataset.row === "tick" && target;
    const moves = (key === "j" || key === "k") && document.querySelector("[data-row]"), slash = key === "/" && document.querySelector("[data-slash]");
    if (coming && !letter && /^[adehrs]$/.test(key)) { event.preventDefault(); refuse(unread()); return; }   // what stands here has no answers any more
    if (!letter && !preset && !moves && !slash && !tick) return;
    if (keysOff()) { tell("Single letters are off on this browser. ? turns them on."); return; }
    event.preventDefault();
    if (tick) { tick.click(); return; }
    if (slash) { slash.focus(); slash.select(); return; }
    if (moves) { step(key === "j" ? 1 : -1); return; }
    if (preset) { const why = unread(); if (why) tell(why); else fillIn(preset); return; }
    if (!letter.disabled) press(letter, key); else if (letter.title) tell(letter.title);
  });

  mark();
  begin();
})();
