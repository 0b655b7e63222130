"""What rules are told of the jobs that their wildcards name."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from stepline.helpers import Helpers
from stepline.io import write_text
from stepline.spec import ReaderName

COMPUTED = ("s3d-pss", "histogram", "timesformer-htstep")
WILDCARDS = SimpleNamespace(study="mine", dataset="mine", release="v1", entry="one", context="all", shard="000")


def helpers(reader: ReaderName = "pyav", **kind: object) -> Helpers:
    features = SimpleNamespace(computed=COMPUTED, backbone_of=lambda folder: folder, networks=True, store=Path)
    described = SimpleNamespace(**({"gpu": False, "decoded": False, "scored_in": "core"} | kind))
    plan = SimpleNamespace(job=lambda *_: SimpleNamespace(entry=SimpleNamespace(kind=described)))
    pipelines = {"mine": SimpleNamespace(features=features)}
    return Helpers({"mine": plan}, pipelines, 4, True, reader, {"mem_mb": 2500}.get)  # type: ignore[dict-item]


def priorities() -> dict[str, float]:
    wildcards = [SimpleNamespace(dataset="mine", backbone=backbone, shard="000") for backbone in COMPUTED]
    return {each.backbone: helpers().extract_priority(each) for each in wildcards}


def test_the_first_job_of_a_shard_goes_before_those_that_would_wait_for_it() -> None:
    asked = [*priorities().values()]
    assert asked == sorted(asked, reverse=True)
    assert len({*asked}) == len(asked)
    assert all(1 < priority <= 2 for priority in asked)  # after a shard's download, before what is made of its sound


def test_a_job_that_was_killed_alone_comes_after_the_others_of_its_shard() -> None:
    before, mark = priorities(), Path(COMPUTED[0], "000.computing")
    write_text(mark, "together")
    assert priorities() == before
    write_text(mark, "alone")
    assert min(priorities(), key=priorities().__getitem__) == COMPUTED[0]
    assert all(1 < priority <= 2 for priority in priorities().values())


@pytest.mark.parametrize("kind", [{"gpu": True}, {"decoded": True}, {"scored_in": "meteor"}])
def test_only_jobs_of_seconds_share_one(kind: dict[str, object]) -> None:
    assert helpers().group(WILDCARDS) == "heads"
    assert helpers(**kind).group(WILDCARDS) is None


def test_a_job_that_decodes_or_has_networks_gets_the_cores() -> None:
    assert helpers().extract_threads(WILDCARDS) == 4
    assert [helpers(decoded=decoded).entry_threads(WILDCARDS) for decoded in (False, True)] == [1, 4]


@pytest.mark.parametrize(("reader", "decoding"), [("pyav", "networks"), ("decord", "decord")])
def test_only_jobs_that_decode_are_in_the_environment_of_a_reader(reader: ReaderName, decoding: str) -> None:
    made = [helpers(reader, environment="networks", decoded=decoded) for decoded in (False, True)]
    assert [each.entry_environment(WILDCARDS) for each in made] == [
        "../../envs/networks.yaml",
        f"../../envs/{decoding}.yaml",
    ]


def test_an_attempt_requests_more_of_what_an_earlier_one_exceeded_up_to_the_limit() -> None:
    given = helpers()
    asked = given.resources("score")
    job = _Wildcards(("mine", "v1", "one", "all"))

    def requests() -> list[int | None]:
        return [asked[name](job) for name in ("mem_mb", "runtime", "gpu")]

    assert requests() == [1000, 10, None]
    given.exceeded["score", tuple(job), ""] += 1  # cancelled
    assert requests() == [1000, 10, None]
    given.exceeded["score", tuple(job), "mem_mb"] += 1
    assert requests() == [2000, 10, None]
    given.exceeded["score", tuple(job), "runtime"] += 1
    given.exceeded["score", tuple(job), "mem_mb"] += 1
    assert requests() == [2500, 20, None]
    assert asked["mem_mb"](_Wildcards(("mine", "v1", "other", "all"))) == 1000


class _Wildcards(tuple[str, ...]):
    """Snakemake's, in so far as they are a sequence with names."""

    study, release, entry, context = "mine", "v1", "one", "all"
    __slots__ = ()
