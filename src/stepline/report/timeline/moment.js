// The content at a time, shown next to the player and under the pointer.
function at(lane, time) {
  if (lane.kind === "wave") return "";
  if (lane.kind === "strip") {
    const length = lane.cells.length / lane.lags.length, column = Math.floor(time / lane.hop);
    const values = lane.lags.map((lag, row) => [lag, lane.cells[row * length + column]]);
    return values.filter(([lag, cell], row) => cell !== undefined && cell !== 255 && column < length && [0, 3, 6].includes(row))
      .map(([lag, cell]) => `${(lane.low + cell / 254 * (lane.high - lane.low)).toFixed(2)} to ${lag} s before`).join(", ");
  }
  if (lane.kind === "curve") {
    const place = above(lane.points, time) - 1;
    return place < 0 ? "" : lane.values[place].toFixed(3);
  }
  const found = visible(lane, time, time).filter(place => lane.spans[place][1] > time || lane.spans[place][1] === END);
  return found.map(place => {
    const [start, end, label, verdict] = lane.spans[place];
    return `${MARKS[verdict] ? `${MARKS[verdict]} ${verdict}: ` : ""}${label} (${clock(start, 1)}–${clock(end, 1)})`;
  }).join("; ");
}

const moment = time => lanes.map(lane => [lane.name, at(lane, time), lane.lang ?? "en"]).filter(([, text]) => text);

function placeLines() {
  playhead.hidden = !inView(now);
  playhead.style.transform = `translateX(${toX(now) - 1}px)`;
}

let shown = "";
function tell() {
  placeLines();
  byId("time").textContent = clock(now, 1);
  lanesBox.setAttribute("aria-valuenow", now.toFixed(1));
  const parts = moment(now), text = JSON.stringify(parts);
  if (byId("elsewhere")) byId("elsewhere").href = data.address[0] + Math.floor(now) + (data.address[1] || "");
  if (!poster.hidden && pictureAt(now) && poster.src !== pictureAt(now)) poster.src = pictureAt(now);
  if (text === shown) return;
  shown = text;
  lanesBox.setAttribute("aria-valuetext", [clock(now), ...parts.map(([name, what]) => `${name}: ${what}`)].join(". ").slice(0, 400));
  byId("now").replaceChildren(...parts.flatMap(([name, what, lang]) =>
    [element("dt", {textContent: name}), element("dd", {textContent: what, lang})]));
}

const hover = byId("hover");
function point(event) {
  const box = lanesBox.getBoundingClientRect(), x = event.clientX - box.left, time = clamp(toTime(x), 0, END);
  pointed.hidden = false;
  pointed.style.transform = `translateX(${clamp(x, 0, view.width)}px)`;
  const source = pictureAt(time);
  hover.replaceChildren(
    ...(source ? [element("img", {src: source, alt: ""})] : []), element("b", {textContent: clock(time, 1)}),
    ...moment(time).map(([name, what, lang]) =>
      element("p", {}, element("span", {textContent: `${name}: `}), element("span", {textContent: what.slice(0, 160), lang}))));
  hover.hidden = false;
  const {width, height} = hover.getBoundingClientRect();
  hover.style.left = `${clamp(event.clientX + 14, 4, window.innerWidth - width - 4)}px`;
  const below = event.clientY + 18 + height < window.innerHeight;
  hover.style.top = `${below ? event.clientY + 18 : Math.max(event.clientY - height - 14, 4)}px`;
}

function unpoint() {
  hover.hidden = pointed.hidden = true;
}
