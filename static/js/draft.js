// Keeps the learner's program on the server: one save at a time, retried while the network is away.

import { announce } from "./announce.js";

const QUIET_MS = 700;
const RETRY_MS = 3000;
const MAX_RETRY_MS = 30000;
const ANSWERED = [409, 422]; // refusals that come with a state of their own

export class Draft {
  // `saver` is the element that posts the form's draft and swaps the state's fragment.
  constructor(saver, signal) {
    this.saver = saver;
    this.timer = 0;
    this.isDirty = false;
    this.isSaving = false;
    this.isRefused = false; // the server would not keep this program; another one it may
    this.retry = RETRY_MS;
    const options = { signal };
    saver.addEventListener("htmx:after:swap", () => (this.retry = RETRY_MS), options);
    saver.addEventListener("htmx:error", () => this.failed(), options);
    saver.addEventListener("htmx:response:error", (event) => {
      const { status } = event.detail.ctx.response;
      if (!ANSWERED.includes(status)) this.failed();
      this.isRefused = status === 422;
    }, options);
    saver.addEventListener("htmx:finally:request", () => this.finished(), options);
    saver.addEventListener("click", (event) => {
      if (event.target.closest("[data-keep-draft]")) this.save();
    }, options);
    window.addEventListener("online", () => this.isDirty && this.save(), options);
    document.addEventListener("visibilitychange", () => {
      if (document.hidden && this.isDirty) this.save();
    }, options);
  }

  get state() {
    return this.saver.querySelector(".draft")?.dataset.state;
  }

  set state(value) {
    const shown = this.saver.querySelector(".draft");
    if (shown) shown.dataset.state = value;
  }

  edited() {
    this.isDirty = true;
    // A conflict waits for the learner's choice: saving on would decide it for them.
    if (this.state === "conflict" && !this.isRefused) return;
    this.later(QUIET_MS);
  }

  // A run keeps the program too: saving at once learns the revision that it will have.
  flush() {
    if (this.isDirty && !this.isSaving && this.state !== "conflict") this.save();
  }

  later(delay) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.save(), delay);
  }

  save() {
    clearTimeout(this.timer);
    if (this.isSaving) return;
    this.isSaving = true;
    this.isDirty = false;
    this.hasFailed = false;
    this.isRefused = false;
    this.state = "saving";
    this.saver.dispatchEvent(new CustomEvent("academy:save"));
  }

  failed() {
    this.hasFailed = true;
  }

  finished() {
    this.isSaving = false;
    if (this.hasFailed) {
      this.isDirty = true;
      this.state = "offline";
      announce(this.saver.querySelector(".when-offline")?.textContent.trim());
      this.later(this.retry);
      this.retry = Math.min(this.retry * 2, MAX_RETRY_MS);
    } else if (this.isDirty && this.state !== "conflict") {
      this.later(QUIET_MS);
    }
  }
}
