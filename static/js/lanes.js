// How the timeline is drawn: lanes of bars over a time axis, in colours and textures of the page.

export const LANE = 30;
const BAR = 18;
const GUTTER = 34;
const AXIS = 22;
const TILE = 8;
const HATCH = 14;
const LOOK_BACK = 8;
export const NEVER_ENDED = -1; // stands for the hatching, where others are indices of ops

// Microseconds to pixels and back.
export class Scale {
  constructor([from, to], width) {
    this.from = from;
    this.to = to;
    this.perPixel = (to - from) / Math.max(1, width - GUTTER - 2);
  }

  x(time) {
    return GUTTER + (time - this.from) / this.perPixel;
  }

  time(x) {
    return this.from + (x - GUTTER) * this.perPixel;
  }
}

// Calls of one rank may overlap a little, so step back over some that could still reach in.
function firstIn(lane, from) {
  let [low, high] = [0, lane.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane[middle].start < from) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - LOOK_BACK);
}

// Index of the call under x, or -1.
export function callAt(lane, x, scale) {
  let found = -1;
  for (let index = firstIn(lane, scale.time(x)); index < lane.length; index += 1) {
    const { start, duration } = lane[index];
    if (scale.x(start) > x + 4) break;
    if (duration < 0 || x <= scale.x(start + duration) + 4) found = index;
  }
  return found;
}

export function paintTimeline(canvas, view) {
  const { width, calls, colours, ops } = view;
  const height = calls.length * LANE + AXIS;
  const density = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(height * density);
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(density, density);
  context.font = `12px ${colours.font}`;
  context.textBaseline = "middle";
  const scale = new Scale(view.range, width);
  paintAxis(context, scale, { width, height, colours });
  const fills = ops.map((_, index) => patternFor(context, index, colours));
  const hatch = hatching(context, colours);
  calls.forEach((lane, rank) => {
    const chosen = view.chosen?.rank === rank ? view.chosen.index : -1;
    paintLane(context, scale, { lane, rank, width, chosen, colours, ops, fills, hatch });
  });
}

export function paintSwatches(legend, colours) {
  for (const swatch of legend.querySelectorAll("canvas")) {
    const context = swatch.getContext("2d");
    context.setTransform(2, 0, 0, 2, 0, 0);
    const op = Number(swatch.dataset.op);
    const box = [0, 0, swatch.width / 2, swatch.height / 2];
    context.fillStyle = op === NEVER_ENDED ? colours.quiet : patternFor(context, op, colours);
    context.fillRect(...box);
    if (op !== NEVER_ENDED) continue;
    context.fillStyle = hatching(context, colours);
    context.fillRect(...box);
  }
}

function paintAxis(context, scale, { width, height, colours }) {
  const step = chooseStep((scale.to - scale.from) / Math.max(2, (width - GUTTER) / 90));
  context.fillStyle = colours.quiet;
  context.strokeStyle = colours.line;
  context.textAlign = "center";
  for (let at = Math.ceil(scale.from / step) * step; at <= scale.to; at += step) {
    const x = Math.round(scale.x(at)) + 0.5;
    line(context, [x, 0], [x, height - AXIS]);
    const text = `${Number((at / 1000).toPrecision(6))} ms`;
    if (x > GUTTER + 20 && x < width - 24) context.fillText(text, x, height - AXIS / 2);
  }
}

function paintLane(context, scale, { lane, rank, width, chosen, colours, ops, fills, hatch }) {
  const top = rank * LANE + (LANE - BAR) / 2;
  context.save();
  context.beginPath();
  context.rect(GUTTER, rank * LANE, width - GUTTER, LANE);
  context.clip();
  let painted = -Infinity;
  for (let index = firstIn(lane, scale.from); index < lane.length; index += 1) {
    const { start, duration, op } = lane[index];
    if (start > scale.to) break;
    const isOpen = duration < 0;
    const left = scale.x(start);
    const right = isOpen ? width : Math.max(left + 1.5, scale.x(start + duration));
    if (right - painted < 0.75 && index !== chosen) continue; // adds less than a pixel
    painted = right;
    context.fillStyle = fills[ops.indexOf(op)];
    context.fillRect(left, top, right - left, BAR);
    if (isOpen) {
      context.fillStyle = hatch;
      context.fillRect(left, top, right - left, BAR);
    }
    context.strokeStyle = colours.edge;
    // An open bar's right edge falls outside of the lane: it has no end.
    if (isOpen) context.strokeRect(left + 0.5, top + 0.5, right - left + 9, BAR - 1);
    else if (right - left > 3) context.strokeRect(left + 0.5, top + 0.5, right - left - 1, BAR - 1);
    if (index !== chosen) continue;
    context.strokeStyle = colours.ink;
    context.lineWidth = 2;
    context.strokeRect(left - 2, top - 2, right - left + 4, BAR + 4);
    context.lineWidth = 1;
  }
  context.restore();
  context.fillStyle = colours.ink;
  context.textAlign = "left";
  context.fillText(String(rank), 12, rank * LANE + LANE / 2);
}

export function readColours(element) {
  const style = getComputedStyle(element);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    ink: read("--ink"),
    quiet: read("--ink-quiet"),
    line: read("--line"),
    edge: read("--edge"),
    paper: read("--raised"),
    danger: read("--danger"),
    font: style.fontFamily,
    ops: [0, 1, 2, 3, 4, 5].map((index) => read(`--op-${index}`)),
  };
}

// Each op has a hue and a texture of its own.
function patternFor(context, index, colours) {
  const tile = document.createElement("canvas");
  [tile.width, tile.height] = [TILE, TILE];
  const pen = tile.getContext("2d");
  pen.fillStyle = colours.ops[index % colours.ops.length];
  pen.fillRect(0, 0, TILE, TILE);
  pen.strokeStyle = colours.paper;
  pen.fillStyle = pen.strokeStyle;
  pen.lineWidth = 1.5;
  TEXTURES[index % TEXTURES.length](pen);
  return context.createPattern(tile, "repeat");
}

// Laid over the colour of a call that never ended; coarser than any op's texture.
function hatching(context, colours) {
  const tile = document.createElement("canvas");
  [tile.width, tile.height] = [HATCH, HATCH];
  const pen = tile.getContext("2d");
  pen.strokeStyle = colours.paper;
  pen.lineWidth = 5;
  line(pen, [-4, 4], [4, -4], [-4, HATCH + 4], [HATCH + 4, -4], [HATCH - 4, HATCH + 4], [HATCH + 4, HATCH - 4]);
  return context.createPattern(tile, "repeat");
}

const line = (pen, ...points) => {
  pen.beginPath();
  points.forEach(([x, y], index) => (index % 2 ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.stroke();
};

const TEXTURES = [
  () => {},
  (pen) => line(pen, [-2, 10], [10, -2], [-2, 2], [2, -2], [6, 10], [10, 6]),
  (pen) => pen.fillRect(3, 3, 2.5, 2.5),
  (pen) => line(pen, [0, 4], [8, 4]),
  (pen) => line(pen, [-2, -2], [10, 10], [6, -2], [10, 2], [-2, 6], [2, 10]),
  (pen) => line(pen, [4, 0], [4, 8]),
];

// The smallest of 1, 2, 5 times a power of ten that is not below `least`.
function chooseStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least);
}
