// What a run's pane needs beyond swapped markup: ticking time, announcements, connection state,
// the named events of its stream, and output boxes that follow their end.

import { announce } from "./announce.js";
import { htmx } from "./security.js";

const TICK_MS = 100;
const FIRST_RETRY_MS = 1000;

export function watchRuns(document) {
  const announced = new Map(); // id of the swapped element -> what was last said of it
  for (const element of document.querySelectorAll("[data-announce]")) {
    announced.set(element.closest("[id]").id, element.dataset.announce);
  }
  const started = new WeakMap();
  setInterval(() => tick(document, started), TICK_MS);

  document.addEventListener("trace", (event) => {
    runOf(event)?.querySelector("collective-timeline")?.add(JSON.parse(event.detail.data));
  });
  document.addEventListener("marks", (event) => {
    const run = runOf(event);
    if (run) run.dataset.marks = event.detail.data;
    run?.dispatchEvent(new CustomEvent("academy:marks", { bubbles: true }));
  });

  document.addEventListener("htmx:sse:after:connection", (event) => setLost(event, false));
  document.addEventListener("htmx:sse:error", (event) => setLost(event, true));
  document.addEventListener("htmx:sse:close", (event) => setLost(event, false));
  document.addEventListener("htmx:error", retryFirstConnection);
  for (const name of ["offline", "online"]) {
    window.addEventListener(name, () => {
      document.documentElement.toggleAttribute("data-offline", name === "offline");
    });
  }

  followOutput(document);
  document.addEventListener("htmx:after:swap", () => announceChanges(document, announced));
}

function runOf(event) {
  return event.target.closest?.("[data-run-id]");
}

function setLost(event, isLost) {
  const run = runOf(event);
  if (!run) return;
  const wasLost = run.hasAttribute("data-lost");
  run.toggleAttribute("data-lost", isLost);
  if (isLost && !wasLost) announce(run.querySelector(".lost")?.textContent.trim());
}

// The extension reconnects a stream that broke, but not one that never opened.
function retryFirstConnection(event) {
  const element = event.target;
  if (!element.getAttribute?.("hx-sse:connect") || element._htmx?.sse) return;
  element.toggleAttribute("data-lost", true);
  setTimeout(() => htmx.process(element, true), FIRST_RETRY_MS);
}

function tick(document, started) {
  const now = performance.now();
  for (const clock of document.querySelectorAll("[data-ticking]")) {
    if (!started.has(clock)) started.set(clock, now - Number(clock.dataset.ticking) * 1000);
    clock.textContent = ((now - started.get(clock)) / 1000).toFixed(1);
  }
}

function announceChanges(document, announced) {
  for (const element of document.querySelectorAll("[data-announce]")) {
    const { id } = element.closest("[id]");
    if (announced.get(id) === element.dataset.announce) continue;
    announced.set(id, element.dataset.announce);
    announce(element.dataset.announce);
  }
}

function followOutput(document) {
  let following = [];
  document.addEventListener("htmx:before:swap", () => {
    following = [...document.querySelectorAll("[data-run-id] .log")].filter(
      (log) => log.scrollTop + log.clientHeight >= log.scrollHeight - 4,
    );
  });
  document.addEventListener("htmx:after:swap", () => {
    for (const log of following) log.scrollTop = log.scrollHeight;
  });
}
