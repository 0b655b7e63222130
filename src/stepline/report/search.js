"use strict";
// The page of a search. `data` contains the results, `embedded` the rows and sentences that the page can search.
const read = (id) => JSON.parse(document.getElementById(id)?.textContent ?? "null");
const data = read("data");
const embedded = read("embedded") ?? {};
const list = document.getElementById("results");
const input = document.getElementById("text");
const only = document.getElementById("video");
const state = document.getElementById("state");
const back = document.getElementById("back");

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== ""));
  return made;
}

function clock(time) {
  const [hours, minutes, seconds] = [Math.floor(time / 3600), Math.floor(time / 60) % 60, Math.floor(time) % 60];
  const two = (number) => String(number).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(seconds)}` : `${minutes}:${two(seconds)}`;
}

const spoken = (id, sentence) => (data.videos[id].lang ? element("span", { lang: data.videos[id].lang }, sentence) : sentence);
const span = (start, end) => `${clock(start)}–${clock(end)}`;
const short = (number) => String(Math.round(number * 1000) / 1000);
const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`);

/** A command with a button that copies it. */
function command(text) {
  const code = element("code", {}, text);
  async function copy() {
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Selected: press Ctrl+C";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  }
  const button = element("button", { type: "button", click: copy }, "Copy");
  return element("div", { class: "command" }, code, button);
}

/** The ffmpeg command that extracts a moment from its exact start, like `--cut`. */
function cutting(id, start, end) {
  const name = `${id}-${short(start)}-${short(end)}.mp4`;
  const path = data.videos[id].path;
  const copy = "-c:v libx264 -pix_fmt yuv420p -c:a aac -movflags +faststart";
  return `ffmpeg -ss ${short(start)} -t ${short(end - start)} -i ${quoted(plain(path))} ${copy} ${quoted(plain(name))}`;
}
const plain = (path) => (path.startsWith("-") ? `./${path}` : path);

/** The picture of a card, which is replaced by the player. */
class Player {
  constructor(id, picture, note, end) {
    const video = data.videos[id];
    [this.id, this.file, this.end, this.stop] = [id, video.file, end, null];
    this.shown = picture ? element("img", { src: picture, alt: `${id}, a frame` }) : element("span", { class: "none" }, note || "no picture");
    this.place = element("div", { class: "player" });
    this.said = element("p", { class: "note", role: "status" }, picture ? note : "");
    this.on = element("button", { type: "button", hidden: true, click: () => this.goOn() }, "Continue from here");
    if (!this.file && !video.address) this.said.append(" The video is not kept and cannot be played.");
  }

  /** Show the picture as a button that plays a moment. */
  rest(start, end) {
    const label = `Play ${this.id}, ${span(start, end)}`;
    if (this.file) this.place.replaceChildren(element("button", { type: "button", class: "picture", "aria-label": label, click: () => this.play(start, end) }, this.shown, element("span", { class: "play", "aria-hidden": "true" }, `▶ ${clock(start)}`)));
    else this.place.replaceChildren(link(this.id, start, this.shown));
    this.moment = [start, end];
    return this;
  }

  /** Play from a time to the end of the moment, if it has one. */
  play(start, stop) {
    for (const other of document.querySelectorAll("video")) other.pause();
    [this.stop, this.on.hidden] = [stop, true];
    if (!this.video) {
      this.video = element("video", { controls: true, playsinline: true, preload: "auto", src: this.file, timeupdate: () => this.moved(), error: () => this.failed(), "aria-label": this.id });
      this.place.replaceChildren(this.video);
      this.video.focus();
    }
    this.said.textContent = "";
    const begin = () => {
      this.video.currentTime = start;
      this.video.play().catch(() => {});
    };
    if (this.video.readyState) begin();
    else this.video.addEventListener("loadedmetadata", begin, { once: true });
  }

  moved() {
    const time = this.video?.currentTime;
    if (this.head) this.head.setAttribute("transform", `translate(${(1000 * time) / this.end})`);
    if (this.stop === null || time < this.stop) return;
    this.video.pause();
    [this.stop, this.on.hidden] = [null, false];
  }

  goOn() {
    this.on.hidden = true;
    this.video.play();
  }

  failed() {
    this.video = null;
    this.rest(...this.moment);
    const path = data.videos[this.id].path;
    const name = path.replace(/^.*\//, "").replace(/\.[^.]*$/, "") + "-copy.mp4";
    this.said.replaceChildren(
      "This browser cannot play the file, or the file was moved. To write a copy that all browsers play, run:",
      command(`ffmpeg -i ${quoted(plain(path))} -c:v libx264 -pix_fmt yuv420p -c:a aac -movflags +faststart ${quoted(plain(name))}`),
    );
  }
}

/** Children as a link to the video's URL at a time, if it has one. */
function link(id, time, ...children) {
  const address = data.videos[id].address;
  if (!address) return element("span", { class: "picture" }, ...children);
  return element("a", { class: "picture", href: address[0] + Math.floor(time) + address[1], rel: "noreferrer" }, ...children);
}

/** A button that plays a part of a video, a link to it, or only text. */
function part(player, start, end, text) {
  if (player.file) return element("button", { type: "button", class: "at", click: () => player.play(start, end) }, text);
  return Object.assign(link(player.id, start, text), { className: "at" });
}

function svg(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** Similarity over time, with the moment shaded. curve: start, end and score of each piece. */
function sparkline(player, curve, [low, high], moment) {
  const x = (time) => ((1000 * time) / player.end).toFixed(1);
  const y = (score) => (58 - (54 * (score - low)) / (high - low || 1)).toFixed(1);
  const drawn = svg("svg", { viewBox: "0 0 1000 60", preserveAspectRatio: "none", "aria-hidden": "true" });
  drawn.append(svg("rect", { class: "moment", x: x(moment[0]), width: Math.max(x(moment[1]) - x(moment[0]), 3), y: 0, height: 60 }));
  drawn.append(svg("path", { d: curve.map(([start, end, score]) => `M${x(start)} 60V${y(score)}H${x(end)}V60Z`).join("") }));
  player.head = svg("line", { class: "head", x1: 0, x2: 0, y1: 0, y2: 60, transform: "translate(-9)" });
  drawn.append(player.head);
  const best = curve.reduce((one, other) => (other[2] > one[2] ? other : one));
  const label = `Similarity over the ${clock(player.end)} of the video, highest (${best[2].toFixed(3)}) at ${clock(best[0])}`;
  function seek(event) {
    const box = drawn.getBoundingClientRect();
    const time = event.detail ? ((event.clientX - box.left) / box.width) * player.end : best[0];
    player.play(Math.max(time, 0), null);
  }
  const frame = player.file
    ? element("button", { type: "button", class: "curve", "aria-label": `${label}: play from there`, title: label, click: seek }, drawn)
    : element("div", { class: "curve", role: "img", "aria-label": label, title: label }, drawn);
  return element("div", {}, frame, element("div", { class: "axis", "aria-hidden": "true" }, element("span", {}, "0:00"), element("span", {}, `highest ${best[2].toFixed(3)} at ${clock(best[0])}`), element("span", {}, clock(player.end))));
}

/** The actions for a part of a video: similar moments, and a command that cuts it out. */
function more(id, time, start, end) {
  const like = embedded.rows?.ids.includes(id)
    ? element("button", { type: "button", click: () => showLike(id, time) }, "More like this")
    : element("details", {}, element("summary", {}, "More like this"), command(`${data.again} --like ${quoted(`${id}@${short(time)}`)}`));
  const cut = data.videos[id].path && element("details", {}, element("summary", {}, "Cut out"), command(cutting(id, start, end)));
  return element("div", { class: "actions" }, like, cut ?? "");
}

function nearest(id, time) {
  const inside = data.videos[id].pictures.find(([start, end]) => start <= time && time < end);
  return inside?.[3] ?? null;
}

/** One video: its moment, if it has one, and its matches. */
function card(result, place, range) {
  const { video: id, moment, matches, curve } = result;
  const first = moment ? { time: result.peak, picture: result.picture, note: result.note } : matches[0];
  const playing = moment ?? [first.time, first.time + data.match];
  const end = Math.max(...curve.map((piece) => piece[1]), playing[0] + 1);
  const player = new Player(id, first.picture, first.note, end).rest(...playing);
  const score = element("span", { class: "score" }, (moment ? result.score : first.score).toFixed(3));
  const body = element("div", { class: "body" }, element("h3", {}, element("span", { class: "rank" }, `${place}`), ` ${id} `, score));
  if (moment) {
    const best = result.best;
    body.append(element("p", {}, "Moment ", part(player, ...moment, span(...moment)), ...(best ? [", best at ", part(player, best.time, moment[1], clock(best.time)), element("span", { class: "score" }, best.score.toFixed(3)), " ", spoken(id, best.sentence)] : [])));
    body.append(element("ol", { class: "steps" }, ...result.steps.map(([start, stop, label]) => element("li", {}, part(player, start, stop, span(start, stop)), ` ${label}`))));
    body.append(element("p", { class: "note" }, `Steps: ${result.stepsBy}.`));
  } else {
    body.append(element("p", {}, "Match at ", part(player, ...playing, clock(first.time)), ...(first.sentence ? [" ", spoken(id, first.sentence)] : [])));
  }
  body.append(sparkline(player, curve, range, playing), more(id, first.time, ...playing));
  const others = moment ? matches : matches.slice(1);
  if (others.length) {
    const rows = others.map((match) => {
      const small = match.picture ? element("img", { src: match.picture, alt: "", loading: "lazy" }) : "";
      const stop = match.time + data.match;
      return element("li", {}, small, element("div", {}, part(player, match.time, stop, clock(match.time)), element("span", { class: "score" }, match.score.toFixed(3)), ...(match.sentence ? [" ", spoken(id, match.sentence)] : []), match.note ? element("p", { class: "note" }, match.note) : "", more(id, match.time, match.time, stop)));
    });
    body.append(element("details", { class: "matches", open: others.length < 4 }, element("summary", {}, `${others.length} ${moment ? "" : "more "}${others.length > 1 ? "matches" : "match"} in this video`), element("ol", {}, ...rows)));
  }
  return element("li", { "data-video": id }, element("div", { class: "side" }, player.place, player.on, player.said), body);
}

/** Show results below a line that describes them. */
function show(results, said, isFirst) {
  const scores = results.flatMap((result) => result.curve.map((piece) => piece[2]));
  const range = [scores.reduce((a, b) => Math.min(a, b), Infinity), scores.reduce((a, b) => Math.max(a, b), -Infinity)];
  list.replaceChildren(...results.map((result, place) => card(result, place + 1, range)));
  state.textContent = said;
  back.hidden = isFirst;
  filter();
}

function filter() {
  let seen = 0;
  for (const each of list.children) seen += !(each.hidden = only.value !== "" && each.dataset.video !== only.value);
  document.getElementById("nothing").hidden = seen > 0;
  const words = [data.again, ...(only.value ? ["--video", quoted(only.value)] : []), quoted(input.value.trim() || "new text")];
  document.querySelector("#again code").textContent = words.join(" ");
}

/** The rows that are matches: no row of the same video within the window has a better score. */
function matching(scores, corpus, own) {
  const { video, spans, ids } = corpus;
  const order = new Map([...ids].sort().map((id, place) => [id, place]));
  const rank = video.map((number) => order.get(ids[number]));
  const compare = (a, b) => scores[b] - scores[a] || spans[a][0] - spans[b][0] || rank[a] - rank[b] || a - b;
  const isMatch = (row) => {
    for (const step of [-1, 1]) {
      for (let other = row + step; video[other] === video[row] && Math.abs(spans[other][0] - spans[row][0]) < data.window; other += step) {
        if (compare(other, row) < 0) return false;
      }
    }
    return true;
  };
  return [...scores.keys()].filter(isMatch).sort(compare).filter((row) => row !== own);
}

function placed(corpus) {
  corpus.video ??= corpus.lengths.flatMap((length, number) => Array(length).fill(number));
  return corpus;
}

/** The best matches, as one result per video with matches. */
function grouped(scores, corpus, rows) {
  const results = new Map();
  for (const row of rows.slice(0, data.top)) {
    const id = corpus.ids[corpus.video[row]];
    const time = corpus.spans[row][0];
    if (!results.has(id)) results.set(id, { video: id, matches: [], curve: curveOf(scores, corpus, corpus.video[row]) });
    results.get(id).matches.push({ time, score: scores[row], sentence: corpus.texts?.[row] ?? "", picture: nearest(id, time), note: "" });
  }
  return [...results.values()];
}

function curveOf(scores, corpus, number) {
  const first = corpus.video.indexOf(number);
  const length = corpus.lengths[number];
  const size = Math.ceil(length / 240);
  const pieces = [];
  for (let at = first; at < first + length; at += size) {
    const rows = [...Array(Math.min(size, first + length - at)).keys()].map((more) => at + more);
    pieces.push([corpus.spans[at][0], Math.max(...rows.map((row) => corpus.spans[row][1])), Math.max(...rows.map((row) => scores[row]))]);
  }
  return pieces;
}

const rounded = (scores) => Array.from(scores, (score) => Math.round(score * 1e6) / 1e6);

/** The cosine similarity of each row with a given row. */
function cosines(own) {
  const corpus = embedded.rows;
  if (!corpus.numbers) {
    const half = new Uint16Array(Uint8Array.from(atob(corpus.values), (character) => character.charCodeAt(0)).buffer);
    const value = (bits) => (bits & 0x8000 ? -1 : 1) * (bits & 0x7c00 ? (1 + (bits & 0x3ff) / 1024) * 2 ** (((bits >> 10) & 31) - 15) : (bits & 0x3ff) * 2 ** -24);
    corpus.numbers = Float32Array.from(half, value);
    delete corpus.values;
  }
  const { numbers, dimension } = corpus;
  const product = (row, other) => {
    let sum = 0;
    for (let k = 0; k < dimension; k++) sum += numbers[row * dimension + k] * numbers[other * dimension + k];
    return sum;
  };
  const length = Math.sqrt(product(own, own));
  return rounded(corpus.spans.map((_, row) => product(row, own) / (length * Math.sqrt(product(row, row)) || 1)));
}

/** The words of a text, and the pairs of characters of scripts without spaces, as in `stepline.search.words`. */
const runs = new RegExp(`([${data.unspaced}]+)|((?:(?![${data.unspaced}])[\\p{L}\\p{N}\\p{M}_])+)`, "gu");
function wordsOf(text) {
  return [...text.toLowerCase().matchAll(runs)].flatMap(([word, unspaced]) => {
    const characters = [...word];
    return unspaced && characters.length > 1 ? characters.slice(1).map((next, place) => characters[place] + next) : [word];
  });
}

/** BM25 of each sentence, as in `stepline.search.words`. */
function bm25(text) {
  const corpus = embedded.lines;
  corpus.words ??= corpus.texts.map(wordsOf);
  const [saturation, byLength] = data.bm25;
  const mean = corpus.words.reduce((sum, each) => sum + each.length, 0) / corpus.words.length || 1;
  const asked = [...new Set(wordsOf(text))].map((word) => [word, corpus.words.filter((each) => each.includes(word)).length]);
  const weighted = asked.filter(([, n]) => n).map(([word, n]) => [word, Math.log(1 + (corpus.words.length - n + 0.5) / (n + 0.5))]);
  const scores = corpus.words.map((said) => {
    const scale = saturation * (1 - byLength + (byLength * said.length) / mean);
    return weighted.reduce((sum, [word, weight]) => {
      const n = said.filter((each) => each === word).length;
      return sum + (weight * n * (saturation + 1)) / (n + scale);
    }, 0);
  });
  return [rounded(scores), asked.filter(([, n]) => !n).map(([word]) => word)];
}

function within(corpus, rows) {
  return only.value ? rows.filter((row) => corpus.ids[corpus.video[row]] === only.value) : rows;
}

function showLike(id, time) {
  const corpus = placed(embedded.rows);
  const rows = [...corpus.video.keys()].filter((row) => corpus.ids[corpus.video[row]] === id);
  const own = rows.findLast((row) => corpus.spans[row][0] <= time) ?? rows[0];
  const scores = cosines(own);
  show(grouped(scores, corpus, within(corpus, matching(scores, corpus, own))), `Most similar to ${id} at ${clock(time)}, by cosine similarity:`, false);
  document.getElementById("results-head").scrollIntoView();
}

function showWords(text) {
  const corpus = placed(embedded.lines);
  const [scores, unknown] = bm25(text);
  const rows = within(corpus, matching(scores, corpus).filter((row) => scores[row] > 0));
  const absent = unknown.length ? ` No transcript contains the words: ${unknown.join(", ")}.` : "";
  const said = rows.length ? `Sentences with words of “${text}” (BM25, ${corpus.engine} transcripts).` : `No sentence contains a word of “${text}”.`;
  show(grouped(scores, corpus, rows), said + absent, false);
}

function showFound() {
  input.value = data.text;
  show(data.results, "", true);
}

const offered = new Set([...data.results.map((result) => result.video), ...(embedded.rows?.ids ?? []), ...(embedded.lines?.ids ?? [])]);
only.append(...[...offered].sort().map((id) => element("option", { value: id }, id)));
document.getElementById("again").append(command(""));
input.addEventListener("input", filter);
only.addEventListener("input", filter);
back.addEventListener("click", showFound);
document.getElementById("question").addEventListener("submit", (event) => {
  event.preventDefault();
  if (embedded.lines && input.value.trim()) showWords(input.value.trim());
});
showFound();
