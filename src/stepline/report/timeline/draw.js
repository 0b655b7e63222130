// What is drawn on a lane: only what is in view.
const PALETTE = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a8a00"]; // Okabe and Ito's
const MARKS = {"hit": "✓", "false positive": "✕", "wrong label": "≠", "miss": "○"};
const ERRORS = ["false positive", "wrong label", "miss"];
const colourOf = new Map(data.labels.map((label, place) => [label, place]));
const images = new Map();
let chosen = "";

function picture(lane, shot) {
  const source = lane.pictures[shot];
  if (!source) return null;
  if (!images.has(source)) images.set(source, element("img", {src: source, onload: redraw}));
  const image = images.get(source);
  return image.complete && image.naturalWidth ? image : null;
}

function drawLane(lane, context, width, high) {
  ({shots: drawShots, wave: drawWave, spans: drawSpans, strip: drawStrip, curve: drawCurve})[lane.kind](lane, context, width, high);
  context.fillStyle = "#8c2d0455";
  for (const [start, end] of data.gaps)
    for (let x = toX(start); end > view.start && start < view.end && x < toX(end); x += 6)
      if (x > -6 && x < width) context.fillRect(x, 0, 3, high);
}

function drawShots(lane, context, width, high) {
  let free = -Infinity, last = -1;
  for (const place of visible(lane, view.start, view.end)) {
    const [start, end] = lane.spans[place], left = toX(start), right = toX(end);
    if (Math.round(right) > last) {
      context.fillStyle = place % 2 ? "#8fb4cc" : "#0072b2";
      context.fillRect(left, high - 10, Math.max(right - left, 1), 10);
      last = Math.round(right);
    }
    const x = Math.max(left, 0), room = Math.max(Math.min(right, width) - x - 1, 30);
    const image = high > 20 && x >= free && picture(lane, place);
    if (image) {
      const shown = Math.min((high - 12) * image.naturalWidth / image.naturalHeight, room);
      const wide = shown / (high - 12) * image.naturalHeight; // of a narrow shot the middle of its picture
      context.drawImage(image, (image.naturalWidth - wide) / 2, 0, wide, image.naturalHeight, x, 0, shown, high - 12);
      free = x + shown;
    }
  }
}

function drawWave(lane, context, width, high) {
  const perPixel = (view.end - view.start) / width / lane.hop;
  const level = clamp(Math.floor(Math.log2(Math.max(perPixel, 1))), 0, lane.levels.length - 1);
  const values = lane.levels[level], hop = lane.hop * 2 ** level, middle = high / 2;
  context.fillStyle = "#4a4a4a";
  for (let x = 0; x < width; x++) {
    const from = Math.floor(toTime(x) / hop), to = Math.max(from + 1, Math.ceil(toTime(x + 1) / hop));
    let peak = 0;
    for (let i = from; i < Math.min(to, values.length); i++) peak = Math.max(peak, values[i]);
    const half = Math.max(peak / 255 * middle, .5);
    if (from < values.length) context.fillRect(x, middle - half, 1, 2 * half);
  }
}

function drawSpans(lane, context, width) {
  const last = {};
  context.font = "12px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif";
  context.textBaseline = "middle";
  for (const place of visible(lane, view.start, view.end)) {
    const [start, end, label, verdict] = lane.spans[place], row = lane.rows[place], top = 24 * row + 1;
    const left = Math.max(toX(start), -3), right = Math.min(toX(end), width + 3), wide = Math.max(right - left - 1, 1);
    if (right < (last[row] ?? -9) + 1 && !verdict) continue;
    last[row] = right;
    context.globalAlpha = chosen && label !== chosen ? .18 : 1;
    drawSpan(context, lane, label, verdict, left, top, wide);
    context.globalAlpha = 1;
  }
}

function drawSpan(context, lane, label, verdict, left, top, wide) {
  const number = colourOf.get(label), error = ERRORS.includes(verdict);
  const colour = lane.step === "gap" ? "#8c2d04" : number === undefined ? "#6b6b6b" : PALETTE[number % PALETTE.length];
  if (verdict !== "miss") {
    context.fillStyle = `${colour}38`;
    context.fillRect(left, top, wide, 22);
    if (number >= PALETTE.length || lane.step === "gap") hatch(context, colour, left, top, wide, Math.floor((number || 1) / PALETTE.length));
    context.fillStyle = colour;
    context.fillRect(left, top, Math.min(4, wide), 22);
  }
  if (error && wide > 3) {
    context.strokeStyle = "#b3261e";
    context.lineWidth = 2;
    context.setLineDash(verdict === "false positive" ? [] : verdict === "miss" ? [4, 3] : [8, 3]);
    context.strokeRect(left + 1, top + 1, wide - 2, 20);
    context.setLineDash([]);
  } else if (error) {
    context.fillStyle = "#b3261e";
    context.fillRect(left, top, wide, 22);
  }
  const text = [MARKS[verdict], label].filter(Boolean).join(" ");
  if (wide > 16 && text) {
    context.save();
    context.beginPath();
    context.rect(left, top, wide, 22);
    context.clip();
    context.fillStyle = "#1b1b1b";
    context.fillText(text.slice(0, 4 + wide / 4), Math.max(left, 0) + 7, top + 11.5);
    context.restore();
  }
}

function hatch(context, colour, left, top, wide, kind) {
  context.save();
  context.beginPath();
  context.rect(left, top, wide, 22);
  context.clip();
  context.strokeStyle = `${colour}90`;
  context.lineWidth = 1;
  context.beginPath();
  for (let x = left - 22; x < left + wide; x += 7) {
    if (kind % 3 !== 2) context.moveTo(x, top + 22), context.lineTo(x + 22, top);
    if (kind % 3 !== 1) context.moveTo(x, top), context.lineTo(x + 22, top + 22);
  }
  context.stroke();
  context.restore();
}

// From dark to light as cividis, so that order is seen without colour.
const RAMP = [[0, 32, 76], [58, 75, 107], [124, 123, 120], [187, 174, 110], [255, 234, 70]];
function shade(part) {
  const place = Math.min(part * (RAMP.length - 1), RAMP.length - 1.001), low = Math.floor(place);
  return RAMP[low].map((from, channel) => from + (RAMP[low + 1][channel] - from) * (place - low));
}

function drawStrip(lane, context, width, high) {
  const rows = lane.lags.length, length = lane.cells.length / rows;
  if (!lane.image) {
    lane.image = element("canvas", {width: length, height: rows});
    const pixels = new ImageData(length, rows);
    lane.cells.forEach((cell, place) => pixels.data.set(cell === 255 ? [242, 242, 242, 255] : [...shade(cell / 254), 255],
      4 * ((rows - 1 - Math.floor(place / length)) * length + place % length)));
    lane.image.getContext("2d").putImageData(pixels, 0, 0);
  }
  const from = view.start / lane.hop, to = Math.min(view.end / lane.hop, length);
  context.imageSmoothingEnabled = to - from > width;
  if (to > from) context.drawImage(lane.image, from, 0, to - from, rows, 0, 0, toX(to * lane.hop), high);
}

function drawCurve(lane, context, width, high) {
  const y = value => high - 4 - (value - lane.low) / (lane.high - lane.low || 1) * (high - 8);
  const first = Math.max(above(lane.points, view.start) - 1, 0), last = Math.min(above(lane.points, view.end) + 1, lane.points.length);
  context.strokeStyle = "#0072b2";
  context.lineWidth = 1.5;
  context.beginPath();
  const stride = Math.max(1, Math.floor((last - first) / width / 2)); // of several in a pixel the highest
  for (let place = first; place < last; place += stride) {
    let best = place;
    for (let i = place; i < Math.min(place + stride, last); i++) if (lane.values[i] > lane.values[best]) best = i;
    context.lineTo(toX(lane.times[best]), y(lane.values[best]));
  }
  context.stroke();
  context.fillStyle = "#4a4a4a";
  context.font = "10px system-ui, 'DejaVu Sans', sans-serif";
  context.textBaseline = "alphabetic";
  context.fillText(lane.high.toFixed(2), 3, 10);
  context.fillText(lane.low.toFixed(2), 3, high - 2);
}

const TICKS = [.1, .2, .5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200];
function drawScale(context, width, high) {
  const length = view.end - view.start, every = TICKS.find(tick => tick * width / length >= 74) || 14400;
  context.fillStyle = "#3a3a3a";
  context.font = "11px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif";
  context.textBaseline = "middle";
  for (let n = Math.ceil(view.start / every - 1e-6); n * every <= view.end; n++) {
    const x = toX(n * every);
    context.fillRect(x, high - 6, 1, 6);
    context.fillText(clock(n * every, every < 1 ? 1 : 0), x + 3, high / 2);
  }
  context.fillRect(0, high - 1, width, 1);
}

function drawMinimap(context, width, high) {
  const lane = lanes.find(each => each.step === "segment") || lanes.find(each => each.spans);
  context.fillStyle = "#8fb4cc";
  for (const [start, end] of lane ? lane.spans : [])
    context.fillRect(start / END * width, 4, Math.max((end - start) / END * width - .5, .5), high - 8);
  const left = view.start / END * width, wide = Math.max((view.end - view.start) / END * width, 6);
  context.fillStyle = "#0072b222";
  context.fillRect(left, 0, wide, high);
  context.strokeStyle = "#0072b2";
  context.lineWidth = 2;
  context.strokeRect(left + 1, 1, wide - 2, high - 2);
}
