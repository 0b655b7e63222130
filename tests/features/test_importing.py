import hashlib
import pickle
from collections import OrderedDict
from collections.abc import Callable
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepline
from stepline import paths
from stepline.availability import Record, read_manifest, write_availability
from stepline.backbones.histogram import HistogramSpec
from stepline.cli import main
from stepline.datasets.folder import marked_id
from stepline.errors import ConfigError, StoreError
from stepline.features import store
from stepline.features.bank import Bank
from stepline.features.export import Form, export
from stepline.features.importing import Folder, import_folder
from stepline.io import read_json, sha256_file

SPEC = HistogramSpec(dtype="float16")


@pytest.fixture(autouse=True)
def folder() -> Path:
    """Return the folder of the users' files in a work folder."""
    Path("theirs").mkdir()
    return Path("theirs")


def rows(n: int, seed: int = 0, dtype: str = "float32", d: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("form", ["npy", "dict", "hdf5", "pt"])
def test_what_is_exported_comes_back_exactly(folder: Path, form: Form, dtype: str) -> None:
    pytest.importorskip({"pt": "torch", "hdf5": "h5py"}.get(form, "numpy"))
    spec = HistogramSpec(dtype=dtype)
    parts = {"a": rows(300, 1, dtype), "0-_b.c": rows(2, 2, dtype)}
    store.write(Path("s"), spec, parts, 0.5)
    export(Bank.open([Path("s")], spec), folder, form, prefix="COIN_", suffix=".mp4")
    bank = stepline.open_bank(import_folder(Folder(folder, prefix="COIN_", suffix=r"\.mp4"), "theirs", "mine", 0.5))
    assert bank.spec["dtype"] == dtype
    assert bank.videos == parts.keys()
    assert all(np.array_equal(bank[video], part) and bank[video].dtype == dtype for video, part in parts.items())
    assert bank.at("a", [0.5])[0].tolist() == parts["a"][1].tolist()


def test_an_imported_bank_says_what_it_is_made_of(folder: Path) -> None:
    np.save(folder / "COIN_b.npy", rows(4, 1).astype(">f4"))
    np.save(folder / "COIN_a.npy", np.asfortranarray(rows(3)))
    np.save(folder / "CrossTask_c.npy", rows(3, d=5))
    (folder / "readme.txt").write_text("theirs")
    found = Folder(folder, prefix="COIN_")
    made = import_folder(found, "videoclip", "coin", 3.2)
    assert (list(found), found.skipped) == (["a", "b"], 1)
    digests = {video: sha256_file(folder / f"COIN_{video}.npy") for video in "ab"}
    lines = "".join(f"{video} {sha256}\n" for video, sha256 in digests.items())
    record = read_json(made / "spec.json")
    assert record == {
        "name": "videoclip",
        "label": "imported",
        "revision": 1,
        "hop_s": 3.2,
        "dimension": 7,
        "dtype": "float32",
        "files_sha256": hashlib.sha256(lines.encode()).hexdigest(),
    }
    bank = stepline.open_bank("videoclip", "coin")
    assert {video: blocks[0].source_sha256 for video, blocks in bank.blocks.items()} == digests
    assert read_manifest(made / "manifests/coin.000.json") == {
        video: {"status": "present", "reason": "", "n_rows": n, "source_sha256": digests[video]}
        for video, n in (("a", 3), ("b", 4))
    }
    assert np.array_equal(bank["b"], rows(4, 1))
    before = (made / "coin/000/features/c/0/0").read_bytes()
    assert import_folder(found, "videoclip", "coin", 3.2) == made
    assert (made / "coin/000/features/c/0/0").read_bytes() == before
    assert import_folder(found, "videoclip", "coin", 1) != made


def test_files_of_different_precision_are_stored_in_the_larger(folder: Path) -> None:
    np.save(folder / "a.npy", rows(3, dtype="float16"))
    np.save(folder / "b.npy", rows(3, dtype="float64"))
    bank = stepline.open_bank(import_folder(Folder(folder), "theirs", "mine", 1))
    assert bank.spec["dtype"] == "float32"
    assert np.array_equal(bank["a"], rows(3, dtype="float16"))
    assert np.array_equal(bank["b"], rows(3, dtype="float64").astype(np.float32))


def p3iv(**more: Any) -> dict[str, Any]:
    return {"frames_features": rows(6), "name": "x", "start": [1, 2.5], "ids": np.array(["a", None], object), **more}


@pytest.mark.parametrize("protocol", range(6))
def test_dictionaries_are_read_without_running_what_they_name(folder: Path, protocol: int) -> None:
    with open(folder / "a.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|O", "fortran_order": False, "shape": ()})
        content = OrderedDict(
            p3iv(), score=np.float64(0.5), seen={1, 2}, other=np.asfortranarray(rows(2)).astype(">f8")
        )
        pickle.dump(np.array(content, object), file, protocol=protocol)
    assert np.array_equal(Folder(folder)["a"], rows(6))
    assert np.array_equal(Folder(folder, key="other")["a"], rows(2))
    with pytest.raises(StoreError, match="^theirs/a.npy has no 'clips': name the key .*: frames_features, name"):
        Folder(folder, key="clips")["a"]


class Run:
    def __init__(self, call: Callable[..., Any], *arguments: Any) -> None:
        self.reduced = call, arguments

    def __reduce__(self) -> Any:
        return self.reduced


@pytest.mark.parametrize(
    "hostile",
    [
        Run(Path.touch, Path("run")),
        Run(exec, "open('run', 'w')"),
        Run(getattr, "x", "upper"),
        Run(np.load, "x"),
        Run(bytearray, 10**12),
    ],
)
def test_a_hostile_file_runs_nothing(folder: Path, hostile: object) -> None:
    np.save(folder / "a.npy", np.array(p3iv(more=hostile), object))
    with pytest.raises(
        StoreError, match="^theirs/a.npy holds no features, or is damaged .it names .*, which is not executed"
    ):
        Folder(folder)["a"]
    assert not Path("run").exists()


def save_h5(path: Path, **datasets: Any) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        for name, content in datasets.items():
            file.create_dataset(name, data=content)


def save_pt(path: Path, content: Any) -> None:
    torch = pytest.importorskip("torch")
    torch.save(torch.from_numpy(content) if isinstance(content, np.ndarray) else content, path)


NAN = np.where(np.arange(28).reshape(4, 7) == 15, np.nan, 1.0)
IMPORT = "^theirs/x.npy: the features of x "


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: None, "^theirs holds no features: give .npy, .pt, .h5 or .hdf5 files"),
        (lambda folder: np.save(folder / "x.npy", rows(3)[0]), IMPORT + r"must be a .T, D. .* not float32 \(7,\)$"),
        (lambda folder: np.save(folder / "x.npy", rows(3)[None]), r"not float32 \(1, 3, 7\)$"),
        (lambda folder: np.save(folder / "x.npy", rows(0)), r"not float32 \(0, 7\)$"),
        (lambda folder: np.save(folder / "x.npy", np.ones((3, 7), int)), r"not int64 \(3, 7\)$"),
        (lambda folder: np.save(folder / "x.npy", NAN), IMPORT + "are not finite in row 2$"),
        (lambda folder: np.save(folder / "x.npy", -1e300 * np.eye(7)), IMPORT + "are too large for float32 in row 0$"),
        (lambda folder: np.save(folder / "x.npy", [[1e300], [np.inf]]), IMPORT + "are too large for float32 in row 0$"),
        (lambda folder: np.save(folder / "x.npy", np.array([1, None])), "has no 'frames_features'.*: no dictionary$"),
        (lambda folder: np.save(folder / "x.npy", rows(3, d=6)), IMPORT + "have 6 .* of a in .*a.npy have 7$"),
        (lambda folder: (folder / "x.npy").write_bytes(b"\x93NUMPY"), "^theirs/x.npy holds no features, or is damaged"),
        (lambda folder: (folder / "x.npy").write_bytes(b""), "^theirs/x.npy holds no features, or is damaged"),
        (lambda folder: np.save(folder / "x y.npy", rows(3)), "^theirs/x y.npy: video id 'x y' .* --prefix, --suffix$"),
        (lambda folder: save_h5(folder / "f.h5", a=rows(3)), "^a is in theirs/a.npy and in theirs/f.h5: remove one"),
        (lambda folder: save_h5(folder / "f.hdf5", x=rows(3)[0]), r"^theirs/f.hdf5: the features of x must be"),
        (lambda folder: (folder / "f.h5").write_bytes(b"no"), "^theirs/f.h5 holds no features, or is damaged"),
        (lambda folder: save_pt(folder / "x.pt", {"a": 1}), "^theirs/x.pt: the features of x must be .* not dict$"),
        (lambda folder: (folder / "x.pt").write_bytes(b"no"), "theirs/x.pt"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_file(
    folder: Path, make: Callable[[Path], object], message: str
) -> None:
    make(folder)
    if any(folder.iterdir()):
        np.save(folder / "a.npy", rows(5))
    with pytest.raises(StoreError, match=message) as raised:
        import_folder(Folder(folder), "theirs", "mine", 1)
    assert "\n" not in str(raised.value)
    assert not Path("features").exists()


def test_ids_stand_between_what_the_patterns_match_whatever_their_groups(folder: Path) -> None:
    for name in ("MakeTea_12_aB_3-_7890z.mp4", "MakeTea_12_0123456789_.webm", "MakeTea_12_short.mp4"):
        np.save(folder / f"{name}.npy", rows(2))
    found = Folder(folder, prefix=r".*_(?=.{11}\.)", suffix=r"\.(mp4|webm)")
    assert (list(found), found.skipped) == (["0123456789_", "aB_3-_7890z"], 1)
    np.save(folder / "COIN_a.mp4.npy", rows(2))
    assert list(Folder(folder, prefix="(COIN|YT)_", suffix=r"(\.mp4)")) == ["a"]
    assert list(Folder(folder, prefix="(COIN|YT)_", suffix=r"(\.mp4)?")) == ["a"]


def test_names_may_say_the_ids(folder: Path) -> None:
    for name, n in (("MakeTea_12_a_b", 2), ("COIN_x", 3), ("other", 4)):
        np.save(folder / f"{name}.npy", rows(n))
    found = Folder(folder, ids={"MakeTea_12_a_b": "COIN_a_b", "COIN_x": "COIN_x", "gone": "COIN_z"})
    assert ({video: len(part) for video, part in found.items()}, found.skipped) == ({"COIN_a_b": 2, "COIN_x": 3}, 1)
    assert found.files["COIN_a_b"] == folder / "MakeTea_12_a_b.npy"
    with pytest.raises(StoreError, match="^COIN_x is in theirs/COIN_x.npy and in theirs/MakeTea_12_a_b.npy: remove "):
        Folder(folder, ids={"MakeTea_12_a_b": "COIN_x", "COIN_x": "COIN_x"})
    with pytest.raises(StoreError, match="^theirs holds no features"):
        Folder(folder, ids={})
    with pytest.raises(StoreError, match="^theirs/other.npy: video id 'a b'"):
        Folder(folder, ids={"other": "a b"})


def test_users_features_and_tensors_of_a_network_read_like_a_mapping(folder: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save(torch.from_numpy(rows(2)).requires_grad_(), folder / "a.pt")
    torch.save(torch.nn.Parameter(torch.from_numpy(rows(3))), folder / "b.pt")
    found = Folder(folder)
    assert [part.tolist() for part in found.values()] == [rows(2).tolist(), rows(3).tolist()]
    assert ("a" in found, "z" in found, found.get("z")) == (True, False, None)
    for error in (StoreError, KeyError):
        with pytest.raises(error, match="^z has no features among the files given$"):
            found["z"]


def test_a_group_in_hdf5_is_named(folder: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "f.h5", "w") as file:
        file["a"] = rows(2)
        file["v1/features"] = rows(2)
    with pytest.raises(StoreError, match="^theirs/f.h5: v1 is a group: put a dataset per video at the top of the file"):
        import_folder(Folder(folder), "theirs", "mine", 1)
    assert Folder(folder)["a"].shape == (2, 7)


def test_a_failed_import_leaves_no_spec(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **named: object) -> None:
        raise OSError(28, "No space left on device")

    np.save(folder / "a.npy", rows(2))
    monkeypatch.setattr(store, "write", full)
    with pytest.raises(OSError, match="No space"):
        import_folder(Folder(folder), "theirs", "mine", 1)
    assert not list(Path().rglob("spec.json"))


@pytest.mark.parametrize("name", ["s3d-oepp", "histogram", "s3d-text", "minilm"])
def test_an_imported_bank_takes_no_known_name(folder: Path, name: str) -> None:
    np.save(folder / "a.npy", rows(2))
    with pytest.raises(ConfigError, match=f"^name '{name}' is already used by a backbone or text encoder of Stepline"):
        import_folder(Folder(folder), name, "mine", 1)


def test_names_and_hops_are_checked(folder: Path) -> None:
    np.save(folder / "a.npy", rows(5))
    for name, dataset, hop_s in (("../x", "mine", 1), ("x", "Mine", 1), ("x", "mine", 0), ("x", "mine", nan)):
        with pytest.raises(ConfigError):
            import_folder(Folder(folder), name, dataset, hop_s)
    with pytest.raises(ConfigError, match="is not a regular expression: "):
        Folder(folder, prefix="(")


@pytest.fixture
def mine() -> None:
    """A data set with the videos a, b_c and their namesakes, and their records."""
    Path("videos/sub").mkdir(parents=True)
    for name in ("a.mp4", "a.mov", "b c.mp4", "sub/Gr\u00fcn.mkv"):
        (Path("videos") / name).touch()
    Path("config.yaml").write_text("datasets: {mine: {videos: videos}}")
    records = [Record(video=video, status="present", duration_s=12.0) for video in ("a", "b_c", marked_id("a.mp4"))]
    write_availability(paths.availability("mine", "000"), records)


def imported(*more: str, hop_s: str = "1") -> int:
    return main(["bank", "import", "theirs", "--name", "x", "--dataset", "mine", "--hop-s", hop_s, *more])


NAMES = {"a": "a", "a.mov": "a", "a.mp4": marked_id("a.mp4"), "b c": "b_c", "b c.mp4": "b_c", "b_c": "b_c"}
NAMES |= {"Gru\u0308n": "", "sub__Gru\u0308n": "sub__Gr\u00fcn"}


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["npy", "pt", "h5", "dict"])
def test_a_name_is_that_of_a_listed_video(
    folder: Path, form: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if form == "npy":
        np.save(folder / f"{name}.npy", rows(12))
    elif form == "dict":
        np.save(folder / f"{name}.npy", {"frames_features": rows(12)}, allow_pickle=True)  # type: ignore[arg-type]
    elif form == "pt":
        torch = pytest.importorskip("torch")
        torch.save(torch.from_numpy(rows(12)), folder / f"{name}.pt")
    else:
        with pytest.importorskip("h5py").File(folder / "all.h5", "w") as file:
            file[name] = rows(12)
    code = imported()
    said = capsys.readouterr()
    if not NAMES[name]:
        line = f"error: theirs: 1 of 1 names are of no listed video ({name!r}): name the features by the ids or the "
        assert (code, said.err) == (2, f"{line}files of the videos\n")
        return
    assert (code, list(stepline.open_bank("x", "mine"))) == (0, [NAMES[name]]), said.err


@pytest.mark.usefixtures("mine")
def test_names_of_no_listed_video_are_left_out_in_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("v_a", "v_b c.mp4", "other", *(f"v_{letter}" for letter in "stuvwxyz")):
        np.save(folder / f"{name}.npy", rows(12))
    assert imported("--prefix", "v_") == 0
    bank = stepline.open_bank("x", "mine")
    assert capsys.readouterr().out.splitlines() == [
        f"{next(Path('features/x').glob('imported-*'))}: 2 videos of mine, 1 file names do not match",
        "left out: 8 of 10 names are of no listed video ('s', 't', 'u', 'v', 'w', ...)",
    ]
    assert list(bank) == ["a", "b_c"]
    np.save(folder / "v_b_c.npy", rows(12))
    assert imported("--prefix", "v_") == 2
    line = "b_c is in theirs/v_b c.mp4.npy and in theirs/v_b_c.npy: remove one of them"
    assert capsys.readouterr().err == f"error: {line}\n"


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize(
    ("n", "hop_s", "line"),
    [
        (12, "1", ""),
        (14, "1", ""),
        (15, "1", "error: the rows of 1 of 2 videos end after their video does, the first: b_c has 15 rows of 1 s"),
        (400, "0.04", "error: the rows of 1 of 2 videos end after their video does, the first: b_c has 400 rows of "),
        (7, "1", ""),
        (6, "1", "the rows of 1 of 2 videos end before their video does, the first: b_c has 6 rows of 1 s and ends at"),
    ],
)
def test_rows_fit_the_length_of_their_video(
    folder: Path, n: int, hop_s: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(folder / "a.npy", rows(round(12 / float(hop_s))))
    np.save(folder / "b c.npy", rows(n))
    refused = line.startswith("error")
    assert imported(hop_s=hop_s) == (2 if refused else 0)
    said = capsys.readouterr()
    lines = (said.err if refused else said.out).splitlines()
    assert len(lines) == (2 if line and not refused else 1)
    assert lines[0].startswith(line or "features/x/imported-")
    assert Path("features/x").exists() != refused


def test_of_other_data_sets_names_are_ids(folder: Path) -> None:
    np.save(folder / "zzz.npy", rows(400))
    assert imported() == 0
    assert list(stepline.open_bank("x", "mine")) == ["zzz"]
