"""The table of a data set: the results of the stages for each video."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.asr import transcript
from stepline.asr.languages import ENGLISH, WITHOUT_SPACES
from stepline.availability import read_availability, read_manifest
from stepline.io import read_json, write_text
from stepline.media.timeline import absent_s, described
from stepline.needs import Need
from stepline.pipeline import Pipeline, how_to_fill
from stepline.tables import markdown_table, write_lines

COLUMNS = (
    *("video", "status", "reason", "source", "split", "duration_s", "absent_s", "fps", "width", "height", "codec"),
    *("frames", "audio", "shots", "sentences", "words", "language"),
)
"""Columns of ``videos.csv``, followed by one per backbone (number of feature rows), ``needs`` and ``command``."""
OF = {"shots": ("shots",), "speech": ("sentences", "words", "language")}
"""The columns that exist only if a stage is configured."""
OF_MEDIA = ("frames", "audio")
"""The columns that exist only if audio and content scores are computed."""
USED = ("present", "partial")
"""The statuses of completely or partly read videos."""


@dataclass(frozen=True)
class Summary:
    """The rows in the listed order, and the missing inputs of recogniser and backbones with the command.

    Each row also contains its ``gaps``, and width and height as players ``show`` them. features: the folders of the
    configured backbones that can be computed. left_out: of the data set. note: of the pipeline.
    """

    columns: tuple[str, ...]
    rows: Sequence[dict[str, Any]]
    needs: tuple[Need, ...]
    command: str
    features: tuple[str, ...]
    left_out: str
    note: str

    @property
    def used(self) -> list[dict[str, Any]]:
        """The rows of completely or partly read videos."""
        return [row for row in self.rows if row["status"] in USED]


def summarise(pipeline: Pipeline) -> Summary:
    """Return the results of the stages for each listed video.

    status: ``present`` if the video was read completely, ``partial`` if it is damaged and the rest was read. reason:
    why it was not read, and other errors or omissions. absent_s: the missing seconds of a damaged video. Missing values
    are "". The column ``split`` exists if a video has one.
    """
    rows: dict[str, dict[str, Any]] = {}
    for shard in pipeline.videos.all_shards:
        rows |= summarise_shard(pipeline, shard)
    backbones, needs, stages = tuple(pipeline.features.computed), pipeline.missing, pipeline.demand.stages
    left_out = {column for stage in OF.keys() - {*stages} for column in OF[stage]}
    left_out |= set() if pipeline.demand.media else {*OF_MEDIA}
    left_out |= set() if pipeline.dataset.split_of else {"split"}
    return Summary(
        columns=(*(column for column in COLUMNS if column not in left_out), *backbones, "needs", "command"),
        rows=[rows[video.id] for video in pipeline.dataset.videos() if video.id in rows],
        needs=needs,
        command=" && ".join(dict.fromkeys(map(how_to_fill, needs))),
        features=tuple(str(paths.spec_record(pipeline.features.spec_of(name)).parent) for name in backbones),
        left_out=pipeline.dataset.left_out(),
        note=pipeline.note,
    )


def summarise_shard(pipeline: Pipeline, shard: str) -> dict[str, dict[str, Any]]:
    """Return the rows of a shard's videos, by video; {} if the shard has not been fetched yet."""
    if not paths.availability(pipeline.name, shard).exists():
        return {}
    name, stages = pipeline.name, pipeline.demand.stages
    media = read_manifest(paths.manifest(paths.media(name), shard)) if pipeline.demand.media else {}
    shots = read_manifest(paths.manifest(paths.shots(name), shard)) if "shots" in stages else {}
    said = _said(pipeline, shard, media) if "speech" in stages else {}
    features = {
        backbone: read_manifest(paths.features_manifest(name, shard, pipeline.features.spec_of(backbone)))
        for backbone in pipeline.features.computed
    }
    rows, splits = {}, {video.id: video.split for video in pipeline.videos.members(shard)}
    for video, record in read_availability(paths.availability(name, shard)).items():
        read, speech = media.get(video, {}), said.get(video, {})
        sound, language = read.get("audio", {}), speech.get("language", ENGLISH)
        status: str = record.status
        gaps, reasons = read.get("gaps", []), [record.reason]
        known = ["", sound.get("reason"), described(gaps)]
        width, height = read.get("width", record.width), read.get("height", record.height)
        turned = "width" in read and pipeline.config["media"]["orientation"] == "upright" and record.rotation % 180
        shown = _shown(width, height, record.pixels, bool(turned))
        if shown != (width, height):
            reasons.append(f"pixels {record.pixels}, shown as {shown[0]}x{shown[1]}; features are of the stored pixels")
        if status == "present" and pipeline.demand.media:
            status = read.get("status", "")
            reasons += [read.get("reason", ""), known[2], f"audio: {sound['reason']}" if sound.get("reason") else ""]
        if status == "present":
            for of, stage in {"transcript": said, **features}.items():
                made = stage.get(video, {"reason": ""})
                reasons += [f"{of}: {made['reason']}"] if made["reason"] not in known else []
                gaps = gaps or made.get("gaps", [])
            described_by = {stage[video]["status"] for stage in features.values() if video in stage}
            unread = not pipeline.demand.media and described_by and "present" not in described_by
            status = "failed" if unread else "partial" if gaps else "present"
        rows[video] = {
            "video": video,
            "status": status,
            "reason": "; ".join(dict.fromkeys(filter(None, reasons))),
            "source": record.source,
            "split": splits.get(video) or "",
            "duration_s": read.get("duration_s", record.duration_s or ""),
            "absent_s": round(absent_s(gaps), 3) if gaps else "",
            "gaps": gaps,
            "fps": _rounded(read.get("fps", record.fps)),
            "width": width or "",
            "height": height or "",
            "shown": shown,
            "codec": read.get("codec", record.codec),
            "frames": read.get("n_frames", ""),
            "audio": sound.get("status", ""),
            "shots": shots.get(video, {}).get("n_shots", ""),
            "sentences": speech.get("n_sentences", ""),
            "words": _words(pipeline, video, language) if "n_sentences" in speech else "",
            "language": language if "n_sentences" in speech else "",
            **{backbone: made.get(video, {}).get("n_rows", "") for backbone, made in features.items()},
        }
    return rows


def end_s(row: dict[str, Any]) -> float:
    """Return the end of a row's video, with the gaps of a damaged one; 0 if it is unknown."""
    return float(max([row["duration_s"] or 0, *(end_s for _, end_s, _ in row["gaps"])]))


def unread(video: str, reason: str) -> dict[str, Any]:
    """Return the row of a missing video."""
    known = {"video": video, "status": "absent", "reason": reason, "gaps": [], "shown": (0, 0)}
    return dict.fromkeys(COLUMNS, "") | known


def _shown(width: int, height: int, pixels: str, turned: bool) -> tuple[int, int]:
    """Return width and height of pictures as players show them. turned: by 90 degrees, unlike ``pixels``."""
    across, down = map(int, (pixels or "1:1").split(":"))
    return round(width * (down / across if turned else across / down)), height


def _said(pipeline: Pipeline, shard: str, media: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the recogniser's records of a shard, or those of its replacement, for the current video files."""
    folder, own = pipeline.speech.readable.folder, pipeline.speech.readable is pipeline.speech
    path = paths.manifest(folder, shard)
    if not path.exists() or (own and not pipeline.speech.record.items() <= read_json(path).items()):
        return {}
    said = read_manifest(path)
    if not pipeline.speech.missing:
        return said
    made = {video: read_json(folder / f"{video}.json") for video in said if (folder / f"{video}.json").exists()}
    heard = {video: made[video].get("source", {}).get("sha256") for video in made}
    return {video: said[video] for video in heard if heard[video] == media.get(video, {}).get("sha256", "")}


def _rounded(fps: float) -> float | str:
    return round(fps, 3) or ""


def _words(pipeline: Pipeline, video: str, language: str) -> int | str:
    """Return the number of words; "" for a language that does not separate words by spaces."""
    if language.split("-")[0] in WITHOUT_SPACES:
        return ""
    sentences = transcript.read(pipeline.speech.readable.folder / f"{video}.parquet")
    return sum(len(sentence.text.split()) for sentence in sentences)


def write_summary(pipeline: Pipeline) -> None:
    """Write ``results/<name>/videos.csv`` and ``videos.md``."""
    made = summarise(pipeline)
    needs = {"needs": ";".join(map(str, made.needs)), "command": made.command}
    folder, shown = Path("results", pipeline.name), made.columns[:-2]
    parts = [
        f"# {pipeline.dataset.title}: videos",
        headline(made),
        *([f"{made.left_out}."] if made.left_out else []),
        *([f"Features: {', '.join(f'`{folder}`' for folder in made.features)}."] if made.features else []),
        markdown_table(shown, ([str(row[column]) for column in shown] for row in made.rows)),
    ]
    if made.note:
        parts.append(made.note)
    if made.needs:
        parts.append(
            f"The rest needs {', '.join(map(str, made.needs))}: run `{made.command}`, then the workflow again."
        )
    write_text(folder / "videos.md", "\n\n".join(parts) + "\n")
    write_lines(
        folder / "videos.csv", made.columns, ([(row | needs)[column] for column in made.columns] for row in made.rows)
    )


def headline(made: Summary) -> str:
    """Return one line with the number and length of the videos, and the status of the others."""
    counts = Counter(row["status"] for row in made.rows)
    others = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()) if status not in USED)
    hours = sum(row["duration_s"] or 0 for row in made.used) / 3600
    absent = sum(row["absent_s"] or 0 for row in made.used)
    parts = [
        f"{len(made.used)} of {len(made.rows)} videos",
        *([f"{counts['partial']} of them partly ({absent:.1f} s missing)"] if counts["partial"] else []),
        f"{hours:.2f} hours" if hours >= 1 else f"{60 * hours:.1f} minutes",
    ]
    totals = {column: sum(row[column] or 0 for row in made.used) for column in ("shots", "sentences", "words")}
    parts += [f"{total} {column}" for column, total in totals.items() if total]
    return f"{', '.join(parts)}{f'; {others}' if others else ''}."
