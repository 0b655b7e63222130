"""PSS: YouCook2 and Tasty as split and released by Batra et al. (2022).

``youcook2``: their split of the 1203 videos that they could download, and the vocabulary of its captions. ``tasty``:
validation and test of Tasty Videos' second version, and its vocabulary. ``tasty-train``: its training videos, a
separate release because mirrors may not have them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from math import inf
from pathlib import Path

from stepline.availability import check_video_id
from stepline.datasets.dataset import Dataset
from stepline.datasets.release import Released, ReleaseFile
from stepline.datasets.schema import Split, Video
from stepline.errors import ReleaseError
from stepline.io import parse_json, read_json
from stepline.mirror import Wanted, cached_sha256

REPOSITORY = "https://raw.githubusercontent.com/anilbatra2185/pss_soda_matching"
COMMIT = "a57c62419a546c5a8dd0bc26fb72809ac177922c"
FILES: dict[str, dict[str, tuple[str, int]]] = {
    "youcook2": {
        "data/yc2/captiondata/yc2_my_train.json": (
            "d9ce25365fbdff917af1940f9a5f82f3164c28f4a5d5b25bd84fe6ab8f938a03",
            945490,
        ),
        "data/yc2/captiondata/yc2_my_val.json": (
            "7410eb003449581e84a3ca9fd4b4249f53f741bcf8929eedb4130016752fbf59",
            203692,
        ),
        "data/yc2/captiondata/yc2_my_test.json": (
            "f03e525b73e5fc47c10c9025ad0e54173802096aac0535417f792e6cfa1bf793",
            208140,
        ),
        "data/yc2/vocabulary_youcook2.json": (
            "717f32d7c4276208a52423e2f9b69fc6bb7946a356ef697cfed9ee6060d24f6f",
            51692,
        ),
    },
    "tasty": {
        "data/tasty/captiondata/tasty_val_anet_format.json": (
            "cd84061674dede69b2a2881948dda5cfa4429e604bf2f1c0fd5c35609ea1083c",
            623517,
        ),
        "data/tasty/captiondata/tasty_test_anet_format.json": (
            "dfc0cc5248b02aabc0495ccf9ab40579620a19931ae076d2df63bc17fa815d85",
            595419,
        ),
        "data/tasty/vocabulary_tasty.json": (
            "aedd995b0a357c14edeb5f21493e2bd03ee729837bc084994c62ff3360eb59ce",
            143560,
        ),
    },
    "tasty-train": {"data/tasty/captiondata/tasty_train_anet_format.json": ("", 0)},
}
"""The files of each release with sha256 and size; "" and 0 if unknown."""
SPLIT_FILES: dict[str, dict[Split, tuple[str, str]]] = {
    "youcook2": {
        "train": ("youcook2", "data/yc2/captiondata/yc2_my_train.json"),
        "val": ("youcook2", "data/yc2/captiondata/yc2_my_val.json"),
        "test": ("youcook2", "data/yc2/captiondata/yc2_my_test.json"),
    },
    "tasty": {
        "train": ("tasty-train", "data/tasty/captiondata/tasty_train_anet_format.json"),
        "val": ("tasty", "data/tasty/captiondata/tasty_val_anet_format.json"),
        "test": ("tasty", "data/tasty/captiondata/tasty_test_anet_format.json"),
    },
}
"""The release and file of each split, by data set."""
VOCABULARIES = {"youcook2": "data/yc2/vocabulary_youcook2.json", "tasty": "data/tasty/vocabulary_tasty.json"}


@dataclass(frozen=True, kw_only=True)
class Procedure:
    """One annotated video. segments: [start, end) in seconds, sorted by (start, end). sentences: one per segment."""

    video: str
    duration_s: float
    segments: tuple[tuple[float, float], ...]
    sentences: tuple[str, ...]


def _release_files(release: str) -> tuple[ReleaseFile, ...]:
    return tuple(
        ReleaseFile(
            path=path,
            wanted=Wanted(path=f"pss/{path}", sha256=sha256, size=size),
            url=f"{REPOSITORY}/{COMMIT}/{path}",
        )
        for path, (sha256, size) in FILES[release].items()
    )


RELEASES = Released(name="pss", title="PSS", known=tuple(FILES), release_files=_release_files)


def load(dataset: str, split: Split) -> dict[str, Procedure]:
    """Return the annotated videos of a split by id, in the released order, from the fetched release.

    A video's id is its key in the release without ``v_``. Raises ReleaseError if a file is absent, changed or has
    another form.
    """
    release, path = SPLIT_FILES[dataset][split]
    return _procedures(RELEASES.release_file(release, path))


def vocabulary(dataset: str) -> dict[str, int]:
    """Return the ids, from 1, of the words of the released vocabulary; raise ReleaseError as ``load`` does."""
    file = RELEASES.release_file(dataset, VOCABULARIES[dataset])
    try:
        return {word: int(number) for word, number in parse_json(file.read_bytes())["word_to_ix"].items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ReleaseError(f"{file} contains no vocabulary: {type(error).__name__}: {error}") from None


def _videos(dataset: str) -> tuple[Video, ...]:
    """Return the videos of the splits that are fetched or in the mirror, with ids, durations and addresses.

    Raises ReleaseError if a video is in two splits.
    """
    found: dict[str, Video] = {}
    for split, file in _annotations(dataset):
        for procedure in _cached_procedures(file, cached_sha256(file)).values():
            video = Video(
                id=procedure.video,
                split=split,
                duration_s=procedure.duration_s,
                url=f"https://www.youtube.com/watch?v={procedure.video}" if dataset == "youcook2" else "",
                path=f"{dataset}/videos/{procedure.video}.mp4",
            )
            other = found.setdefault(video.id, video)
            if other is not video:
                raise ReleaseError(f"{file}: {video.id} is in both {other.split} and {split}")
    return tuple(found.values())


def _annotations(dataset: str) -> Iterator[tuple[Split, Path]]:
    for split, (release, path) in SPLIT_FILES[dataset].items():
        if held := RELEASES.held(release, path):
            yield split, held


DATASETS = {
    name: Dataset(name=name, title=title, videos=partial(_videos, name), listed_by=f"pss/{name}")
    for name, title in (("youcook2", "YouCook2"), ("tasty", "Tasty"))
}


@cache
def _cached_procedures(file: Path, _sha256: str) -> dict[str, Procedure]:
    return _procedures(file)


def _procedures(file: Path) -> dict[str, Procedure]:
    content = read_json(file)
    try:
        found = [_procedure(key, record) for key, record in content.items()]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ReleaseError(f"{file} is not in PSS's format: {type(error).__name__}: {error}") from None
    by_video = {procedure.video: procedure for procedure in found}
    if len(by_video) < len(found):
        raise ReleaseError(f"{file} contains a video twice, with and without v_")
    return by_video


def _procedure(key: str, record: dict[str, object]) -> Procedure:
    duration_s = float(record["duration"])  # type: ignore[arg-type]
    segments = [(float(start_s), float(end_s)) for start_s, end_s in record["timestamps"]]  # type: ignore[attr-defined]
    sentences: list[str] = record["sentences"]  # type: ignore[assignment]
    within = [0 <= start_s < end_s < inf and start_s < duration_s < inf for start_s, end_s in segments]
    if not segments or not all(within):
        raise ValueError(f"{key} has no segments, or one that does not end after it starts, within the video")
    listed = sorted(zip(segments, sentences, strict=True), key=lambda each: each[0])
    return Procedure(
        video=check_video_id(key.removeprefix("v_")),
        duration_s=duration_s,
        segments=tuple(segment for segment, _ in listed),
        sentences=tuple(sentence.strip() for _, sentence in listed),
    )
