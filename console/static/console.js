// What makes pages live. Without it they can be read. One EventSource for the whole browser: it is led by one tab
// (Web Locks) and shared with the others (BroadcastChannel), for a browser opens six connections to one place only.
"use strict";

const channel = new BroadcastChannel("hq-console");
const own = { id: Math.random().toString(36).slice(2), page: document.body.dataset.page };
const FORGET_MS = 90000;
const HEARD_MS = 25000; // pings come every 10 s
const shown = new Map(); // leader only: tab id -> {page, at}
const REOPEN_MS = 2000, MOST_REOPEN_MS = 32000;
let source = null, asked = "", lastHeard = new Date(), isLeader = false, isRefused = false, reopening = 0, reopenMs = REOPEN_MS;

// --- applying what changed ---

function apply(page, fragments) {
  if (page !== own.page) return;
  for (const [name, html] of Object.entries(fragments)) {
    const old = document.querySelector(`[data-live="${CSS.escape(name)}"]`);
    const fresh = new DOMParser().parseFromString(html, "text/html").body.firstElementChild;
    if (!old || !fresh || old.dataset.mark === fresh.dataset.mark) continue;
    const focused = old.contains(document.activeElement) ? pathTo(old, document.activeElement) : null;
    const opened = [...old.querySelectorAll("details")].map((one) => one.open);
    const scrolled = [...old.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
    const marked = new Set([...old.querySelectorAll("[name=chosen]:checked")].map((one) => one.value));
    const before = new Set([...old.querySelectorAll(PIECES)].map(content));
    fresh.querySelectorAll(PIECES).forEach((one) => { if (!before.has(content(one))) one.classList.add("changed"); });
    [...fresh.querySelectorAll("details")].forEach((one, at) => { one.open = opened[at] || false; });
    old.replaceWith(fresh);
    fresh.querySelectorAll("[name=chosen]").forEach((one) => { one.checked = marked.has(one.value); });
    [...fresh.querySelectorAll(".scroll")].forEach((one, at) => { one.scrollLeft = scrolled[at] || 0; });
    if (focused) { const again = follow(fresh, focused); if (again) again.focus({ preventScroll: true }); }
  }
}

// The pieces that light up when they change; times and ages in them do not count.
const PIECES = "tr, li, .card > p";
const content = (one) => one.innerHTML.replace(/<time.*?<\/time>/g, "").replace(/\b\d[\d.]* ?(?:ms|s|min|h|d)\b/g, "");

function pathTo(root, element) {
  const path = [];
  for (let at = element; at !== root; at = at.parentElement) path.unshift([...at.parentElement.children].indexOf(at));
  return { path, href: element.getAttribute("href") };
}

function follow(root, { path, href }) {
  if (href) { const same = root.querySelector(`[href="${CSS.escape(href)}"]`); if (same) return same; }
  return path.reduce((at, index) => at && at.children[index], root);
}

function heard(isThere) {
  const banner = document.getElementById("stale");
  if (isThere) { lastHeard = new Date(); isRefused = false; banner.hidden = true; return; }
  const what = isRefused ? "The console sends no live updates now" : "The console does not answer";
  const next = isRefused ? "Reload it to see what changed." : "It goes on by itself.";
  banner.textContent = `${what}: this page shows the state of ${lastHeard.toISOString().slice(11, 19)} UTC. ${next}`;
  banner.hidden = false;
}

// --- the leader ---

function open(force) {
  const pages = [...new Set([...shown.values()].map((one) => one.page))].sort().slice(0, 20);
  const wanted = pages.map((page) => `page=${encodeURIComponent(page)}`).join("&");
  if (wanted === asked && !force) return;
  asked = wanted;
  if (source) source.close();
  source = null;
  if (!wanted) return;
  source = new EventSource(`/live?${wanted}`);
  source.onmessage = (event) => { const { page, fragments } = JSON.parse(event.data); tell({ kind: "changed", page, fragments }); };
  source.addEventListener("ping", () => tell({ kind: "heard" }));
  source.addEventListener("signin", () => tell({ kind: "signin" }));
  source.onopen = () => { reopenMs = REOPEN_MS; tell({ kind: "heard" }); };
  source.onerror = () => {
    const isClosed = source && source.readyState === EventSource.CLOSED; // it answered, with an error: see MAX_STREAMS
    tell({ kind: isClosed ? "refused" : "silent" });
    if (!isClosed) return;
    clearTimeout(reopening);
    reopening = setTimeout(() => open(true), reopenMs);
    reopenMs = Math.min(2 * reopenMs, MOST_REOPEN_MS);
  };
}

function tell(message) { channel.postMessage(message); receive(message); }

function forgetOld() {
  const now = Date.now();
  for (const [id, one] of shown) if (id !== own.id && now - one.at > FORGET_MS) shown.delete(id);
  open(false);
}

function receive(message) {
  if (message.kind === "changed") { heard(true); apply(message.page, message.fragments); }
  if (message.kind === "heard") heard(true);
  if (message.kind === "silent") { isRefused = false; heard(false); }
  if (message.kind === "refused") { isRefused = true; heard(false); }
  if (message.kind === "signin") location.reload();
  if (!isLeader) return;
  if (message.kind === "show") { shown.set(message.id, { page: message.page, at: Date.now() }); open(false); }
  if (message.kind === "hide") { shown.delete(message.id); open(false); }
}

function announce() { tell({ kind: document.hidden ? "hide" : "show", id: own.id, page: own.page }); }

channel.onmessage = (event) => { if (event.data.kind === "who") announce(); else receive(event.data); };
document.addEventListener("visibilitychange", announce);
addEventListener("pagehide", () => { channel.postMessage({ kind: "hide", id: own.id }); if (source) source.close(); });
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
setInterval(() => { announce(); if (Date.now() - lastHeard > HEARD_MS && !document.hidden) heard(false); }, 15000);
navigator.locks.request("hq-console-live", () => {
  isLeader = true;
  channel.postMessage({ kind: "who" });
  announce();
  setInterval(forgetOld, 15000);
  return new Promise(() => {}); // until this tab is gone
});
announce();

// The line of pages may be wider than the screen.
const here = document.querySelector(".top nav [aria-current]");
if (here) here.parentElement.scrollLeft = here.offsetLeft - here.parentElement.offsetLeft - 110;

// --- dialogs and forms ---

document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-dialog]");
  if (opener) return show(opener);
  const closer = event.target.closest("[data-close]");
  if (closer) closer.closest("dialog").close();
});

function show(opener) {
  const dialog = document.getElementById(opener.dataset.dialog);
  if (!dialog) return;
  for (const [name, value] of Object.entries(opener.dataset)) {
    dialog.querySelectorAll(`[data-show="${name}"]`).forEach((one) => { one.textContent = value; });
    dialog.querySelectorAll(`[data-fill="${name}"]`).forEach((one) => { one.value = value; });
  }
  const choices = (opener.dataset.choices || "").split(" ");
  dialog.querySelectorAll("[data-choice]").forEach((one) => {
    one.hidden = !choices.includes(one.dataset.choice);
    one.querySelector("input").disabled = one.hidden;
    one.querySelector("input").checked = !one.hidden && one.dataset.choice === opener.dataset.choose;
  });
  dialog.dataset.failed = opener.dataset.failed || "";
  dialog.querySelectorAll("[type=checkbox]:required").forEach((one) => { one.checked = false; }); // asked each time
  dialog.dispatchEvent(new Event("change"));
  if (opener.dataset.action) dialog.querySelector("form").action = opener.dataset.action;
  const said = dialog.querySelector("[data-failed]");
  if (said) said.remove();
  dialog.showModal();
  const checked = dialog.querySelector("input[type=radio]:checked");
  if (checked) checked.focus();
}

// A field that belongs to one choice is shown with that choice only; a field about a failure only if there was one.
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-all]")) return mark(event.target);
  const dialog = event.target.closest("dialog");
  if (!dialog) return;
  const chosen = dialog.querySelector("[name=target]:checked");
  dialog.querySelectorAll("[data-with], [data-if]").forEach((one) => {
    const isOther = one.dataset.with && (!chosen || chosen.value !== one.dataset.with);
    one.hidden = Boolean(isOther || (one.dataset.if && !dialog.dataset[one.dataset.if]));
    one.querySelector("input").disabled = one.hidden;
  });
}, true);

// All rows of a table at once.
function mark(all) {
  all.closest("table").querySelectorAll("[name=chosen]").forEach((one) => { one.checked = all.checked; });
}

document.addEventListener("submit", (event) => {
  const form = event.target, dialog = form.closest("dialog");
  const button = form.method === "post" && form.querySelector("button:not([type=button])");
  if (button) setTimeout(() => { button.disabled = true; }); // sent once, not twice
  if (!dialog) return;
  event.preventDefault();
  send(form, dialog).finally(() => { button.disabled = false; });
});

// An order that fails leaves its dialog open, with what was typed into it.
async function send(form, dialog) {
  const body = new URLSearchParams(new FormData(form));
  let text = "The console does not answer: nothing is known of this order. Look at the page before you give it again.";
  try {
    const answer = await fetch(form.action, { method: "POST", body, headers: { "x-dialog": "1" } });
    text = await answer.text();
    if (answer.ok) { dialog.close(); return go(new URL(text, location)); }
  } catch { /* said below */ }
  const said = dialog.querySelector("[data-failed]") || document.createElement("p");
  Object.assign(said, { className: "trouble", textContent: text });
  said.dataset.failed = "";
  said.setAttribute("role", "alert");
  form.querySelector("h2").after(said);
  const about = text.split(":")[0]; // a field, or the word above it
  const field = form.elements[about] || [...form.elements].find((one) => one.labels && one.labels[0] && one.labels[0].textContent === about);
  if (field && field.focus) field.focus();
}

// A description is checked while it is typed: what Nanny says of it stands below.
const edited = document.querySelector("textarea[data-check]");
const CHECK_MS = 700;
let checks = 0, checking = 0;
if (edited) edited.addEventListener("input", () => { clearTimeout(checking); checking = setTimeout(check, CHECK_MS); });

async function check() {
  const mine = ++checks, body = new URLSearchParams(new FormData(edited.form));
  body.set("step", "check");
  let text = "";
  try {
    const answer = await fetch(edited.form.action, { method: "POST", body, headers: { "x-dialog": "1" } });
    text = await answer.text();
    if (answer.ok) text = text.startsWith("/signin") ? "" : "Nanny takes it.";
  } catch { /* not checked now: it is before it is stored */ }
  const said = document.getElementById(edited.dataset.check);
  if (mine === checks && said.textContent !== text) said.textContent = text;
}

function go(to) {
  if (to.pathname + to.search !== location.pathname + location.search) return location.assign(to);
  location.hash = to.hash; // an address that differs in this alone is not loaded again
  location.reload();
}

// What was ordered is told once; the page itself shows what becomes of it.
const told = document.querySelector(".flash.done");
if (told) setTimeout(() => told.remove(), 20000);

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, dialog");
  const isFind = event.key === "/" ? !typing && !event.ctrlKey && !event.metaKey : event.key === "k" && (event.ctrlKey || event.metaKey) && !event.target.closest("dialog");
  if (isFind) { event.preventDefault(); document.getElementById("find").focus(); }
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const pressed = { "?": "[data-dialog=keys]", n: "a[rel=next]", p: "a[rel=prev]" }[event.key];
  const what = pressed && document.querySelector(pressed);
  if (what) { event.preventDefault(); what.click(); }
});
