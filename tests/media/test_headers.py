import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stepline.media import headers as stage
from stepline.media.decode import MediaError, read_header
from stepline.media.headers import Headers
from stepline.media.process import Limits
from tests.media.clips import CFR_25, LIMITS, make


def pids(path: Path) -> Iterator[object]:
    """Answer for files by the process's id, except for some."""
    if path.stem == "hangs":
        time.sleep(60)
    if path.stem == "eats":
        raise MediaError(str(len(bytes(300 << 20))))
    raise MediaError(str(os.getpid()))
    yield


def answer(headers: Headers, path: str) -> str:
    with pytest.raises(MediaError) as error:
        headers(Path(path))
    return str(error.value)


def test_many_files_are_read_by_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path / "a.mp4", CFR_25)
    (tmp_path / "text.mp4").write_text("no video")
    with Headers(LIMITS) as headers:
        assert headers(path) == headers(Path("a.mp4")) == read_header(path)
        assert "cannot be decoded" in answer(headers, "text.mp4")
        assert "cannot be decoded" in answer(headers, "absent.mp4")
        assert headers(path) == read_header(path)
    monkeypatch.setattr(stage, "_read", pids)
    with Headers(LIMITS) as headers:
        [by] = {answer(headers, "a.mp4") for _ in range(6)}
    assert by != str(os.getpid())


def test_a_file_that_takes_too_much_is_an_error_and_the_next_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "_read", pids)
    patient = Limits(memory_mb=100, least_s=120, s_per_video_s=4)
    with Headers(patient) as headers:
        first = answer(headers, "a.mp4")
        headers._decoder.limits = replace(patient, least_s=1)
        assert answer(headers, "hangs.mp4") == "decoding takes longer than 1 s: see media.limits"
        headers._decoder.limits = patient
        assert answer(headers, "a.mp4") not in (first, "")
        assert answer(headers, "eats.mp4") == "needs more than 100 MB: see media.limits"
        assert answer(headers, "a.mp4").isdecimal()
