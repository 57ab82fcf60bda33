/* Notices of this browser, for a person who asked for them by a click: while no tab is looked at, one says that
   questions wait, and how many. It says nothing else, and a click on it opens the queue. */
"use strict";
(() => {
  const KEY = "oz0-desktop", can = "Notification" in window;
  const on = () => can && Notification.permission === "granted" && localStorage.getItem(KEY) === "on";
  const waiting = () => parseInt((document.querySelector("#rail-count")?.textContent || "0").replace(/\D/g, ""), 10) || 0;
  let known = waiting();

  function show() {
    const button = document.querySelector("[data-desktop]"), says = document.querySelector("[data-desktop-says]");
    if (!button) return;
    button.textContent = on() ? "Show none on this computer" : "Show notices on this computer";
    button.disabled = !can || Notification.permission === "denied";
    says.textContent = !can ? "This browser cannot." : Notification.permission === "denied" ? "This browser was told not to: allow it in its settings for this site." : on() ? "On." : "Off.";
  }
  document.addEventListener("click", async ({ target }) => {
    if (!target.closest("[data-desktop]") || !can) return;
    if (on()) localStorage.setItem(KEY, "off");
    else if (await Notification.requestPermission() === "granted") localStorage.setItem(KEY, "on");
    show();
  });
  document.addEventListener("htmx:after:swap", () => {
    const now = waiting(), more = now > known;
    known = now;
    if (!more || !document.hidden || !on()) return;
    const notice = new Notification(now === 1 ? "1 question waits" : `${now} questions wait`, { tag: "oz0-waiting", body: "Open the queue to answer." });
    notice.onclick = () => { window.focus(); location.href = "/approvals/"; notice.close(); };
  });
  show();
})();
