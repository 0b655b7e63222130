"""Stores on object storage, by a real service."""

import io
import itertools
import json
import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import obstore
import pytest
import zarr
from pyarrow import parquet

import stepline
from stepline import paths
from stepline.availability import write_availability
from stepline.backbones.histogram import HistogramSpec
from stepline.backbones.named import slug
from stepline.cli import main
from stepline.errors import StoreError
from stepline.features import objects, store
from stepline.features.bank import Bank
from stepline.features.cache import FeatureCache
from stepline.features.extract import Work
from stepline.features.objects import StorageError
from stepline.features.pool import PooledSpec, pool
from stepline.features.store import Part
from stepline.features.verify import Checked, verify
from stepline.io import read_json, write_json
from stepline.paths import Remote, located
from tests.features.conftest import HOP_S, SPEC, ListedSpec, content, rows
from tests.features.test_extract import present
from tests.features.test_extract import store as extracted
from tests.media.clips import CFR_25, make
from tests.object_storage import KEY, SECRET, ObjectStorage

PARTS: dict[str, Any] = {
    "a": rows(300, 1),
    "b": [Part(rows(4, 2), 1.0, 0.9, 3.0), Part(rows(3, 3), 9.0, 9.0, 12.0)],
    "c": rows(9, 4),
}


@pytest.fixture
def there(remote: str) -> Remote:
    """Where the store of a shard of PARTS stands."""
    place = located(paths.features("mine", "000", SPEC), remote)
    assert isinstance(place, Remote)
    return place


def names(url: str) -> dict[str, bytes]:
    """Return the objects below a URL, with what is in them."""
    bucket, prefix = objects.split(url)
    found = [each["path"] for page in obstore.list(bucket, prefix=prefix) for each in page]
    return {path[len(prefix) + 1 :]: bytes(obstore.get(bucket, path).bytes()) for path in found}


def put(url: str, content: bytes) -> None:
    obstore.put(*objects.split(url), content)


@pytest.mark.parametrize("spec", [SPEC, ListedSpec()])
def test_objects_are_the_files_of_a_local_store(there: Remote, spec: HistogramSpec) -> None:
    parts = {"a": rows(2, 1), "c": rows(1, 2)} if isinstance(spec, ListedSpec) else PARTS
    clips = {"a": [(0.0, 4.0), (1.0, 2.0)], "c": [(0.0, 4.0)]} if isinstance(spec, ListedSpec) else None
    store.write(Path("local"), spec, parts, HOP_S, clips=clips)
    store.write(there, spec, parts, HOP_S, clips=clips)
    assert names(there.url) == content(Path("local"))
    assert not list(Path("features").rglob("*000*"))
    copied = Remote(f"{there.url}-copied", there.folder)
    for name, held in content(Path("local")).items():
        put(f"{copied.url}/{name}", held)
    for place in (there, copied):
        bank, local = Bank.open([place], spec), Bank.open([Path("local")], spec)
        assert (bank.blocks, bank.clips) == (local.blocks, local.clips)
        assert all(np.array_equal(bank[video], local[video]) for video in local)
    array = zarr.open_array(objects.zarr_store(f"{there.url}/features"), mode="r")
    assert np.array_equal(array[:], store.read(Path("local")).rows)


def test_rows_are_pooled_next_to_their_store(there: Remote, remote: str, storage: ObjectStorage) -> None:
    store.write(there, SPEC, PARTS, HOP_S)
    bank = stepline.open_bank(SPEC.name, "mine", root=remote)
    spec, spans = PooledSpec.of(bank, "segment"), {video: [(0.0, bank.length(video) * HOP_S)] for video in bank}
    assert pool(bank, spec, "mine", spans, remote).computed == 3
    assert not list(Path("features", spec.name).rglob("index.parquet"))
    pooled = stepline.open_bank(spec.name, "mine", root=remote)
    mean = PARTS["c"].mean(axis=0, dtype=np.float64)
    np.testing.assert_allclose(pooled["c"][0], mean / np.linalg.norm(mean), rtol=1e-6)
    storage.asked.clear()
    assert pool(bank, spec, "mine", spans, remote).kept == 3
    assert {each.method for each in storage.asked} == {"GET", "HEAD"}


def test_an_empty_store_replaces_one_with_rows(there: Remote) -> None:
    store.write(there, SPEC, PARTS, HOP_S)
    store.write(there, SPEC, {}, HOP_S)
    assert {*names(there.url)} == {"features/zarr.json", "index.parquet"}
    assert Bank.open([there], SPEC).videos == frozenset()


def test_a_video_s_own_bytes_are_read_and_once(there: Remote, storage: ObjectStorage) -> None:
    store.write(there, SPEC, PARTS, HOP_S)
    storage.asked.clear()
    bank = Bank.open([there], SPEC)
    assert sorted(each.method for each in storage.asked) == ["GET", "GET", "HEAD"]
    assert (bank.dimension, bank.hop_s, bank.length("b"), "c" in bank) == (7, HOP_S, 7, True)
    storage.asked.clear()
    assert np.array_equal(bank["c"], PARTS["c"])
    assert [(each.wanted, each.sent) for each in storage.asked] == [(f"bytes={14 * 307}-{14 * 316 - 1}", 14 * 9)]
    assert np.array_equal(bank.window("c", 0, 2), PARTS["c"][:4])
    assert np.array_equal(bank.rows["c"], PARTS["c"])
    assert len(storage.asked) == 1
    assert np.array_equal(bank["b"], np.concatenate([part.rows for part in PARTS["b"]]))
    assert [each.sent for each in storage.asked[1:]] == [14 * 7]
    with pytest.raises(StoreError, match="^d has no features"):
        bank["d"]


def test_whole_banks_are_read_in_few_requests_at_once(
    remote: str, storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards = [located(paths.features("mine", f"00{n}", SPEC), remote) for n in range(2)]
    parts = [{f"{n}{i:03d}": rows(10 * i, i) for i in range(30)} for n in range(2)]
    for shard, held in zip(shards, parts, strict=True):
        store.write(shard, SPEC, held, HOP_S)
    monkeypatch.setattr(objects, "PIECE", 14 * 500)
    storage.asked.clear()
    bank = Bank.open(shards, SPEC)
    bank.fetch(f"0{i:03d}" for i in range(5, 15))
    assert len(storage.asked) == 6 + ceil(sum(range(5, 15)) * 10 / 500)
    bank.fetch()
    asked = len(storage.asked)
    assert asked <= 6 + 2 * ceil(4350 / 500) + 3
    assert all(np.array_equal(bank[video], each) for held in parts for video, each in held.items())
    again = pickle.loads(pickle.dumps(bank))
    assert len(storage.asked) == asked + 6
    assert np.array_equal(again["0007"], parts[0]["0007"])
    videos = ["1004", "1009"]
    asked = len(storage.asked)
    again.windows(videos, [0, 0], [1, 1], length=2)
    assert len(storage.asked) == asked + 2
    again.means(videos, [0, 0], [1, 1])
    assert len(storage.asked) == asked + 2
    pytest.importorskip("torch")
    windows = again.torch(["0005", "0006"], [0, 0], [1, 1], length=2)
    asked = len(storage.asked)
    assert np.array_equal(windows[1][0], parts[0]["0006"][:2])
    assert len(storage.asked) == asked, "rows are there before the workers start"


class Killed(BaseException):
    """What ends a writer."""


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object], int, bool], bool]:
    """Return what calls a writer and ends it at its n-th request, before or after the service has done that."""

    def run(write: Callable[[], object], n: int, done: bool) -> bool:
        counter = itertools.count()

        def ending(call: Callable[..., Any]) -> Callable[..., Any]:
            def asked(*arguments: Any, **options: Any) -> Any:
                last = next(counter) == n
                if last and not done:
                    raise Killed
                answer = call(*arguments, **options)
                if last:
                    raise Killed
                return answer

            return asked

        with monkeypatch.context() as patched:
            for name in ("put", "delete"):
                patched.setattr(obstore, name, ending(getattr(obstore, name)))
            try:
                write()
            except Killed:
                return True
            return False

    return run


UPDATES: list[tuple[HistogramSpec, dict[str, Any], dict[str, Any], Any, Any]] = [
    (SPEC, PARTS, {"0": rows(70, 9)} | PARTS, None, None),
    (SPEC, PARTS, PARTS | {"d": rows(700, 9)}, None, None),
    (SPEC, PARTS, {"c": PARTS["c"]}, None, None),
    (SPEC, PARTS, {}, None, None),
    (SPEC, PARTS, PARTS | {"a": rows(300, 8)}, None, None),
    (
        ListedSpec(),
        {"a": rows(2, 1), "b": rows(1, 2)},
        {"a": rows(2, 3), "b": rows(1, 2)},
        {"a": [(0.0, 4.0), (1.0, 2.0)], "b": [(0.0, 4.0)]},
        {"a": [(1.0, 2.0), (0.0, 4.0)], "b": [(0.0, 4.0)]},
    ),
    (
        ListedSpec(),
        {"a": rows(2, 1)},
        {"a": rows(2, 1)[::-1]},
        {"a": [(0.0, 4.0), (1.0, 2.0)]},
        {"a": [(1.0, 2.0), (0.0, 4.0)]},
    ),
]


def read_all(bank: Bank) -> Iterator[tuple[str, bytes]]:
    """Yield what a bank says of each video, and of each clip, as far as it can be read."""
    for video in bank:
        with suppress(StoreError):
            yield video, bank[video].tobytes()
        for clip in bank.clips.get(video, ()):
            with suppress(StoreError):
                yield f"{video} {clip}", bank.clip(video, *clip).tobytes()


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize(("spec", "old", "new", "old_clips", "new_clips"), UPDATES)
def test_a_writer_that_is_killed_leaves_no_wrong_rows_and_the_next_run_goes_on(
    there: Remote, killed: Any, spec: Any, old: Any, new: Any, old_clips: Any, new_clips: Any, done: bool
) -> None:
    store.write(Path("new"), spec, new, HOP_S, clips=new_clips)
    after, wanted = Bank.open([Path("new")], spec), content(Path("new"))
    for n in itertools.count():
        store.write(there, spec, old, HOP_S, clips=old_clips)
        opened = Bank.open([there], spec)
        before = dict(read_all(Bank.open([there], spec)))
        if not killed(lambda: store.write(there, spec, new, HOP_S, clips=new_clips), n, done):
            assert n == len(objects.FILES) - (new_clips is None)
            break
        reading = [opened]
        with suppress(StoreError):
            reading.append(Bank.open([there], spec))
        for bank in reading:
            found = dict(read_all(bank))
            assert found.items() <= before.items() or found.items() <= dict(read_all(after)).items()
            assert {*bank} in ({*old}, {*new})
        store.send(there)
        assert names(there.url) == wanted
        assert dict(read_all(Bank.open([there], spec))) == dict(read_all(after))
        store.send(there)


def test_extraction_loses_nothing_to_a_kill_or_a_refusal(
    there: Remote, killed: Any, storage: ObjectStorage, decoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cv2")
    monkeypatch.setattr(objects, "RETRIES", 1)
    records = [present(make(Path(f"{video}.mp4").absolute(), CFR_25)) for video in "abc"]

    def run(place: Any, videos: str, manifest: str = "manifest.json") -> bytes:
        write_availability("availability.json", [each for each in records if each.video in videos])
        extracted(Path(), Work(spec=HistogramSpec(), store=place), manifest=manifest)
        return Path(manifest).read_bytes()

    wanted = run(Path("local"), "abc", "local.json")
    run(there, "bc")
    decoded.clear()
    Path("manifest.json").unlink()
    for n in (0, 1, 2):
        assert killed(lambda: run(there, "abc"), n, True)
        assert not Path("manifest.json").exists()
    assert decoded == ["a"]
    storage.fail = lambda method, path: 503
    for _ in range(2):
        with pytest.raises(StorageError, match="the service refuses .status 503.: run the same command again later$"):
            run(there, "abc")
    storage.fail = lambda method, path: None
    assert run(there, "abc") == wanted
    assert decoded == ["a"]
    assert names(there.url) == content(Path("local"))
    storage.asked.clear()
    assert run(there, "abc") == wanted
    assert len(storage.asked) == 3
    assert sum(each.sent for each in storage.asked) < 20_000


def test_a_store_that_cannot_be_asked_for_is_not_taken_for_none(there: Remote, storage: ObjectStorage) -> None:
    storage.fail = lambda method, path: 403
    with pytest.raises(StorageError, match="access denied"):
        FeatureCache(SPEC, there, {})


def damaged(place: int) -> Callable[[str], None]:
    """Return what changes a byte of the rows."""

    def change(url: str) -> None:
        held = bytearray(objects.get(f"{url}/{objects.ARRAY}"))
        held[place] ^= 1
        put(f"{url}/{objects.ARRAY}", bytes(held))

    return change


def without(name: str) -> Callable[[str], None]:
    return lambda url: obstore.delete(*objects.split(f"{url}/{name}"))


def cut(name: str) -> Callable[[str], None]:
    return lambda url: put(f"{url}/{name}", objects.get(f"{url}/{name}")[:100])


ANEW = "copy the store there, or run `stepline verify` and `snakemake`, which computes the lost rows"


@pytest.mark.parametrize(
    "damage", [wrong(name) for name in (objects.ARRAY, objects.METADATA, objects.INDEX) for wrong in (without, cut)]
)
def test_what_is_absent_or_damaged_is_one_line_and_is_counted(
    there: Remote, damage: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    recorded(there)
    damage(there.url)
    with pytest.raises(StoreError, match=f"^{there.url}: it is absent or damaged: {ANEW}$"):
        Bank.open([there], SPEC)
    assert main(["verify"]) == 2
    assert capsys.readouterr().out == f"{there.url} is missing or damaged\n"
    assert read_json(paths.damages("mine", "000", SPEC)) == {"found": 1}


def recorded(there: Remote) -> None:
    """Write the store, its records, and a configuration that says where it stands."""
    store.write(there, SPEC, PARTS, HOP_S)
    write_json(paths.spec_record(SPEC), SPEC.record())
    write_json(paths.features_manifest("mine", "000", SPEC), {"videos": {}})
    write_json("config.yaml", {"features": {"store": there.url.rsplit("/", 4)[0]}})


def test_only_a_damaged_video_goes(there: Remote, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(there)
    damaged(14 * 302)(there.url)
    bank = Bank.open([there], SPEC)
    assert np.array_equal(bank["a"], PARTS["a"])
    with pytest.raises(StoreError, match=f"^{there.url}: the rows of b are damaged: copy the store there, or run"):
        bank["b"]
    assert main(["verify"]) == 2
    assert capsys.readouterr().out == f"{there.url}: b is damaged\n"
    store.write(Path("wanted"), SPEC, {video: PARTS[video] for video in "ac"}, HOP_S)
    assert names(there.url) == content(Path("wanted"))
    assert main(["verify"]) == 0
    assert capsys.readouterr().out == "1 stores are intact\n"


def test_verify_finishes_what_a_kill_left(there: Remote, killed: Any) -> None:
    recorded(there)
    assert killed(lambda: store.write(there, SPEC, PARTS | {"0": rows(3)}, HOP_S), 0, True)
    assert list(verify(paths.spec_record(SPEC).parent, there.url.rsplit("/", 4)[0])) == [Checked(there, [])]
    assert Bank.open([there], SPEC).videos == {*PARTS, "0"}
    assert not paths.damages("mine", "000", SPEC).exists()


@pytest.mark.parametrize(
    ("environment", "url", "line"),
    [
        ({}, "s3://no-such-bucket/x", "s3://no-such-bucket does not exist: create the bucket"),
        (
            {"AWS_SECRET_ACCESS_KEY": "another-secret"},
            "s3://features/x",
            "access denied: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to keys that may read there",
        ),
        (
            {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"},
            "s3://features/x",
            "cannot be read: the service does not respond: check AWS_ENDPOINT_URL and the network",
        ),
        ({"AWS_ENDPOINT_URL": "127.0.0.1:9"}, "s3://features/x", "AWS_ENDPOINT_URL is not an address: give http(s)://"),
    ],
)
def test_a_service_that_is_wrong_is_one_line_without_keys(
    storage: ObjectStorage,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    environment: dict[str, str],
    url: str,
    line: str,
) -> None:
    monkeypatch.setattr(objects, "RETRIES", 1)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    write_json("config.yaml", {"features": {"store": url}})
    write_json(paths.spec_record(SPEC), SPEC.record())
    write_json(paths.features_manifest("mine", "000", SPEC), {"videos": {}})
    assert main(["--log", "log", "verify"]) == 2
    shown = capsys.readouterr()
    assert line in shown.err
    assert shown.err.count("\n") == 1
    said = shown.out + shown.err + Path("log").read_text()
    assert not [secret for secret in (KEY, SECRET, "another-secret") if secret in said]
    assert not paths.damages("mine", "000", SPEC).exists()
    store_it = located(paths.features("mine", "000", SPEC), url)
    with pytest.raises(StorageError):
        store.write(store_it, SPEC, PARTS, HOP_S)


def test_a_busy_service_is_asked_again_so_many_times(
    there: Remote, storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "RETRIES", 2)
    left = [2]

    def busy(method: str, path: str) -> int | None:
        left[0] -= 1
        return 503 if left[0] >= 0 else None

    storage.fail = busy
    store.write(there, SPEC, PARTS, HOP_S)
    assert np.array_equal(Bank.open([there], SPEC)["a"], PARTS["a"])
    storage.asked.clear()
    left[0] = 99
    with pytest.raises(StorageError, match="status 503"):
        store.read(there)
    assert len(storage.asked) == 3


def test_large_files_are_sent_in_parts(there: Remote, storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "PIECE", 5 << 20)  # the least that S3 takes
    whole = np.random.default_rng(0).random((60_000, 100), np.float32).astype(np.float16)
    store.write(there, SPEC, {"a": whole}, HOP_S)
    parts = [each for each in storage.asked if each.method == "PUT" and "partNumber" in each.path]
    assert len(parts) > 1
    assert [each.path for each in storage.asked if each.method == "PUT"][-1].endswith("/index.parquet")
    assert np.array_equal(Bank.open([there], SPEC)["a"], whole)


def test_banks_are_opened_by_name(remote: str) -> None:
    for dataset, shard in (("mine", "000"), ("mine", "001"), ("other", "000")):
        store.write(located(paths.features(dataset, shard, SPEC), remote), SPEC, {dataset + shard: rows(3)}, HOP_S)
    spec = f"{SPEC.name}/{SPEC.id}"
    put(f"{remote}/{spec}/manifests/mine.000.json", b"{}")  # of a copy of all of features/
    put(f"{remote}/{spec}/mine/texts/a/spec.json", b"{}")
    for name in (SPEC.name, spec, f"features/{spec}"):
        assert stepline.open_bank(name, "mine", root=remote).videos == {"mine000", "mine001"}
    with pytest.raises(StoreError, match=r"has more than one dataset: name one of mine, other$"):
        stepline.open_bank(SPEC.name, root=remote)
    with pytest.raises(
        StoreError, match=f"^{remote}/histogran holds no .*: did you mean 'histogram'.* {remote} has histogram;"
    ):
        stepline.open_bank("histogran", root=remote)
    with pytest.raises(StoreError, match=f"^{remote}/{spec}/none holds no features of videos: .* has mine, other;"):
        stepline.open_bank(SPEC.name, "none", root=remote)
    model = replace(SPEC, name=slug("hf:facebook/dinov2-base@main"))
    for another, dataset in ((replace(model, hues=4), "other"), (model, "mine")):
        store.write(located(paths.features(dataset, "000", another), remote), another, {"a": rows(3)}, HOP_S)
    assert stepline.open_bank("hf:facebook/dinov2-base@main", "mine", root=remote).spec == model.record()


def test_banks_are_imported_exported_and_compared(remote: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_json("config.yaml", {"features": {"store": remote}})
    Path("given").mkdir()
    for video, seed in (("a", 1), ("b", 2)):
        np.save(f"given/{video}.npy", rows(20, seed))
    assert main(["bank", "import", "given", "--name", "r3d", "--dataset", "mine", "--hop-s", "1"]) == 0
    (record,) = Path("features/r3d").glob("*/spec.json")
    assert not list(Path("features").rglob("*.parquet"))
    assert main(["bank", "export", str(record.parent), "mine", "out", "--form", "npy"]) == 0
    assert all(np.array_equal(np.load(f"out/{video}.npy"), np.load(f"given/{video}.npy")) for video in "ab")
    capsys.readouterr()
    assert main(["bank", "compare", str(record.parent), "given", "--hop-s", "1"]) == 0
    assert "2 videos: mean cosine 1.00000" in capsys.readouterr().out
    assert main(["verify"]) == 0


def test_other_layouts_and_clips_of_another_update_are_damage(there: Remote) -> None:
    store.write(there, SPEC, PARTS, HOP_S)
    url = f"{there.url}/{objects.METADATA}"
    metadata = json.loads(objects.get(url))
    metadata["codecs"][0]["configuration"]["index_location"] = "start"
    put(url, json.dumps(metadata).encode())
    with pytest.raises(StoreError, match="absent or damaged"):
        store.read(there)
    store.write(there, ListedSpec(), {"a": rows(2)}, HOP_S, clips={"a": [(0.0, 4.0), (1.0, 2.0)]})
    table = parquet.read_table(io.BytesIO(objects.get(f"{there.url}/index.parquet")))
    buffer = io.BytesIO()
    parquet.write_table(table.replace_schema_metadata({}), buffer)
    put(f"{there.url}/index.parquet", buffer.getvalue())
    with pytest.raises(StoreError, match="absent or damaged"):
        store.read(there)
