// The time: that of the player, or of the page's own clock where the file cannot be played.
const video = byId("video"), poster = byId("poster");
let now = 0, playing = false, usable = Boolean(video), since = 0;

function seek(time) {
  now = clamp(time, 0, END);
  if (usable) video.currentTime = now;
  tell();
  if (!inView(now)) show(now - (view.end - view.start) * .1, view.end - view.start);
}

function play() {
  if (usable) return video.paused ? video.play() : video.pause();
  playing = !playing;
  since = performance.now();
  if (playing) requestAnimationFrame(tick);
  told();
}

function tick(at) {
  if (usable ? video.paused : !playing) return;
  now = usable ? video.currentTime : Math.min(now + (at - since) / 1000, END);
  since = at;
  if (!usable && now >= END) playing = false;
  if (!inView(now)) show(now - (view.end - view.start) * .1, view.end - view.start);
  tell();
  requestAnimationFrame(tick);
}

function told() {
  document.querySelector("[data-do=play]").textContent = (usable ? !video.paused : playing) ? "Pause" : "Play";
}

function unplayable() {
  usable = false;
  if (video) video.hidden = true, video.style.display = "none";
  byId("unplayed").hidden = false;
  poster.hidden = !shotLane || !Object.keys(shotLane.pictures).length;
  tell();
}

const shotLane = lanes.find(lane => lane.kind === "shots");
if (video) {
  video.addEventListener("error", unplayable);
  video.addEventListener("play", () => { requestAnimationFrame(tick); told(); });
  video.addEventListener("pause", told);
  for (const each of ["seeked", "timeupdate"])
    video.addEventListener(each, () => { if (usable && !dragging && !video.seeking) now = video.currentTime, tell(); });
}

// The picture that stands for a time: of its shot, else the nearest that there is.
function pictureAt(time) {
  if (!shotLane) return "";
  const at = Math.max(above(shotLane.spans, time) - 1, 0);
  const known = Object.keys(shotLane.pictures).map(Number);
  const nearest = shotLane.pictures[at] ? at : known.reduce((best, each) => Math.abs(each - at) < Math.abs(best - at) ? each : best, known[0]);
  return shotLane.pictures[nearest] || "";
}
