// Remembers which section the learner reads, marks it in the rail, and returns there next time.

const SETTLE_MS = 800;

export function keepPlace(document) {
  const main = document.querySelector("[data-place-url]");
  if (!main) return;
  const sections = [...main.querySelectorAll("[data-section]")];
  foldRail(document);
  returnToPlace(document, main);

  let saved = main.dataset.place;
  let timer = 0;
  const inView = new Set();
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) inView.add(entry.target);
      else inView.delete(entry.target);
    }
    const current = sections.find((section) => inView.has(section));
    if (!current) return;
    markRail(document, current.id);
    clearTimeout(timer);
    if (current.dataset.section !== "place") return; // an appendix of the page, not a section
    timer = setTimeout(() => {
      if (current.id === saved) return;
      saved = current.id;
      post(main.dataset.placeUrl, current.id);
    }, SETTLE_MS);
  }, { rootMargin: "-15% 0px -70% 0px" });
  for (const section of sections) observer.observe(section);
}

function returnToPlace(document, main) {
  const kind = performance.getEntriesByType("navigation")[0]?.type;
  // On reload and on the way back the browser restores the exact position itself.
  if (kind === "reload" || kind === "back_forward") return;
  const first = main.querySelector("[data-section]");
  const wanted = decodeURIComponent(location.hash.slice(1)) || main.dataset.place;
  const place = document.getElementById(wanted);
  if (!place || place === first) return;
  // Again once everything is in its place, unless the learner has moved on already.
  const go = () => place.scrollIntoView({ block: "start", behavior: "instant" });
  go();
  const arrived = window.scrollY;
  window.addEventListener("load", () => {
    if (Math.abs(window.scrollY - arrived) < window.innerHeight / 2) go();
  });
}

function foldRail(document) {
  const rail = document.querySelector(".rail-fold");
  if (rail && matchMedia("(max-width: 63.99rem)").matches) rail.open = false;
}

function markRail(document, id) {
  for (const link of document.querySelectorAll(".rail a")) {
    if (link.hash === `#${id}`) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

function post(url, section) {
  const body = new URLSearchParams({ section });
  // Losing a place is no harm; the next section tries again.
  fetch(url, { method: "POST", body, keepalive: true }).catch(() => {});
}
