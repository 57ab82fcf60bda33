/* The studio in the browser: nudges and re-reads, the connection chip, clocks, and one submit per form.
   Keys, and the guard that no answer is given to a card nobody has read: keys.js.

   Nothing is decided here. The socket carries "topic, seq"; the parts then re-read themselves as the signed-in person.
   A part that wants this has: id, hx-get (its own address), hx-trigger="refresh", data-topics="job:… approvals", and
   data-seq when its topic counts. Without a socket everything is read again every 15 s. */
"use strict";
(() => {
  const POLL_MS = 15000, COALESCE_MS = 150, TICK_MS = 500, BACKOFF_MS = [250, 500, 1000, 2000, 4000, 8000];
  const parts = () => [...document.querySelectorAll("[data-topics]")];
  const topicsOf = (part) => part.dataset.topics.split(" ").filter(Boolean);
  const seen = new Map();           // topic -> the newest seq we heard of
  let socket = null, failures = 0, lastRead = Date.now(), signedOut = false, elsewhere = false;

  /* ---- re-reading ------------------------------------------------------------------------------------------- */
  const due = new Map();            // element id -> timer; many nudges make one read
  function refresh(part) {
    if (!part.id || due.has(part.id)) return;
    due.set(part.id, setTimeout(() => {
      due.delete(part.id);
      const now = document.getElementById(part.id);
      if (!now) return;
      if (now.dataset.reading) { now.dataset.again = "1"; return; }
      now.dispatchEvent(new CustomEvent("refresh"));
    }, COALESCE_MS));
  }
  const refreshAll = () => parts().forEach(refresh);

  function heard({ topic, seq }) {
    if (typeof seq === "number") seen.set(topic, Math.max(seen.get(topic) || 0, seq));
    for (const part of parts()) {
      if (!topicsOf(part).includes(topic)) continue;
      const rendered = part.dataset.seq;
      if (rendered === undefined || typeof seq !== "number" || seq > Number(rendered)) refresh(part);
    }
  }

  /* Only the newest request for a part may change it: a re-read that began before a person chose another question,
     and ends after, would put the old one back under their hand. */
  const newest = new Map();         // element id -> the newest request for it
  const overtaken = (ctx) => ctx.target && newest.has(ctx.target.id) && newest.get(ctx.target.id) !== ctx;
  document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => {
    if (!ctx.target || !ctx.target.dataset.topics) return;
    ctx.target.dataset.reading = "1";
    newest.set(ctx.target.id, ctx);
  });
  document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => {
    const part = ctx.target && ctx.target.id && document.getElementById(ctx.target.id);
    if (!part || overtaken(ctx)) return;
    delete part.dataset.reading;
    if (part.dataset.again) { delete part.dataset.again; refresh(part); return; }
    for (const topic of part.dataset.topics ? topicsOf(part) : []) {   // heard of more while it was being read
      if (part.dataset.seq !== undefined && (seen.get(topic) || 0) > Number(part.dataset.seq)) refresh(part);
    }
  });
  document.addEventListener("htmx:before:response", (event) => {
    const { ctx } = event.detail, { response } = ctx;
    if (overtaken(ctx)) { event.preventDefault(); return; }
    const away = response.raw && response.raw.redirected && new URL(response.raw.url).pathname.startsWith("/sign-in/");
    if (response.status === 200 && !away) { lastRead = Date.now(); return; }
    if (away || response.status === 403) { event.preventDefault(); signedOut = true; chip(); return; }
    if (response.status >= 500) { event.preventDefault(); }
  });
  // once more when all of it is here: the end of an answer may come after the whole of a newer one
  document.addEventListener("htmx:after:request", (event) => { const { ctx } = event.detail; if (overtaken(ctx)) event.preventDefault(); });
  document.addEventListener("htmx:after:swap", () => { if (document.title !== title()) document.title = title(); join(); look(); });

  /* What a person opened or typed stays when a part is patched around it. */
  if (window.htmx) {
    htmx.registerExtension("studio-keep", {
      htmx_before_morph_attr: (element, { attrName }) =>
        !(attrName === "open" && (element.tagName === "DETAILS" || element.tagName === "DIALOG")) && !attrName.startsWith("data-reading"),
      htmx_before_morph_node: (element) => !(element.matches && element.matches("textarea, input, select") && typed(element)),
    });
  }
  const typed = (field) => field === document.activeElement
    || (field.type === "checkbox" || field.type === "radio" ? field.checked !== field.defaultChecked
      : field.tagName === "SELECT" ? false : field.type !== "hidden" && field.value !== field.defaultValue);

  /* ---- the socket ------------------------------------------------------------------------------------------- */
  let joined = "";                  // the topics the server knows of
  function join() {
    const topics = [...new Set(parts().flatMap(topicsOf))].sort(), all = topics.join(" ");
    if (!socket || socket.readyState !== 1 || all === joined) return;
    joined = all;
    socket.send(JSON.stringify({ join: topics }));
  }
  function connect() {
    if (!document.body.dataset.live) return;
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    socket = new WebSocket(`${scheme}//${location.host}${document.body.dataset.live}`);
    socket.onopen = () => {
      failures = 0;
      joined = "";
      join();
      look();
      chip();
    };
    socket.onmessage = ({ data }) => {
      const told = JSON.parse(data);
      if (told.looking) sawLooking(told); else heard(told);
    };
    socket.onclose = ({ code }) => {
      socket = null;
      if (code === 4401) { signedOut = true; chip(); return; }
      if (code === 4409) { elsewhere = true; chip(); return; }
      const wait = BACKOFF_MS[Math.min(failures++, BACKOFF_MS.length - 1)];
      setTimeout(() => { connect(); }, wait * (0.75 + Math.random() / 2));
      chip();
    };
  }
  setInterval(() => { if (!socket || socket.readyState !== 1) refreshAll(); else if (Date.now() - lastRead > 4 * POLL_MS) refreshAll(); }, POLL_MS);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refreshAll(); });

  function chip() {
    const place = document.getElementById("connection");
    if (!place) return;
    const open = socket && socket.readyState === 1;
    const stale = Date.now() - lastRead > 2 * POLL_MS;
    const [tone, words] = signedOut ? ["bad", "Signed out: reload"]
      : elsewhere ? ["bad", "Other workspace: reload"]
      : open ? ["ok", "Live"]
      : stale ? ["bad", `Stale since ${new Date(lastRead).toLocaleTimeString([], { hour12: false })}`]
      : ["wait", "Reconnecting"];
    const look = `live tone-${tone}`;
    if (place.className !== look) place.className = look;
    if (place.textContent !== words) place.textContent = words;
  }

  /* ---- who else looks at a question: each page says so now and again, and what is not repeated is over. Nothing
     depends on it, so a tab that is gone without a word only stays named for a moment. ------------------------------ */
  const LOOK_MS = 20000, FORGET_MS = 45000;
  const lookers = new Map();        // "question person" -> [name, when it is over]
  let looked = "", lookedAt = 0;
  const question = () => document.getElementById("looking")?.dataset.looking || "";
  function look(again) {
    const now = question();
    if (!socket || socket.readyState !== 1 || document.hidden) return;
    if (!again && now === looked && Date.now() - lookedAt < LOOK_MS) { showLookers(); return; }
    if (now || looked) socket.send(JSON.stringify({ looking: now }));
    looked = now;
    lookedAt = Date.now();
    showLookers();
  }
  function sawLooking({ looking, who, person }) {
    const key = `${looking} ${person}`, known = lookers.has(key);
    lookers.set(key, [who, Date.now() + FORGET_MS]);
    if (!known && looking === question()) look(true);   // so that the newcomer knows
    showLookers();
  }
  function showLookers() {
    const place = document.getElementById("looking");
    if (!place) return;
    const names = [...lookers].filter(([key, [, over]]) => key.startsWith(`${question()} `) && over > Date.now()).map(([, [who]]) => who).sort();
    const words = names.length ? `Also looking at this now: ${names.join(", ")}` : "";
    if (place.textContent !== words) place.textContent = words;
    place.hidden = !words;
  }
  setInterval(() => look(), LOOK_MS / 4);

  /* ---- clocks: they run on between two reads, from the database's own time ----------------------------------- */
  function words(seconds) {
    const two = (n) => String(n).padStart(2, "0"), whole = Math.round(seconds);
    if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
    if (whole < 60) return `${whole} s`;
    if (whole < 3600) return `${Math.floor(whole / 60)} m ${two(whole % 60)} s`;
    if (whole < 86400) return `${Math.floor(whole / 3600)} h ${two(Math.floor(whole / 60) % 60)} m`;
    return `${Math.floor(whole / 86400)} d ${Math.floor(whole / 3600) % 24} h`;
  }
  const started = new WeakMap();    // clock -> [its own text of the start, when we saw it]
  function tick() {
    for (const clock of document.querySelectorAll("[data-elapsed], [data-countdown]")) {
      const from = clock.dataset.elapsed ?? clock.dataset.countdown;
      if (started.get(clock)?.[0] !== from) started.set(clock, [from, performance.now()]);
      const gone = (performance.now() - started.get(clock)[1]) / 1000;
      const text = words(clock.dataset.elapsed !== undefined ? Number(from) + gone : Math.max(0, Number(from) - gone));
      if (clock.textContent !== text) clock.textContent = text;
    }
    chip();
  }
  setInterval(tick, TICK_MS);

  /* ---- one submit per form; the newest token -------------------------------------------------------------------- */
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post" || event.defaultPrevented) return;
    if (form.dataset.sent) { event.preventDefault(); return; }
    const stays = event.submitter && event.submitter.formTarget === "_blank";   // it opens a tab, and this page goes on
    if (!stays) form.dataset.sent = "1";
    const token = document.cookie.match(/(?:^|; )oz0_csrf=([^;]+)/), field = form.querySelector("[name=csrfmiddlewaretoken]");
    if (token && field) field.value = token[1];      // signing in elsewhere changed it
    if (!stays) setTimeout(() => document.querySelectorAll(`form[data-group="${form.dataset.group || "-"}"] button, form[data-sent] button`).forEach((b) => { b.disabled = true; if (b.dataset.busy && b === event.submitter) { b.textContent = b.dataset.busy; b.setAttribute("aria-busy", "true"); } }));
  });
  window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  document.addEventListener("change", (event) => { if (event.target.form && event.target.form.dataset.auto !== undefined) { sessionStorage.setItem("oz0-filtered", "yes"); event.target.form.requestSubmit(); } });
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-dialog]");
    if (opener) document.getElementById(opener.dataset.dialog).showModal();
    if (event.target.closest("[data-close]")) event.target.closest("dialog").close();
    const copier = event.target.closest("[data-copy]");
    if (copier) {
      const field = document.getElementById(copier.dataset.copy);
      field.select();                   // so that it can be copied by hand where the browser lets no page do it
      if (navigator.clipboard) navigator.clipboard.writeText(field.value).then(() => { copier.textContent = "Copied"; }, () => {});
    }
    for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
  });

  /* ---- a group that is answered in parts goes on by itself -------------------------------------------------------- */
  const goOn = document.querySelector("form[data-go-on]");
  if (goOn) setTimeout(() => goOn.requestSubmit(), 50);

  /* ---- start ------------------------------------------------------------------------------------------------------ */
  const plainTitle = document.title.replace(/^\(\d+\+?\) /, "");
  function title() {
    const count = document.querySelector("#rail-count")?.textContent.trim();
    const plain = document.querySelector("[data-title]")?.dataset.title ?? plainTitle; // a part that was swapped brings its own
    return count ? `(${count}) ${plain}` : plain;
  }
  document.title = title();
  connect();
  tick();
})();
