"""The language model's entry against a server on this machine: what it is shown, and what becomes of its answers."""

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("av")
image = pytest.importorskip("PIL.Image")

from stepline import paths  # noqa: E402
from stepline.benchmark import UnavailableError  # noqa: E402
from stepline.benchmarks.oepp.methods import vlm  # noqa: E402
from stepline.benchmarks.oepp.methods.vlm import LanguageModel  # noqa: E402
from stepline.benchmarks.oepp.windows import Window  # noqa: E402
from stepline.datasets.oepp import Step  # noqa: E402
from stepline.metrics.plans import NO_ACTION  # noqa: E402
from stepline.needs import Need  # noqa: E402
from tests.llm_answers import KEY, completion  # noqa: E402
from tests.media.clips import make  # noqa: E402
from tests.server import Request, Server  # noqa: E402

POOLS = {"base": ("peel", " cut", "cut  it"), "novel": ("cut it", "peel")}
N_SECONDS = 8


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two clips of 8 s, 25 brighter in each second: one grey, from 30 on, one without green."""

    def clip(path: Path, *, green: bool) -> Path:
        def picture(index: int) -> Any:
            shown = np.full((360, 640, 3), 30 + 25 * (index // 2), np.uint8)
            shown[..., 1] *= green
            return shown

        return make(path, [Fraction(i, 2) for i in range(2 * N_SECONDS)], picture=picture)

    folder = tmp_path_factory.mktemp("videos")
    return {video: clip(folder / f"{video}.mp4", green=video == "COIN_a") for video in ("COIN_a", "COIN_b")}


@pytest.fixture
def serve(serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Server]:
    """Start a server whose model answers as told."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return lambda answer: serve(lambda request: completion(answer(request)))


def inputs(server: Server, videos: dict[str, Path], images: int, used: Mapping[str, Sequence[Window]]) -> Any:
    llm = {"url": server.url, "model": "seeing", "max_tokens": 300, "concurrency": 2}
    entry = SimpleNamespace(
        id="vlm",
        settings={"images": images},
        seeds=(0,),
        splits=tuple(used),
        trained=False,
    )
    return SimpleNamespace(
        entry=entry,
        options={"llm": llm},
        pool=POOLS.__getitem__,
        video_file=videos.get,
        used=used.__getitem__,
        late=lambda split: [],
        splits=lambda stage: [],
    )


def plans(server: Server, videos: dict[str, Path], images: int, split: str, asked: Sequence[Window]) -> Any:
    return LanguageModel().plans(inputs(server, videos, images, {split: asked}), split, asked, None)


def window(video: str, start_s: float, end_s: float, n_actions: int = 3) -> Window:
    start, end = (Step(action="peel", start_s=at, end_s=at) for at in (start_s, end_s))
    return Window(video=video, index=0, actions=("peel",) * n_actions, start=start, end=end, padded=False)


def shown(request: Request) -> list[Any]:
    """Return the pictures of a request."""
    urls = [part["image_url"]["url"] for part in request.json["messages"][1]["content"] if part["type"] == "image_url"]
    assert all(url.startswith("data:image/jpeg;base64,") for url in urls)
    return [image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) for url in urls]


def seconds(request: Request) -> list[tuple[str, int]]:
    """Return the video and second of each picture of a request."""
    middles = [picture.getpixel((200, 100)) for picture in shown(request)]
    return [("COIN_a" if abs(r - g) < 15 else "COIN_b", round((r - 30) / 25)) for r, g, _ in middles]


@pytest.mark.parametrize(("images", "start", "end"), [(1, [1], [6]), (3, [1, 2, 3], [4, 5, 6])])
def test_the_model_sees_start_and_end(
    serve: Callable[..., Server], videos: dict[str, Path], images: int, start: list[int], end: list[int]
) -> None:
    server = serve(lambda _: "1. cut it\n2. Peel\n3. cut")
    assert plans(server, videos, images, "base", [window("COIN_a", 1.5, 6.5)]) == [(2, 0, 1)]
    (request,) = server.requests
    assert request.json["model"] == "seeing"
    assert [message["role"] for message in request.json["messages"]] == ["system", "user"]
    assert seconds(request) == [("COIN_a", t_s) for t_s in start + end]
    assert all(picture.format == "JPEG" and max(picture.size) <= 512 for picture in shown(request))
    assert '["peel", " cut", "cut  it"]' in request.json["messages"][0]["content"]
    assert "The number of actions is 3." in request.json["messages"][1]["content"][0]["text"]
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in str(request.json)
    assert KEY.encode() not in paths.answers().read_bytes()


def test_plans_stand_in_the_order_of_the_windows_and_videos_are_decoded_once(
    serve: Callable[..., Server], videos: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: Request) -> str:
        (video, first_s), _ = seconds(request)
        return f"1. {'peel' if video == 'COIN_a' else 'cut it'}\n2. {'peel' if first_s % 2 else 'cut it'}"

    decoded = []
    real = vlm.pictures
    monkeypatch.setattr(vlm, "pictures", lambda path, times: decoded.append(path.stem) or real(path, times))
    asked = [window(video, at, 6, 2) for at in range(4) for video in ("COIN_b", "COIN_a")]
    server = serve(answer)
    made = plans(server, videos, 1, "novel", asked)
    assert made == [(int(each.video == "COIN_a"), int(each.start.start_s % 2)) for each in asked]
    assert len(server.requests) == len(asked)
    assert sorted(decoded) == ["COIN_a", "COIN_b"]


def test_windows_of_a_broken_video_are_left_out_and_the_log_says_why(
    serve: Callable[..., Server], videos: dict[str, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = tmp_path / "COIN_c.mp4"
    broken.write_bytes(videos["COIN_a"].read_bytes()[:2000])
    server = serve(lambda _: "1. peel")
    asked = [window("COIN_c", 0, 3, 1), window("COIN_a", 0, 3, 1), window("COIN_c", 1, 3, 1)]
    assert plans(server, {**videos, "COIN_c": broken}, 1, "novel", asked) == [None, (1,), None]
    assert len(server.requests) == 1
    of = inputs(server, {**videos, "COIN_c": broken}, 1, {"novel": asked})
    assert [(p.video, p.plan) for p in LanguageModel().predict(of, [])] == [("COIN_a", (1,))]
    assert "COIN_c.mp4: " in caplog.text
    assert "its windows are left out: replace the file" in caplog.text


def test_what_a_damaged_video_lacks_is_counted(
    serve: Callable[..., Server], videos: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = vlm.pictures
    lost_s = {"COIN_a": 0.0, "COIN_b": 2.5}
    monkeypatch.setattr(vlm, "pictures", lambda path, times: (real(path, times)[0], lost_s[path.stem]))
    asked = [window(video, 0, 3, 1) for video in ("COIN_a", "COIN_b")]
    of = inputs(serve(lambda _: "1. peel"), videos, 1, {"novel": asked})
    of.in_part = {}
    LanguageModel().plans(of, "novel", asked, None)
    assert of.in_part == {"COIN_b": 2.5}


def test_a_split_of_broken_videos_alone_needs_videos(
    serve: Callable[..., Server], videos: dict[str, Path], tmp_path: Path
) -> None:
    broken = tmp_path / "COIN_c.mp4"
    broken.write_bytes(b"no video")
    used = {"base": [window("COIN_a", 0, 3, 1)], "novel": [window("COIN_c", 0, 3, 1)]}
    of = inputs(serve(lambda _: "1. peel"), {**videos, "COIN_c": broken}, 1, used)
    with pytest.raises(UnavailableError) as raised:
        list(LanguageModel().predict(of, []))
    assert raised.value.needs == (Need("videos", "openevent"),)


def test_what_was_not_understood_is_counted(serve: Callable[..., Server], videos: dict[str, Path]) -> None:
    said = {0: "1. peel 2. cut it", 1: "1. peel 2. fly", 2: "I see nothing.", 3: "1. cut it"}
    asked = [window("COIN_a", at, 6, 2) for at in range(4)]
    of = inputs(serve(lambda request: said[seconds(request)[0][1]]), videos, 1, {"base": asked[:1], "novel": asked[1:]})
    asking = LanguageModel()
    made = [each.plan for each in asking.predict(of, [])]
    assert made == [(0, 2), (1, NO_ACTION), (NO_ACTION, NO_ACTION), (0, NO_ACTION)]
    assert asking.selection == "answers not understood: 1 of 4; actions missing or not in the pool: 4 of 8"
