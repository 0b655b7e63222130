"""The paths of all files of a study, relative to the work folder."""

from dataclasses import dataclass
from pathlib import Path

from stepline.spec import Spec

OUTPUTS = frozenset({"answers", "features", "logs", "results", "weights"})
"""The folders of a work folder, besides ``datasets`` and hidden ones; a work folder contains ``.stepline``."""
OF_DATASET = frozenset(
    {"availability", "dropped", "fetches", "media", "shards.csv", "shots", "thumbnails", "transcripts", "videos"}
)
"""The entries of ``datasets/<dataset>``, whose ``shards.csv`` is written first."""


@dataclass(frozen=True, order=True)
class Remote:
    """A store on object storage. url: of its objects. folder: its path if it were local, next to staged files."""

    url: str
    folder: Path

    def __str__(self) -> str:
        return self.url


Location = Path | Remote
"""The location of a store of features."""


def context_label(context_s: float | None) -> str:
    """Return ``180s`` for a window length in seconds, ``all`` for an unlimited context."""
    return "all" if context_s is None else f"{float(context_s)!r}s".replace(".0s", "s")


def samples(study: str, release: str, task: str, split: str) -> Path:
    """Return the samples of a split."""
    return Path("results", study, "samples", release, task, f"{split}.json")


def spec_record(spec: Spec) -> Path:
    """Return the record of the spec of a folder of features."""
    return Path("features", spec.name, spec.id, "spec.json")


def current_specs(backbone: str) -> Path:
    """Return the file with the configured spec of a backbone for each dataset."""
    return Path("features", backbone, "current.json")


def index(study: str, spec: Spec) -> Path:
    """Return the folder of the index with which a dataset's features are searched."""
    return Path("features", spec.name, spec.id, study, "search", "index")


def text_store(study: str, video: str, spec: Spec) -> Path:
    """Return the folder of a recording's text embeddings."""
    return Path("features", spec.name, spec.id, study, "texts", video)


def text_manifest(study: str, release: str, task: str, video: str, spec: Spec) -> Path:
    """Return the record of a task's encoded texts of a recording."""
    return Path("features", spec.name, spec.id, "manifests", f"{study}.{release}.{task}.{video}.json")


def features(study: str, shard: str, spec: Spec) -> Path:
    """Return the folder of a shard's features; staged files are next to it."""
    return Path("features", spec.name, spec.id, study, shard)


def located(folder: Path, store: str | None) -> Location:
    """Return the location of the store of such a folder. store: ``features.store`` of the configuration."""
    return Remote("/".join([store, *folder.parts[-4:]]), folder) if store else folder


def computing(store: Location) -> Path:
    """Return the file that exists while a store's features are computed, and after a kill of that process.

    It contains ``alone`` if the process computed no other features, otherwise ``together``.
    """
    folder = store if isinstance(store, Path) else store.folder
    return folder.with_name(f"{folder.name}.computing")


def features_manifest(study: str, shard: str, spec: Spec) -> Path:
    """Return the record of a shard's features."""
    return Path("features", spec.name, spec.id, "manifests", f"{study}.{shard}.json")


def damages(study: str, shard: str, spec: Spec) -> Path:
    """Return the file that counts how often damage was found in a shard's features."""
    return Path("features", spec.name, spec.id, study, f"{shard}.damages.json")


def features_lock(study: str, shard: str) -> Path:
    """Return the lock between a shard's features and media jobs: see ``turns``."""
    return Path("features", ".locks", f"{study}.{shard}.lock")


def shards(study: str) -> Path:
    """Return the file with the shard of each video."""
    return Path("datasets", study, "shards.csv")


def videos(study: str) -> Path:
    """Return the folder of videos and their records."""
    return Path("datasets", study, "videos")


def fetches(study: str, shard: str) -> Path:
    """Return the file that counts how often lost or deleted videos of a shard were downloaded again."""
    return Path("datasets", study, "fetches", f"{shard}.json")


def dropped(study: str, shard: str) -> Path:
    """Return the record of a shard's deleted videos."""
    return Path("datasets", study, "dropped", f"{shard}.json")


def availability(study: str, shard: str) -> Path:
    """Return the availability record of a shard's videos."""
    return Path("datasets", study, "availability", f"{shard}.json")


def media(study: str) -> Path:
    """Return the folder of probes, audio and content scores."""
    return Path("datasets", study, "media")


def shots(study: str) -> Path:
    """Return the folder of shots."""
    return Path("datasets", study, "shots")


def thumbnails(study: str) -> Path:
    """Return the folder of thumbnails of shots."""
    return Path("datasets", study, "thumbnails")


def transcripts(study: str, engine: str) -> Path:
    """Return the folder of recognised transcripts."""
    return Path("datasets", study, "transcripts", engine)


def manifest(folder: Path, shard: str) -> Path:
    """Return the record of a shard in one of the folders above."""
    return folder / "manifests" / f"{shard}.json"


def answers() -> Path:
    """Return the store of language models' answers."""
    return Path("answers", "llm.sqlite")


def fit(study: str, release: str, entry: str, context: str, seed: int) -> Path:
    """Return the checkpoint of one seed."""
    return Path("results", study, "fits", release, entry, context, f"{seed}.safetensors")


def predictions(study: str, release: str, entry: str, context: str) -> Path:
    """Return the predictions of an entry."""
    return Path("results", study, "predictions", release, entry, f"{context}.parquet")


def scores(study: str, release: str, entry: str, context: str) -> Path:
    """Return the scores of an entry."""
    return Path("results", study, "scores", release, entry, f"{context}.json")


def all_results(study: str) -> Path:
    """Return the list of all results of a study, with the sha256 of each."""
    return Path("results", study, "all")


def submissions(study: str, entry: str) -> Path:
    """Return the folder of an entry's predictions for splits whose labels a challenge withholds."""
    return Path("results", study, "submissions", entry)
