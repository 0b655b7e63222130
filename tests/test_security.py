"""What SECURITY.md promises, where no one module's tests show it."""

import json
import os
import pickle
import re
import sqlite3
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from stepline.availability import Record, read_availability, read_manifest, write_manifest
from stepline.config import load, validate
from stepline.datasets import crosstask
from stepline.download import remove_video
from stepline.errors import ConfigError, DownloadError, MissingError, ReleaseError, StoreError
from stepline.io import YAML_CHARACTERS, parse_json, read_json, read_table
from stepline.llm import ask
from stepline.media.decode import MediaError, frames
from stepline.media.process import Limits, killable
from stepline.service import Service
from tests.asr.deepgram_answers import listened
from tests.conftest import ROOT, snakemake
from tests.file_server import serving
from tests.llm_answers import completion
from tests.server import Reply, Request, Server

SOURCE = sorted((ROOT / "src").rglob("*.py"))


# Code


LOADERS = {
    r"torch\.load\(": [],
    r"allow_pickle=True|trust_remote_code=True": [],
    r"\b(pickle|joblib|dill|marshal|shelve)\.(loads?|open|_?Unpickler)\b": [],
    r"\byaml\.(load|unsafe_load|full_load)\(": [],
    r"extractall|unpack_archive|\.extract\(|tarfile": [],
    r"(?<![.\w])(eval|exec)\(|shell=True|os\.system": [],
    r"zarr\.open": ["features/verify.py"],  # after ``store.read``
    r"spec_from_file_location\(": ["backbones/file.py", "plans.py"],
}
"""What could run code or write members of an archive, and where it stands."""


@pytest.mark.parametrize("pattern", LOADERS)
def test_what_could_run_code_stands_where_it_is_known(pattern: str) -> None:
    found = [file for file in SOURCE if re.search(pattern, file.read_text())]
    assert [str(file.relative_to(ROOT / "src/stepline")) for file in found] == LOADERS[pattern]


class Harm:
    """Leaves a file where it is unpickled."""

    def __reduce__(self) -> Any:
        return os.system, ("touch harmed",)


def test_a_store_of_another_format_is_not_decoded(tmp_path: Path) -> None:
    from stepline.backbones.histogram import HistogramSpec
    from stepline.features import store
    from stepline.features.verify import _check

    folder = tmp_path / "s"
    store.write(folder, HistogramSpec(), {"a": np.zeros((3, 7), np.float32)}, 0.2)
    features = folder / "features"
    for path in sorted(features.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    about = {"zarr_format": 2, "shape": [3, 7], "chunks": [3, 7], "dtype": "<f4", "compressor": {"id": "pickle"}}
    (features / ".zarray").write_text(json.dumps(about | {"fill_value": 0, "order": "C", "filters": None}))
    (features / "0.0").write_bytes(pickle.dumps(Harm()))
    with pytest.raises(StoreError):
        store.read(folder)
    _check(folder)
    assert not Path("harmed").exists()


# Names


@pytest.mark.parametrize("name", ["../../x", "/x", "a/b", "..", "", "a\0b", "a\nb", "."])
def test_a_record_that_names_no_video_is_one_line(name: str) -> None:
    write_manifest("a.json", {name: {"status": "present"}})
    for read in (read_manifest, read_availability):
        with pytest.raises(StoreError, match=r"^a\.json: .*is not allowed") as error:
            read("a.json")
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("path", ["/etc/hostname", "../keep", "videos/keep.mp4", "..", "", "videos/b.mp4", "a.json"])
def test_a_record_deletes_no_file_that_is_not_its_own(path: str) -> None:
    folder = Path("videos")
    folder.mkdir()
    kept = [Path("keep"), folder / "keep.mp4", folder / "b.mp4", folder / "a.json", folder / "a.mp4"]
    for each in kept:
        each.touch()
    remove_video(folder, Record(video="a", status="present", path=path))
    assert all(each.exists() for each in kept)
    remove_video(folder, Record(video="a", status="present", path=f"{path}/a.mp4"))
    assert [each for each in kept if not each.exists()] == [folder / "a.mp4"]


@pytest.mark.parametrize("member", ["../{}", "/tmp/{}", "a/../../{}", "..\\{}"])
def test_members_of_an_archive_are_not_written(tmp_path: Path, member: str) -> None:
    before = set(tmp_path.iterdir())
    with zipfile.ZipFile("evil.zip", "w") as archive:
        for name in (crosstask.TASKS, *crosstask.VIDEOS, "x.sh"):
            archive.writestr(member.format(name), b"x" * 9)
        link = zipfile.ZipInfo(member.format("annotations"))
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc")
    with pytest.raises(ReleaseError, match="is not CrossTask's release"):
        crosstask.load(Path("evil.zip"))
    assert {path.name for path in tmp_path.iterdir()} - {path.name for path in before} == {"evil.zip"}


STATED = f"has more than {crosstask.MOST_BYTES} bytes"


@pytest.mark.parametrize(
    ("how", "line"),
    [
        (zipfile.ZIP_DEFLATED, STATED),
        (zipfile.ZIP_DEFLATED, "Bad CRC-32"),
        *((how, "another method than deflate") for how in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)),
    ],
)
def test_a_member_that_unpacks_to_much_is_not_unpacked(how: int, line: str) -> None:
    """Also one that states a small size."""
    with zipfile.ZipFile("bomb.zip", "w", how) as archive:
        archive.writestr(crosstask.TASKS, bytes(4 * crosstask.MOST_BYTES))
        if line != STATED:
            archive.infolist()[0].file_size = 100
    tracemalloc.start()
    with pytest.raises(ReleaseError, match=line):
        crosstask.load(Path("bomb.zip"))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 3 * crosstask.MOST_BYTES


def test_a_tensor_that_unpacks_to_much_is_not_unpacked() -> None:
    torch = pytest.importorskip("torch")
    from stepline.backbones.checkpoint import read

    torch.save({"state_dict": {"a": torch.zeros(1 << 20)}, "args": Harm}, "a.pt")
    with zipfile.ZipFile("a.pt") as plain, zipfile.ZipFile("bomb.pt", "w", zipfile.ZIP_DEFLATED) as packed:
        for name in plain.namelist():
            packed.writestr(name, plain.read(name))
    assert read(Path("a.pt"))["state_dict"]["a"].numel() == 1 << 20
    with pytest.raises(StoreError, match="is compressed"):
        read(Path("bomb.pt"))


# Bombs


def laughs(levels: int) -> str:
    """Return YAML of nine to the ``levels`` values."""
    lines = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}' if i else 'x'] * 9)}]" for i in range(levels)]
    return "\n".join(lines)


BOMBS = {
    "aliases": (laughs(30), "more than 100000 values, with its aliases"),
    "merged aliases": (
        "a0: &a0 {x: 1}\n" + "\n".join(f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}" for i in range(1, 30)),
        "more than 100000 values, with its aliases",
    ),
    "levels": ("a: " + "[" * 100_000, "more than 100 levels"),
    "levels by lines": ("\n".join(" " * i + "a:" for i in range(999)), "more than 100 levels"),
    "levels on a line": ("- " * 100_000, "more than 100 levels"),
    "characters": ("#" * (YAML_CHARACTERS + 1), "more than 1048576 characters"),
    "a number": ("a: 1" + ":59" * 100_000, "line 1: a number has 300001 characters"),
    "a date": ("a: 2001-99-99", "a value is invalid: month must be in"),
    "an object": ("a: !!python/object/apply:os.system [touch harmed]", "could not determine a constructor"),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_yaml_that_is_a_bomb_is_one_line(bomb: str) -> None:
    text, line = BOMBS[bomb]
    Path("config.yaml").write_text(text)
    with pytest.raises(ConfigError, match=f"^config.yaml: not YAML: .*{line}") as error:
        load()
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300
    assert not Path("harmed").exists()


def test_aliases_that_snakemake_has_read_are_one_line_and_a_line_about_a_long_value_is_short() -> None:
    with pytest.raises(ConfigError, match="^config: it has more than 100000 values, with its aliases$"):
        validate(yaml.safe_load(laughs(30)))
    with pytest.raises(ConfigError) as error:
        validate({"spacewalk": ["x" * 9] * 9999})
    assert len(str(error.value)) < 1100


def test_json_that_nests_too_deep_is_one_line() -> None:
    Path("a.json").write_text("[" * 100_000)
    with pytest.raises(StoreError, match=r"^a\.json is not JSON \(it is nested too deeply\): remove it"):
        read_json("a.json")
    with pytest.raises(ValueError, match="too deep"):
        parse_json(b'{"a":' * 100_000)


def _claims(size: int) -> Path:
    """Write a video whose only picture claims to be ``size`` pixels high and wide."""
    import struct
    import zlib

    av = pytest.importorskip("av")
    with av.open("claims.mov", "w") as container:
        stream = container.add_stream("png", rate=1)
        stream.width = stream.height = 16
        stream.pix_fmt = "rgb24"
        container.mux(stream.encode(av.VideoFrame.from_ndarray(np.zeros((16, 16, 3), np.uint8))))
        container.mux(stream.encode())
    content = Path("claims.mov").read_bytes()
    at = content.index(b"IHDR")
    head = b"IHDR" + struct.pack(">II", size, size) + content[at + 12 : at + 17]
    content = content[:at] + head + struct.pack(">I", zlib.crc32(head)) + content[at + 21 :]
    Path("claims.mov").write_bytes(content)
    return Path("claims.mov")


@pytest.mark.parametrize("size", [16_000, 60_000])
def test_a_picture_that_claims_to_be_huge_takes_no_more_than_its_limit(size: int) -> None:
    limits = Limits(memory_mb=300, least_s=60, s_per_video_s=4)
    with pytest.raises(MediaError) as error:
        list(killable(_sizes, _claims(size), limits=limits, duration_s=1))
    assert "\n" not in str(error.value)


def _sizes(path: Path) -> Iterator[tuple[int, int]]:
    for frame in frames(path):
        yield frame.size


# Secrets


SECRETS = {
    "DEEPGRAM_API_KEY": "deepgram-SECRET-0123456789",
    "OPENAI_API_KEY": "sk-SECRET-0123456789",
    "HF_TOKEN": "hf_SECRET0123456789",
    "AWS_ACCESS_KEY_ID": "AKIASECRET0123456789",
    "AWS_SECRET_ACCESS_KEY": "aws-SECRET-0123456789",
}


def held(folder: Path) -> list[str]:
    """Return the files that hold a secret, also as text in a table or by their name."""
    found = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.is_symlink():
            continue
        content = str(path).encode() + path.read_bytes()
        if path.suffix == ".parquet":
            table = read_table(path)
            content += f"{table.to_pylist()} {table.schema.metadata}".encode()
        if path.suffix == ".sqlite":
            with sqlite3.connect(path) as database:
                content += str([*database.iterdump()]).encode()
        if b"SECRET" in content:
            found.append(str(path))
    return found


def echo(answer: Reply) -> Callable[[Request], Reply]:
    """Answer first with errors that repeat the key, and then with an answer that does."""
    before = [500, 429]

    def reply(request: Request) -> Reply:
        key = request.headers["Authorization"].split()[1]
        if before:
            return Reply(before.pop(), f"no such account: {key}".encode(), {"X-Key": key})
        assert isinstance(answer.body, bytes)
        return Reply(200, answer.body.replace(b"KEY", key.encode()))

    return reply


def test_a_language_model_that_repeats_the_key_leaves_it_nowhere(
    tmp_path: Path, serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRETS["OPENAI_API_KEY"])
    monkeypatch.setattr("stepline.download.retry.BACKOFF_S", 0.001)
    asked = [[{"role": "user", "content": "?"}]]
    server = serve(echo(completion("your key is KEY")))
    service = Service(url=server.url, model="small", max_tokens=9, concurrency=1)
    assert ask(service, asked, tmp_path / "llm.sqlite", what="questions") == ["your key is ***"]  # type: ignore[arg-type]
    for status in (200, 400, 401, 503):
        refuses = serve(lambda request, status=status: Reply(status, request.headers["Authorization"].encode()))
        service = Service(url=refuses.url, model="small", max_tokens=9, concurrency=1)
        with pytest.raises((DownloadError, MissingError)) as error:
            ask(service, asked, tmp_path / "llm.sqlite", what="questions")  # type: ignore[arg-type]
        assert status == 200 or "***" in str(error.value)
        assert "SECRET" not in str(error.value)
    assert held(tmp_path) == []


@pytest.mark.slow
def test_a_run_leaves_secrets_nowhere(tmp_path: Path, serve: Callable[..., Server], clip: bytes) -> None:
    """Download by an address with a password and a token, recognise by a service that repeats the key, and report."""
    heard = serve(echo(listened([("It is KEY they said.", 0.5, 2.0)])))
    folder, home = tmp_path / "work", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    cookies = home / "cookies.txt"
    cookies.write_text("# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t4102444800\tsession\tSECRET\n")
    with serving(**{"a.mp4?token=SECRET": clip, "b.mp4?X-Amz-Signature=SECRET": b""}) as server:
        address = server.url.replace("//", "//user:SECRET@")
        addresses = [f"a,{address}/a.mp4?token=SECRET", f"b,{address}/b.mp4?X-Amz-Signature=SECRET"]
        (home / "videos.csv").write_text("\n".join(["video,url", *addresses, f"c,{address}/c.mp4", ""]))
        config = {
            "datasets": {"mine": {"kind": "list", "videos": str(home / "videos.csv"), "backbones": []}},
            "download": {"cookies": str(cookies)},
            "asr": {"engine": "deepgram", "deepgram": {"url": heard.url}},
        }
        (folder / "config.yaml").write_text(yaml.safe_dump(config))
        words = "--cores", "1", "results/mine/videos.csv", "results/mine/report.html", "--configfile", "config.yaml"
        done = snakemake(*words, folder=folder, **SECRETS)
        assert done.returncode == 0, done.stderr
    written = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    assert "datasets/mine/transcripts/deepgram/a.parquet" in written
    assert len(server.gets) >= 2
    assert "SECRET" not in done.stdout + done.stderr
    assert held(folder) == []


@pytest.fixture
def clip(tmp_path: Path) -> bytes:
    """A video of 3 s with sound."""
    from tests.media.clips import CFR_25, make

    sound = np.random.default_rng(0).integers(-3000, 3000, 48_000, dtype=np.int16)
    return make(tmp_path / "clip.mp4", CFR_25, audio=sound).read_bytes()
