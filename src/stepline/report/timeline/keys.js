// Pointers, wheel, keys and buttons.
const STEPS = {s: "shot", t: "sentence", g: "segment", p: "predicted", e: "error"};
const pointers = new Map();
let dragging = false, pinched = 0, mapped = false;

function starts(step) {
  const of = lanes.filter(lane => lane.step === (step === "error" ? "predicted" : step));
  const spans = of.flatMap(lane => lane.spans).filter(([, , label, verdict]) =>
    (step !== "error" || ERRORS.includes(verdict)) && (!chosen || step === "shot" || step === "sentence" || label === chosen));
  return [...new Set(spans.map(([start]) => start))].sort((a, b) => a - b);
}

function step(name, back) {
  const times = starts(name), next = back ? times.findLast(time => time < now - .05) : times.find(time => time > now + .05);
  if (next !== undefined) seek(next);
}

const timeOf = event => toTime(event.clientX - lanesBox.getBoundingClientRect().left);
function toMap(event) {
  const length = view.end - view.start;
  show((event.clientX - lanesBox.getBoundingClientRect().left) / view.width * END - length / 2, length);
}

lanesBox.addEventListener("pointerdown", event => {
  if (event.button) return;
  lanesBox.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, event.clientX);
  mapped = event.target === minimap.canvas;
  dragging = pointers.size === 1 && !mapped;
  if (mapped) toMap(event);
  if (dragging) seek(timeOf(event));
});
lanesBox.addEventListener("pointermove", event => {
  if (pointers.has(event.pointerId)) {
    const before = [...pointers.values()], middle = before.reduce((a, b) => a + b, 0) / before.length;
    pointers.set(event.pointerId, event.clientX);
    if (pointers.size === 2) {
      const after = [...pointers.values()], [wide, was] = [after, before].map(([a, b]) => Math.max(Math.abs(a - b), 8));
      const centre = toTime(middle - lanesBox.getBoundingClientRect().left);
      zoom(was / wide, centre);
      pan((middle - (after[0] + after[1]) / 2) / view.width);
      return;
    }
    if (mapped) return toMap(event);
    if (dragging) seek(timeOf(event));
  }
  if (event.target !== minimap.canvas || dragging) point(event); else unpoint();
});
for (const each of ["pointerup", "pointercancel"])
  lanesBox.addEventListener(each, event => {
    pointers.delete(event.pointerId);
    dragging = mapped = false;
    if (event.pointerType === "touch") unpoint();
  });
lanesBox.addEventListener("pointerleave", unpoint);
lanesBox.addEventListener("wheel", event => {
  const across = event.shiftKey ? event.deltaX || event.deltaY : Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : 0;
  const zooms = event.ctrlKey || event.metaKey || event.target === scale.canvas || event.target === minimap.canvas;
  if (!across && !zooms) return;
  event.preventDefault();
  if (across && !event.ctrlKey) pan(across / view.width);
  else zoom(2 ** (clamp(event.deltaY, -200, 200) / (Math.abs(event.deltaY) < 20 ? 30 : 160)), clamp(timeOf(event), 0, END));
}, {passive: false});

const actions = {play, in: () => zoom(.5), out: () => zoom(2), all: () => show(0, END), back: () => step(which.value, true), on: () => step(which.value)};
document.addEventListener("click", event => {
  actions[event.target.closest("button")?.dataset.do]?.();
});

document.addEventListener("keydown", event => {
  const typing = event.target.closest("input, select, textarea, video, summary, a, button");
  if (event.ctrlKey || event.metaKey || (typing && (typing.matches("input, select, textarea, video") || " Enter".includes(event.key)))) return;
  const size = event.shiftKey ? 10 : event.altKey ? .1 : 1, key = event.key.toLowerCase();
  const does = {
    " ": play, "+": actions.in, "=": actions.in, "-": actions.out, "0": actions.all, "c": copy,
    "[": () => pan(-.5), "]": () => pan(.5), "arrowleft": () => seek(now - size), "arrowright": () => seek(now + size),
    "home": () => seek(0), "end": () => seek(END),
  }[key] || (STEPS[key] && (() => step(STEPS[key], event.shiftKey)));
  if (!does || (["home", "end"].includes(key) && event.target !== lanesBox)) return;
  event.preventDefault();
  does();
});

async function copy() {
  const text = clock(now, 1);
  try {
    await navigator.clipboard.writeText(text);
    byId("copied").textContent = `copied ${text}`;
  } catch {
    byId("copied").textContent = `${text}: the browser does not let the page copy`;
  }
}
byId("copy").addEventListener("click", copy);

const which = byId("which");
for (const [key, name] of Object.entries(STEPS))
  if (starts(name).length) which.append(element("option", {value: name, textContent: `${name} (${key.toUpperCase()})`}));
byId("steps").hidden = !which.options.length;

const select = byId("label");
byId("filter").hidden = data.labels.length < 2;
select.append(...data.labels.map(label => element("option", {value: label, textContent: label.slice(0, 60)})));
select.addEventListener("change", () => { chosen = select.value; redraw(); });
if (lanes.some(lane => lane.rule))
  byId("key").textContent = "In predicted lanes: ✓ hit, ✕ false positive, ≠ wrong label, ○ miss, a true step that is not found. "
    + [...new Set(lanes.map(lane => lane.rule).filter(Boolean))].map(rule => `${rule[0].toUpperCase()}${rule.slice(1)}.`).join(" ");

const asked = () => { const found = /^#t=([\d.]+)/.exec(location.hash); if (found) seek(Number(found[1])); };
window.addEventListener("hashchange", asked);
document.querySelector("section[aria-label=Lists]").addEventListener("click", event => {
  const link = event.target.closest("a");
  if (link) event.preventDefault(), history.replaceState(null, "", link.hash), asked();
});
new ResizeObserver(redraw).observe(lanesBox);
if (!video || video.error || video.networkState === 3) unplayable();
draw();
tell();
told();
asked();
window.timeline = {view, show, zoom, seek, draw, now: () => now};
