// <collective-timeline>: one lane per rank, one bar per call. Drawn on a canvas, usable by keyboard.
//
// It is fed by the JSON of app/panels/timeline.py, embedded at first and then by the stream:
// {ranks, ops, modules, end, calls: [[rank, start, duration | -1, op, group size, input bytes,
// output bytes, phase, module | -1, line | -1], ...]}, times in microseconds, names as indices.

import { callAt, LANE, NEVER_ENDED, paintSwatches, paintTimeline, readColours, Scale } from "./lanes.js";

const MAX_CALLS = 5000;
const MIN_SPAN_US = 20;
const READ_MS = 400;

export class CollectiveTimeline extends HTMLElement {
  #calls = []; // per rank, by start
  #end = 0;
  #view = null; // [from, to] in microseconds; null follows the whole run
  #chosen = null; // {rank, index}
  #frame = 0;
  #readTimer = 0;
  #stop = new AbortController();

  connectedCallback() {
    this.#stop = new AbortController();
    const options = { signal: this.#stop.signal };
    if (!this.canvas) this.#build();
    this.#calls = [];
    this.add(JSON.parse(this.dataset.trace));
    const resized = new ResizeObserver(() => this.draw());
    resized.observe(this.canvas);
    options.signal.addEventListener("abort", () => resized.disconnect());
    for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
      matchMedia(query).addEventListener("change", () => this.draw(), options);
    }
    this.canvas.addEventListener("keydown", (event) => this.#key(event), options);
    this.canvas.addEventListener("wheel", (event) => this.#wheel(event), {
      ...options,
      passive: false,
    });
    this.canvas.addEventListener("pointerdown", (event) => this.#drag(event), options);
    this.canvas.addEventListener("pointermove", (event) => this.#hover(event), options);
    this.canvas.addEventListener("dblclick", () => this.#look(null), options);
  }

  disconnectedCallback() {
    this.#stop.abort();
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#readTimer);
  }

  add(news) {
    for (let rank = this.#calls.length; rank < news.ranks; rank += 1) this.#calls.push([]);
    for (const [rank, start, duration, op, size, input, output, phase, module, line] of news.calls) {
      this.#calls[rank]?.push({
        rank, start, duration, size, input, output, phase, line,
        op: news.ops[op],
        module: news.modules[module] ?? "",
      });
      this.#end = Math.max(this.#end, start + Math.max(duration, 0));
    }
    // A call that never ended reaches to the run's end; otherwise the calls alone set the range.
    if (news.end !== null && this.#isStuck) this.#end = Math.max(this.#end, news.end);
    const keep = Math.ceil(MAX_CALLS / Math.max(1, this.#calls.length));
    for (const lane of this.#calls) {
      if (news.calls.length) lane.sort((a, b) => a.start - b.start);
      if (lane.length > keep) lane.splice(0, lane.length - keep);
    }
    this.toggleAttribute("data-empty", !this.#calls.some((lane) => lane.length));
    this.#legend();
    this.draw();
  }

  draw() {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#paint());
  }

  #build() {
    this.canvas = document.createElement("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", this.dataset.label);
    this.canvas.setAttribute("aria-describedby", this.dataset.help);
    this.key = document.createElement("ul");
    this.key.className = "legend";
    this.readout = document.createElement("p");
    this.readout.className = "readout";
    this.readout.setAttribute("role", "status");
    this.append(this.key, this.canvas, this.readout);
  }

  get #ops() {
    return [...new Set(this.#calls.flatMap((lane) => lane.map((call) => call.op)))].sort();
  }

  get #isStuck() {
    return this.#calls.some((lane) => lane.some((call) => call.duration < 0));
  }

  #legend() {
    const names = this.#ops.map((op, index) => [op, index]);
    if (this.#isStuck) names.push([this.dataset.textNever, NEVER_ENDED]);
    const shown = names.join();
    if (this.key.dataset.ops === shown) return;
    this.key.dataset.ops = shown;
    this.key.replaceChildren(...names.map(([name, index]) => {
      const item = document.createElement("li");
      const swatch = document.createElement("canvas");
      [swatch.width, swatch.height] = [36, 24];
      swatch.dataset.op = index;
      swatch.setAttribute("aria-hidden", "true");
      item.append(swatch, name);
      return item;
    }));
  }

  get #range() {
    const pad = Math.max(this.#end * 0.02, 10);
    return this.#view ?? [this.#first - pad, this.#end + pad];
  }

  get #first() {
    return Math.min(...this.#calls.map((lane) => lane[0]?.start ?? Infinity), this.#end);
  }

  #paint() {
    const width = this.canvas.clientWidth;
    if (!width || !this.#calls.length) return;
    paintTimeline(this.canvas, {
      width,
      calls: this.#calls,
      ops: this.#ops,
      range: this.#range,
      chosen: this.#chosen,
      colours: readColours(this),
    });
    paintSwatches(this.key, readColours(this));
  }

  #scale() {
    return new Scale(this.#range, this.canvas.clientWidth);
  }

  #look(view) {
    if (view && view[1] - view[0] < MIN_SPAN_US) return;
    const isWhole = view && view[0] <= this.#first && view[1] >= this.#end;
    this.#view = isWhole ? null : view;
    this.draw();
  }

  #zoom(factor, around) {
    const [from, to] = this.#range;
    this.#look([around - (around - from) * factor, around + (to - around) * factor]);
  }

  #pan(share) {
    const [from, to] = this.#range;
    this.#look([from + (to - from) * share, to + (to - from) * share]);
  }

  #wheel(event) {
    // The page scrolls as usual until the timeline has the focus.
    if (document.activeElement !== this.canvas && !event.ctrlKey) return;
    event.preventDefault();
    this.#zoom(event.deltaY > 0 ? 1.25 : 0.8, this.#scale().time(event.offsetX));
  }

  #drag(down) {
    const [from, to] = this.#range;
    const { perPixel } = this.#scale();
    const hit = this.#hit(down.offsetX, down.offsetY);
    if (hit) this.#choose(hit);
    this.canvas.setPointerCapture(down.pointerId);
    const move = (event) => {
      const shift = (down.clientX - event.clientX) * perPixel;
      if (Math.abs(down.clientX - event.clientX) > 3) this.#look([from + shift, to + shift]);
    };
    const up = () => {
      this.canvas.removeEventListener("pointermove", move);
      this.canvas.removeEventListener("pointerup", up);
      this.canvas.removeEventListener("pointercancel", up);
    };
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("pointerup", up);
    this.canvas.addEventListener("pointercancel", up);
  }

  #hover(event) {
    if (event.buttons) return;
    const hit = this.#hit(event.offsetX, event.offsetY);
    if (hit) this.#choose(hit);
  }

  #hit(x, y) {
    const rank = Math.floor(y / LANE);
    const lane = this.#calls[rank];
    const index = lane ? callAt(lane, x, this.#scale()) : -1;
    return index < 0 ? null : { rank, index };
  }

  #key(event) {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const [from, to] = this.#range;
    const actions = {
      w: () => this.#zoom(0.7, this.#focusTime((from + to) / 2)),
      s: () => this.#zoom(1.4, this.#focusTime((from + to) / 2)),
      a: () => this.#pan(-0.2),
      d: () => this.#pan(0.2),
      f: () => this.#look(null),
      ArrowLeft: () => this.#step(-1, 0),
      ArrowRight: () => this.#step(1, 0),
      ArrowUp: () => this.#step(0, -1),
      ArrowDown: () => this.#step(0, 1),
      Escape: () => this.#choose(null),
    };
    if (!actions[key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[key]();
  }

  #focusTime(otherwise) {
    const call = this.#chosen && this.#calls[this.#chosen.rank]?.[this.#chosen.index];
    return call ? call.start : otherwise;
  }

  #step(along, across) {
    const { rank, index } = this.#chosen ?? { rank: 0, index: along > 0 ? -1 : 0 };
    const next = Math.min(Math.max(rank + across, 0), this.#calls.length - 1);
    const lane = this.#calls[next] ?? [];
    if (!lane.length) return;
    this.#choose({ rank: next, index: Math.min(Math.max(index + along, 0), lane.length - 1) });
    const call = lane[this.#chosen.index];
    const [from, to] = this.#range;
    const span = to - from;
    if (call.start < from || call.start > to) {
      this.#look([call.start - span / 2, call.start + span / 2]);
    }
  }

  #choose(chosen) {
    const same = chosen?.rank === this.#chosen?.rank && chosen?.index === this.#chosen?.index;
    if (same) return;
    this.#chosen = chosen;
    this.draw();
    clearTimeout(this.#readTimer);
    // A readout once things hold still: a screen reader could not follow every step.
    this.#readTimer = setTimeout(() => (this.readout.textContent = this.#sentence()), READ_MS);
  }

  #sentence() {
    const call = this.#chosen && this.#calls[this.#chosen.rank]?.[this.#chosen.index];
    if (!call) return "";
    const isOpen = call.duration < 0;
    const text = (isOpen ? this.dataset.textOpen : this.dataset.textCall)
      .replace("{rank}", call.rank)
      .replace("{op}", call.op)
      .replace("{bytes}", call.input.toLocaleString(document.documentElement.lang))
      .replace("{ms}", (call.duration / 1000).toFixed(3))
      .replace("{at}", (call.start / 1000).toFixed(1));
    const where = call.line > 0 ? this.dataset.textLine.replace("{line}", call.line) : "";
    return [text, where].filter(Boolean).join(this.dataset.textGap);
  }
}
