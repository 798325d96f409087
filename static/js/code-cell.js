// <code-cell>: a real textarea that becomes an editor when it comes near the view.

import { announce, pageNonce } from "./announce.js";
import { Draft } from "./draft.js";

const EXPLAINED = [422, 429, 503]; // refusals whose answer is shown in the pane

export class CodeCell extends HTMLElement {
  #stop = new AbortController();
  #editor = null;
  #ran = null;
  #submitted = null;

  connectedCallback() {
    this.#stop = new AbortController();
    const options = { signal: this.#stop.signal };
    this.area = this.querySelector("textarea");
    this.form = this.area.form;
    this.cell = this.closest("[data-cell]");
    const run = this.#run();
    this.#ran = run && !run.hasAttribute("data-stale") ? this.#content() : null;
    this.draft = new Draft(this.cell.querySelector("[data-saver]"), this.#stop.signal);

    this.form.addEventListener("input", () => this.#edited(), options);
    this.form.addEventListener("submit", () => this.#submit(), options);
    this.area.addEventListener("keydown", (event) => this.#runKey(event), options);
    this.cell.addEventListener("htmx:before:request", (event) => this.#busy(event, true), options);
    this.cell.addEventListener("htmx:finally:request", (event) => this.#busy(event, false), options);
    this.cell.addEventListener("htmx:confirm", (event) => this.#ask(event), options);
    this.cell.addEventListener("htmx:after:swap", (event) => this.#swapped(event), options);
    for (const name of ["htmx:error", "htmx:response:error"]) {
      this.cell.addEventListener(name, (event) => this.#refused(event), options);
    }
    this.cell.addEventListener("academy:marks", () => this.#showMarks(), options);
    this.#loadWhenNear();
  }

  disconnectedCallback() {
    this.#stop.abort();
    this.#editor?.destroy();
    this.#editor = null;
  }

  run() {
    this.form.requestSubmit(this.form.querySelector("[data-run]"));
  }

  #run() {
    return this.cell.querySelector("[data-run-id]");
  }

  #content() {
    return JSON.stringify([this.area.value, this.form.elements.ranks?.value]);
  }

  #runKey(event) {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.isComposing) return;
    event.preventDefault();
    this.run();
  }

  #edited() {
    this.#run()?.toggleAttribute("data-stale", this.#ran !== this.#content());
    this.draft.edited();
  }

  #submit() {
    this.#submitted = this.#content();
    this.#showBusy(true);
    this.cell.removeAttribute("data-problem");
    this.draft.flush();
  }

  // From the press on, until the server has answered the last one.
  #busy(event, isBusy) {
    if (event.target === this.form) this.#showBusy(isBusy);
  }

  #showBusy(isBusy) {
    if (this.cell.hasAttribute("data-busy") === isBusy) return;
    this.cell.toggleAttribute("data-busy", isBusy);
    this.cell.querySelector(".pane").setAttribute("aria-busy", isBusy);
    if (isBusy) announce(this.cell.querySelector(".pending")?.textContent.trim());
  }

  // Reset throws the learner's version away, so it asks; with nothing to lose it does not.
  #ask(event) {
    event.preventDefault();
    const { own, ownRanks } = event.target.dataset;
    const { issueRequest, dropRequest } = event.detail;
    const isOwn = this.area.value === own && this.form.elements.ranks?.value === ownRanks;
    if (isOwn) return issueRequest();
    const dialog = this.cell.querySelector(".ask");
    dialog.returnValue = "keep";
    dialog.addEventListener("close", () => {
      if (dialog.returnValue === "reset") issueRequest();
      else dropRequest();
    }, { once: true });
    dialog.showModal();
  }

  #refused(event) {
    const status = event.detail.ctx?.response?.status;
    if (event.target !== this.form || EXPLAINED.includes(status)) return;
    const problem = status < 500 ? "refused" : "unreached";
    this.cell.dataset.problem = problem;
    announce(this.cell.querySelector(`.problem.${problem}`)?.textContent.trim());
  }

  #swapped(event) {
    if (event.target === this.cell && document.activeElement === document.body) {
      // The whole cell was put back, and with it the button that had the focus.
      this.cell.querySelector("[data-own]").focus({ preventScroll: true });
    }
    if (event.detail.ctx?.sourceElement !== this.form || !this.#run()) return;
    this.#ran = this.#submitted;
    this.#run().toggleAttribute("data-stale", this.#ran !== this.#content());
    this.#showMarks();
  }

  #showMarks() {
    const run = this.#run();
    const isStale = run?.hasAttribute("data-stale");
    const marks = isStale ? [] : JSON.parse(run?.dataset.marks ?? "[]");
    this.#editor?.mark(marks);
  }

  #loadWhenNear() {
    const observer = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      this.#load();
    }, { rootMargin: "400px" });
    observer.observe(this);
    this.#stop.signal.addEventListener("abort", () => observer.disconnect());
  }

  async #load() {
    const { Editor } = await import("./editor.js");
    if (this.#stop.signal.aborted || this.#editor) return;
    this.#editor = new Editor({
      area: this.area,
      label: this.dataset.label,
      describedBy: this.dataset.help,
      nonce: pageNonce(),
      onRun: () => this.run(),
    });
    this.#showMarks();
  }
}
