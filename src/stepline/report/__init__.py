"""The report: one HTML file that can be read anywhere, and the picture of the results."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from stepline import tables
from stepline.asr.transcript import Sentence
from stepline.availability import Record
from stepline.io import read_json, read_table, write_bytes, write_text
from stepline.report.shots import SHOTS_SHOWN, spread
from stepline.tables import Row


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """The labels of a release's test recordings over time, and what methods predicted.

    samples: the file of a split's samples, ``{video: [{"frame_index", "label", "id"}]}``; time is frame_index / fps.
    predictions: method name to its Parquet file (columns seed, video, sample, prediction; null is a uniform guess); the
    lowest seed is shown. A file that is absent is left out.
    """

    release: str
    samples: Path
    fps: float
    predictions: Mapping[str, Path]


@dataclass(frozen=True, kw_only=True)
class Stages:
    """What the stages before the tables made, by video.

    availability: what became of the listed videos. shots: (start, end) in seconds. pictures: of shots, by their index,
    as ``write_thumbnails`` leaves them; without_pictures: why there are not all. transcripts: what was recognised;
    scripts: what was said, where it is known.
    """

    availability: Sequence[Record] = ()
    shots: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    pictures: Mapping[str, Mapping[int, Path]] = field(default_factory=dict)
    without_pictures: Mapping[str, str] = field(default_factory=dict)
    transcripts: Mapping[str, Sequence[Sentence]] = field(default_factory=dict)
    scripts: Mapping[str, Sequence[Sentence]] = field(default_factory=dict)


@dataclass(frozen=True)
class Picture:
    """An image for the page: its data address, what it shows in words, and its caption."""

    source: str
    alt: str
    caption: str


SENTENCES_SHOWN = 12
WINDOWED = (
    "Filled markers are ours, with the 95 % interval by bootstrap over the videos; hollow ones are the paper's. Dashed "
    "lines are baselines and references whose value has no window length or one only. Slashes mark a broken axis."
)
LABELS = (
    "The top strip holds the labels, the strips below the predictions. Steps run from dark to light in the order of "
    "the script; grey is Irrelevant, white a uniform guess."
)


def write_report(
    path: Path | str,
    *,
    title: str,
    rows: Sequence[Row],
    timelines: Sequence[Timeline] = (),
    stages: Stages | None = None,
) -> None:
    """Write the report as one self-contained HTML file: no script, no network, same inputs same bytes.

    rows: of the table. timelines: one per release that is to be shown. stages: what the earlier stages made.
    """
    write_tables(
        path,
        title=title,
        rows=rows,
        results=_results(rows),
        how_to_read=WINDOWED,
        spreads=_spreads(rows),
        examples=[picture for timeline in timelines for picture in _timeline(timeline)],
        how_to_read_examples=LABELS,
        stages=_stages(stages) if stages else None,
    )


def write_tables(
    path: Path | str,
    *,
    title: str,
    rows: Sequence[Row],
    results: Sequence[Picture],
    how_to_read: str,
    examples: Sequence[Picture],
    how_to_read_examples: str,
    examples_title: str = "Timelines",
    spreads: Sequence[Picture] = (),
    stages: Mapping[str, Any] | None = None,
) -> None:
    """Write tables as a page, with pictures of their results and of single videos, each kind with how to read it."""
    write_html(
        path,
        "template.html.j2",
        title=title,
        counts=_counts(rows),
        results=results,
        how_to_read=how_to_read,
        spreads=spreads,
        examples=examples,
        examples_title=examples_title,
        how_to_read_examples=how_to_read_examples,
        stages=stages,
        legend=tables.legend(rows),
        panels=tables.panels(rows),
        marks=tables.MARKS,
        missing=tables.missing(rows),
        facts=tables.facts(rows),
        value_columns=tables.VALUE_COLUMNS,
        values={group: tables.values(part) for group, part in tables.groups(rows).items()},
    )


def write_html(path: Path | str, template: str, **values: Any) -> None:
    """Fill a template of this package with ``values``, in which all text is escaped, and write the page to ``path``."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    text = files(__name__).joinpath(template).read_text(encoding="utf-8")
    write_text(path, environment.from_string(text).render(values).rstrip() + "\n")


def figure_table2(rows: Sequence[Row], path: Path | str, *, release: str) -> None:
    """Draw the results of Table 2a on one release into ``path``, as SVG."""
    from stepline.report import figures

    part = [row for row in rows if (row.table, row.release) == ("2a", release)]
    write_bytes(path, figures.render(figures.results(part, figures.styles(part))))


def _counts(rows: Sequence[Row]) -> list[tuple[str, int]]:
    statuses = [row.status for row in rows]
    return [(status, statuses.count(status)) for status in tables.MARKS if status in statuses]


def _name(row: Row) -> str:
    return f"Table {row.table}, {row.title.lower()}, release {row.release}"


def _results(rows: Sequence[Row]) -> list[Picture]:
    from stepline.report import figures

    pictures, style = [], figures.styles(rows)
    for part in tables.groups(rows).values():
        known = [row for row in part if row.value is not None and row.status != "reference"]
        if known:
            best = max((row for row in known if row.metric == "accuracy"), key=lambda row: row.value or 0)
            alt = (
                f"{_name(part[0])}: values by window length, one panel per setting and metric, "
                f"with {len(known)} computed numbers. Highest accuracy: {best.method}, "
                f"{tables.percent(best.value or 0)} %. The tables below hold all numbers."
            )
            pictures.append(Picture(svg_address(figures.results(part, style)), alt, _name(part[0])))
    return pictures


def _spreads(rows: Sequence[Row]) -> list[Picture]:
    from stepline.report import figures

    pictures = []
    for part in tables.groups(rows).values():
        shown = figures.longest_context(row for row in part if row.metric == "accuracy" and row.per_video)
        if shown:
            ranges = "; ".join(
                f"{row.method} {min(row.per_video.values()):.1f} to {max(row.per_video.values()):.1f}" for row in shown
            )
            alt = f"{_name(part[0])}: accuracy of each video, in percent: {ranges}."
            pictures.append(Picture(svg_address(figures.spread(shown)), alt, _name(part[0])))
    return pictures


def _timeline(timeline: Timeline) -> list[Picture]:
    from stepline.report import figures

    present = {name: path for name, path in timeline.predictions.items() if path.is_file()}
    predictions = {name: _predictions(path) for name, path in present.items()}
    pictures = []
    for video, samples in read_json(timeline.samples).items():
        times = [sample["frame_index"] / timeline.fps for sample in samples]
        labels = [sample["label"] for sample in samples]
        tracks = {}
        for name, found in predictions.items():
            if video in found:
                tracks[name] = [found[video].get(sample["id"]) for sample in samples]
        shares = ", ".join(
            f"{name} {100 * sum(p == t for p, t in zip(track, labels, strict=True)) / len(labels):.1f} %"
            for name, track in tracks.items()
        )
        alt = f"Labels of {len(labels)} samples of {video} over time, above the predictions. Right: {shares or 'none'}."
        drawn = figures.timeline(times, labels, tracks)
        pictures.append(Picture(svg_address(drawn), alt, f"Recording {video}, release {timeline.release}"))
    return pictures


def _predictions(path: Path) -> dict[str, dict[int, int | None]]:
    """Return the predictions of the lowest seed on the test split, by video and sample."""
    columns = ["seed", "split", "video", "sample", "prediction"]
    table = read_table(path, columns=columns, filters=[("split", "==", "test")]).to_pylist()
    first = min((record["seed"] for record in table), default=0)
    found: dict[str, dict[int, int | None]] = {}
    for record in table:
        if record["seed"] == first:
            found.setdefault(record["video"], {})[record["sample"]] = record["prediction"]
    return found


def _stages(stages: Stages) -> dict[str, Any]:
    return {
        "availability": stages.availability,
        "shots": {
            video: {
                "count": len(shots),
                "shown": _shown(shots, stages.pictures.get(video, {})),
                "reason": stages.without_pictures.get(video, ""),
            }
            for video, shots in stages.shots.items()
        },
        "speech": {
            video: _speech(sentences, stages.scripts.get(video, ())) for video, sentences in stages.transcripts.items()
        },
        "shots_shown": SHOTS_SHOWN,
        "sentences_shown": SENTENCES_SHOWN,
    }


def _shown(
    shots: Sequence[tuple[float, float]], pictures: Mapping[int, Path]
) -> list[tuple[int, tuple[float, float], str]]:
    """Return the number, the times and the picture's address of each shot that is shown."""
    shown = []
    for shot in spread(len(shots), SHOTS_SHOWN):
        there = shot in pictures and pictures[shot].exists()
        shown.append((shot + 1, shots[shot], data_address("image/jpeg", pictures[shot].read_bytes()) if there else ""))
    return shown


def _speech(sentences: Sequence[Sentence], script: Sequence[Sentence]) -> list[tuple[Sentence, str]]:
    """Return each sentence with what the script says in the same time."""
    return [
        (said, " ".join(line.text for line in script if line.start_s < said.end_s and line.end_s > said.start_s))
        for said in sentences[:SENTENCES_SHOWN]
    ]


def svg_address(figure: Any) -> str:
    """Return an address that is the drawn figure itself."""
    from stepline.report import figures

    return data_address("image/svg+xml", figures.render(figure))


def data_address(kind: str, content: bytes) -> str:
    """Return an address that is the content itself."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
