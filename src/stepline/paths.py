"""Where everything of a study stands, relative to the work folder."""

from dataclasses import dataclass
from pathlib import Path

from stepline.spec import Spec


@dataclass(frozen=True, order=True)
class Remote:
    """A store on object storage. url: of its objects. folder: where it would stand, and what is staged does stand."""

    url: str
    folder: Path

    def __str__(self) -> str:
        return self.url


Location = Path | Remote
"""Where a store of features stands."""


def context_label(context_s: float | None) -> str:
    """Return ``180s`` for a window length in seconds, ``all`` for an unlimited context."""
    return "all" if context_s is None else f"{float(context_s)!r}s".replace(".0s", "s")


def samples(study: str, release: str, task: str, split: str) -> Path:
    """Return the samples of a split."""
    return Path("results", study, "samples", release, task, f"{split}.json")


def spec_record(spec: Spec) -> Path:
    """Return the file that says what a folder of features was made by."""
    return Path("features", spec.name, spec.id, "spec.json")


def current_specs(backbone: str) -> Path:
    """Return the file that says by which spec of a backbone the features of each data set are configured."""
    return Path("features", backbone, "current.json")


def text_store(study: str, video: str, spec: Spec) -> Path:
    """Return the folder of a recording's text embeddings."""
    return Path("features", spec.name, spec.id, study, "texts", video)


def text_manifest(study: str, release: str, task: str, video: str, spec: Spec) -> Path:
    """Return the record that a recording's texts of a task are encoded."""
    return Path("features", spec.name, spec.id, "manifests", f"{study}.{release}.{task}.{video}.json")


def features(study: str, shard: str, spec: Spec) -> Path:
    """Return the folder of a shard's features, beside which what is staged stands."""
    return Path("features", spec.name, spec.id, study, shard)


def located(folder: Path, store: str | None) -> Location:
    """Return where the store of such a folder stands. store: ``features.store`` of the configuration."""
    return Remote("/".join([store, *folder.parts[-4:]]), folder) if store else folder


def features_manifest(study: str, shard: str, spec: Spec) -> Path:
    """Return the record of a shard's features."""
    return Path("features", spec.name, spec.id, "manifests", f"{study}.{shard}.json")


def damages(study: str, shard: str, spec: Spec) -> Path:
    """Return the file that counts how often damage was found in a shard's features."""
    return Path("features", spec.name, spec.id, study, f"{shard}.damages.json")


def features_lock(study: str, shard: str) -> Path:
    """Return the lock that keeps a shard's jobs of features and of media apart: see ``turns``."""
    return Path("features", ".locks", f"{study}.{shard}.lock")


def shards(study: str) -> Path:
    """Return the file that says which shard a video is in."""
    return Path("datasets", study, "shards.csv")


def videos(study: str) -> Path:
    """Return the folder of videos and of the record of each."""
    return Path("datasets", study, "videos")


def fetches(study: str, shard: str) -> Path:
    """Return the file that counts how often lost or deleted videos of a shard were fetched again."""
    return Path("datasets", study, "fetches", f"{shard}.json")


def dropped(study: str, shard: str) -> Path:
    """Return the record that a shard's videos are deleted."""
    return Path("datasets", study, "dropped", f"{shard}.json")


def availability(study: str, shard: str) -> Path:
    """Return the record of what became of a shard's videos."""
    return Path("datasets", study, "availability", f"{shard}.json")


def media(study: str) -> Path:
    """Return the folder of probes, audio and content scores."""
    return Path("datasets", study, "media")


def shots(study: str) -> Path:
    """Return the folder of shots."""
    return Path("datasets", study, "shots")


def thumbnails(study: str) -> Path:
    """Return the folder of small pictures of shots."""
    return Path("datasets", study, "thumbnails")


def transcripts(study: str, engine: str) -> Path:
    """Return the folder of recognised transcripts."""
    return Path("datasets", study, "transcripts", engine)


def manifest(folder: Path, shard: str) -> Path:
    """Return the record of a shard in one of the folders above."""
    return folder / "manifests" / f"{shard}.json"


def answers() -> Path:
    """Return the store of what language models answered."""
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
    """Return the folder of an entry's predictions of the splits whose labels a challenge withholds."""
    return Path("results", study, "submissions", entry)
