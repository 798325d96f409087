// What checks gain from a script: lines of code move up and down, and every verdict is told.
// Both only set what is in the form anyway.

import { announce } from "./announce.js";

export function watchChecks(document) {
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-move]");
    if (button) move(button);
  });
  // The same verdict as before is news to whoever has answered again.
  document.addEventListener("htmx:before:request", (event) => {
    if (checkOf(event)) announce(" ");
  });
  document.addEventListener("htmx:after:swap", (event) => {
    const told = document.getElementById(checkOf(event)?.id)?.querySelector("[data-announce]");
    if (told) announce(told.dataset.announce);
  });
}

function checkOf(event) {
  const source = event.detail?.ctx?.sourceElement;
  return source?.matches?.("form.check") ? source : null;
}

// Lines with a place stand first; below the last of them a line is not used.
function move(button) {
  const line = button.closest(".line");
  const list = line.parentElement;
  const used = [...list.children].filter(placeOf).sort((a, b) => placeOf(a) - placeOf(b));
  const at = used.indexOf(line);
  if (at >= 0) used.splice(at, 1);
  const isUp = button.dataset.move === "up";
  const from = at >= 0 ? at : isUp ? used.length + 1 : Infinity;
  const to = isUp ? Math.max(from - 1, 0) : from + 1;
  if (to <= used.length) used.splice(to, 0, line);
  const rest = [...list.children].filter((other) => !used.includes(other));
  rest.sort((a, b) => a.dataset.shown - b.dataset.shown);
  for (const [index, placed] of used.entries()) selectOf(placed).value = String(index + 1);
  for (const unused of rest) selectOf(unused).value = "";
  list.append(...used, ...rest);
  button.focus();
  announce(sentence(list, line, used));
}

function selectOf(line) {
  return line.querySelector("select");
}

function placeOf(line) {
  return Number(selectOf(line).value);
}

function sentence(list, line, used) {
  const at = used.indexOf(line);
  const words = at < 0 ? list.dataset.saidUnused : list.dataset.saidPlaced;
  const facts = { place: at + 1, count: used.length, code: line.querySelector("code").textContent };
  return words.replace(/\{(\w+)\}/g, (_, name) => facts[name]);
}
