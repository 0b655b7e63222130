// The data, the part of the video that is shown, and the lanes on the page.
const data = JSON.parse(document.getElementById("data").textContent);
const END = data.end, LEAST = Math.min(1, END);
const byId = id => document.getElementById(id);
const lanesBox = byId("lanes"), view = {start: 0, end: END, width: 1};
document.documentElement.classList.add("js");

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const toX = time => (time - view.start) / (view.end - view.start) * view.width;
const toTime = x => view.start + x / view.width * (view.end - view.start);

function clock(seconds, digits = 0) {
  const unit = 10 ** digits, whole = Math.floor(seconds * unit + 1e-6) / unit;
  const hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
  const rest = (whole % 60).toFixed(digits).padStart(digits ? digits + 3 : 2, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

function show(start, length) {
  length = clamp(length, LEAST, END);
  view.start = clamp(start, 0, END - length);
  view.end = view.start + length;
  redraw();
}

function zoom(factor, at = inView(now) ? now : (view.start + view.end) / 2) {
  const length = clamp((view.end - view.start) * factor, LEAST, END);
  show(at - (at - view.start) / (view.end - view.start) * length, length);
}

const inView = time => time >= view.start && time <= view.end;
const pan = part => show(view.start + part * (view.end - view.start), view.end - view.start);

// The first place in ascending numbers, or spans, whose start is above a time.
function above(spans, time) {
  let low = 0, high = spans.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans[middle][0] <= time) low = middle + 1; else high = middle;
  }
  return low;
}

// The places of the spans that overlap [start, end], in their order.
function visible(lane, start, end) {
  const found = [];
  for (let place = above(lane.spans, start - lane.longest); place < lane.spans.length && lane.spans[place][0] <= end; place++)
    if (lane.spans[place][1] >= start) found.push(place);
  return found;
}

const bytes = text => Uint8Array.from(atob(text), each => each.charCodeAt(0));
const ROWS = 5;

// Spans that overlap stand in rows one below the other, as far as there are rows.
function packed(spans) {
  const ends = [];
  return spans.map(([start, end]) => {
    let row = ends.findIndex(last => last <= start + 1e-3);
    if (row < 0) row = ends.length < ROWS ? ends.length : ends.indexOf(Math.min(...ends));
    ends[row] = Math.max(end, ends[row] || 0);
    return row;
  });
}

function prepare(lane) {
  if (lane.spans) {
    lane.longest = lane.spans.reduce((most, [start, end]) => Math.max(most, end - start), 0);
    lane.rows = lane.kind === "spans" ? packed(lane.spans) : [];
  }
  if (lane.kind === "wave") {
    lane.levels = [bytes(lane.values)];
    for (let last = lane.levels[0]; last.length > 2000; lane.levels.push(last)) {
      const half = new Uint8Array(Math.ceil(last.length / 2));
      for (let i = 0; i < half.length; i++) half[i] = Math.max(last[2 * i], last[2 * i + 1] || 0);
      last = half;
    }
  }
  if (lane.kind === "strip" && lane.values) lane.cells = bytes(lane.values);
  if (lane.kind === "curve") {
    lane.low = lane.values.reduce((a, b) => Math.min(a, b), Infinity);
    lane.high = lane.values.reduce((a, b) => Math.max(a, b), -Infinity);
    lane.points = lane.times.map((time, place) => [time, lane.values[place]]);
  }
}

function height(lane) {
  if (lane.kind === "spans") return 24 * (1 + lane.rows.reduce((most, row) => Math.max(most, row), 0));
  return {shots: Object.keys(lane.pictures || {}).length ? 72 : 14, wave: 38, strip: 42, curve: 46}[lane.kind];
}

function element(tag, values = {}, ...children) {
  const made = Object.assign(document.createElement(tag), values);
  made.append(...children);
  return made;
}

const lanes = data.lanes.filter(lane => lane.spans ? lane.spans.length : lane.kind !== "strip" || lane.values);
const counts = lane => lane.spans ? ` (${lane.spans.length})` : "";
const minimap = {canvas: element("canvas", {id: "minimap"}), height: 18, draw: drawMinimap};
const scale = {canvas: element("canvas", {id: "scale"}), height: 24, draw: drawScale};
lanesBox.append(minimap.canvas, scale.canvas);
const drawn = [minimap, scale, ...lanes.map(lane => {
  prepare(lane);
  const canvas = element("canvas");
  lanesBox.append(element("div", {className: "name", textContent: lane.name + counts(lane)}), canvas);
  return {canvas, height: height(lane), lane, draw: (context, width, high) => drawLane(lane, context, width, high)};
})];
const playhead = element("div", {className: "line"}), pointed = element("div", {className: "line pointed", hidden: true});
lanesBox.append(playhead, pointed);

let waiting = false;
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}

function draw() {
  const ratio = window.devicePixelRatio || 1;
  view.width = lanesBox.clientWidth;
  for (const {canvas, height, draw} of drawn) {
    const [wide, high] = [Math.round(view.width * ratio), Math.round(height * ratio)];
    if (canvas.width !== wide || canvas.height !== high) {
      Object.assign(canvas, {width: wide, height: high});
      canvas.style.height = `${height}px`;
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, view.width, height);
    draw(context, view.width, height);
  }
  placeLines();
}
