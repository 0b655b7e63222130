"""Checkpoints as others publish them, and files that would like to run code."""

import argparse
import functools
import os
import pickle
import sys
import types
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from safetensors.torch import save_file

from stepline.backbones.checkpoint import load, looks_like, read, state
from stepline.errors import StoreError
from stepline.pickled import Stub

LAYOUTS = pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
RAN = "ran"
"""The file that a checkpoint's code would write to the working folder."""


def save(held: Any, path: Path, zipped: bool = True) -> Path:
    torch.save(held, path, _use_new_zipfile_serialization=zipped)
    return path


def with_pickle(path: Path, pickled: bytes, zipped: bool) -> Path:
    """Write a checkpoint whose object is ``pickled``."""
    if zipped:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/data.pkl", pickled)
            archive.writestr("archive/version", "3\n")
    else:
        head = [pickle.dumps(each, 2) for each in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})]
        path.write_bytes(b"".join(head) + pickled + pickle.dumps([], 2))
    return path


class Calls:
    """Pickles as a call of any function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


class Weak:
    """Pickles as a call of ``function`` by the opcodes that set a state."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def __reduce__(self) -> Any:
        return OrderedDict, (), self.state


TOUCH = f"touch {RAN}"
EVIL = {
    "a call": pickle.dumps(Calls(os.system, TOUCH), 2),
    "a call beside weights": pickle.dumps({"state_dict": {}, "arch": Calls(os.system, TOUCH)}, 4),
    "eval": pickle.dumps(Calls(eval, f"open({RAN!r}, 'w')"), 2),
    "a partial that something calls": pickle.dumps(Calls(functools.partial(os.system, TOUCH)), 2),
    "a nested name": b"\x80\x04\x8c\x02os\x8c\x0epath.os.system\x93\x8c\x09touch ran\x85R.",
    "of protocol 0": f"cos\nsystem\n(S'{TOUCH}'\ntR.".encode(),
    "an instance": f"(S'{TOUCH}'\nios\nsystem\n.".encode(),
    "an object": f"(cos\nsystem\nS'{TOUCH}'\no.".encode(),
    "a state of a stub": b"\x80\x02cparse_config\nConfigParser\n)\x81}(X\x0c\x00\x00\x00__setstate__cos\nsystem\nub.",
    "a state of an allowed class": pickle.dumps(Weak({"items": Calls(os.system, TOUCH)}), 2),
    "an import": b"\x80\x02cthis_module_writes\nanything\n)R.",
}


@LAYOUTS
@pytest.mark.parametrize("pickled", EVIL.values(), ids=list(EVIL))
def test_nothing_that_a_file_names_is_run(
    pickled: bytes, zipped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "this_module_writes.py").write_text(f"open({RAN!r}, 'w')\ndef anything(): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    path = with_pickle(tmp_path / "evil.pt", pickled, zipped)
    read(path)
    with pytest.raises(StoreError, match="holds no tensors by name"):
        state(path, inside=("state_dict",))
    assert not Path(RAN).exists()
    assert "this_module_writes" not in sys.modules


@LAYOUTS
def test_no_class_or_function_of_this_process_is_changed(zipped: bool, tmp_path: Path) -> None:
    before = torch._utils._rebuild_tensor_v2.__defaults__
    for name in (b"ctorch._utils\n_rebuild_tensor_v2\n", b"ccollections\nOrderedDict\n", b"ctorch\nFloatStorage\n"):
        pickled = b"\x80\x02" + name + b"N}X\x0c\x00\x00\x00__defaults__K\x01s\x86b."
        with pytest.raises(StoreError, match="evil.pt is damaged or no checkpoint"):
            read(with_pickle(tmp_path / "evil.pt", pickled, zipped))
    assert torch._utils._rebuild_tensor_v2.__defaults__ == before


@LAYOUTS
def test_a_tensor_ends_within_its_bytes(zipped: bool, tmp_path: Path) -> None:
    def tensor(*size: int) -> Any:
        storage = torch.arange(4, dtype=torch.float32)._typed_storage()
        made = Calls(torch._utils._rebuild_tensor_v2, storage, 1, size, (1,), False, OrderedDict())
        return {"tensor": made, "stub": Calls(os.getcwd)}

    assert read(save(tensor(3), tmp_path / "a.pt", zipped))["tensor"].tolist() == [1, 2, 3]
    with pytest.raises(StoreError, match="out of bounds"):
        read(save(tensor(4), tmp_path / "a.pt", zipped))


@pytest.fixture
def egovlp(monkeypatch: pytest.MonkeyPatch) -> Any:
    """An object of the class that EgoVLP's checkpoint holds; its module is gone when it is read."""
    module = types.ModuleType("parse_config")

    class ConfigParser:
        def __init__(self) -> None:
            self.config = OrderedDict(name="EgoVLP", places=[Path("logs"), {1, 2}], levels={"a": 3 + 1j})

    ConfigParser.__module__, ConfigParser.__qualname__ = "parse_config", "ConfigParser"
    module.ConfigParser = ConfigParser  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "parse_config", module)
    return ConfigParser()


TENSORS = {
    "a.weight": torch.arange(6, dtype=torch.float16).reshape(2, 3).T,
    "a.bias": torch.tensor([1.5, 2.5, -3.5], dtype=torch.bfloat16),
    "steps": torch.tensor(7),
    "none": torch.empty(0, 3),
    "part": torch.arange(10, dtype=torch.float64)[2:8:3],
    "small": torch.tensor([1.5, -3]).to(torch.float8_e4m3fn),
    "unsigned": torch.tensor([1, 2], dtype=torch.uint16),
    "complex": torch.tensor([1 + 2j]),
}


def equal(found: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return found.keys() == wanted.keys() and all(
        found[key].dtype == wanted[key].dtype and torch.equal(found[key], wanted[key]) for key in wanted
    )


@LAYOUTS
def test_classes_that_are_unknown_are_stubs(
    zipped: bool, egovlp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = {
        "state_dict": OrderedDict((f"module.{name}", tensor) for name, tensor in TENSORS.items()),
        "config": egovlp,
        "optimizer": {"state": {0: {"exp_avg": torch.ones(3)}}},
        "args": argparse.Namespace(task=argparse.Namespace(lr=[1e-3])),
        "parameter": torch.nn.Parameter(torch.ones(2)),
    }
    path = save(held, tmp_path / "EgoVLP_PT_BEST.pth", zipped)
    monkeypatch.delitem(sys.modules, "parse_config")
    found = read(path)
    assert isinstance(found["config"], Stub)
    assert isinstance(found["args"], Stub)
    assert found["config"].name == ("parse_config", "ConfigParser")
    assert found["parameter"].tolist() == [1, 1]
    assert found["optimizer"]["state"][0]["exp_avg"].tolist() == [1, 1, 1]
    assert equal(state(path, inside=("state_dict",), prefix="module."), TENSORS)


def test_lightnings_layout_and_its_other_parts(tmp_path: Path) -> None:
    """InternVideo-MM-L-14.ckpt: clip.* is the model, the rest of it is another."""
    held = {f"clip.{name}": tensor for name, tensor in TENSORS.items()} | {"caption_decoder.weight": torch.ones(2)}
    lightning = {"state_dict": held, "callbacks": {}, "hyper_parameters": argparse.Namespace(lr=1)}
    path = save(lightning, tmp_path / "InternVideo-MM-L-14.ckpt")
    assert equal(state(path, inside=("state_dict",), prefix="clip."), TENSORS)
    assert equal(state(path, inside=("state_dict",)), held)
    with pytest.raises(
        StoreError, match="holds no tensors whose names begin with 'visual.'; it looks like no known model"
    ):
        state(path, inside=("state_dict",), prefix="visual.")


def test_wrappers_are_followed_by_their_order_and_bare_tensors_and_safetensors_are_read(tmp_path: Path) -> None:
    path = save({"model": {"state_dict": TENSORS, "model": {"x": torch.ones(1)}}, "epoch": 3}, tmp_path / "a.pt")
    assert equal(state(path, inside=("state_dict", "model")), TENSORS)
    bare = save(TENSORS, tmp_path / "bare.pt")
    before = bare.read_bytes()
    found = state(bare, inside=("state_dict", "model"))
    assert equal(found, TENSORS)
    found["a.bias"].zero_()
    assert bare.read_bytes() == before
    tensors = {name: tensor.contiguous() for name, tensor in TENSORS.items()}
    save_file(tensors, tmp_path / "model.safetensors")
    assert equal(state(tmp_path / "model.safetensors"), tensors)


def test_programs_are_read_as_their_tensors(tmp_path: Path) -> None:
    """OpenAI publishes CLIP as a TorchScript archive."""

    class Visual(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = torch.nn.Conv2d(3, 1024, 14, bias=False)
            self.positional_embedding = torch.nn.Parameter(torch.ones(257, 1024))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y: torch.Tensor = self.conv1(x)
            return y

    program = torch.nn.Sequential(OrderedDict(visual=Visual()))
    with pytest.warns(DeprecationWarning, match="torch.jit"):
        torch.jit.trace(program, torch.ones(1, 3, 14, 14)).save(str(tmp_path / "ViT-L-14.pt"))
    with pytest.raises(StoreError, match="holds no tensors by name; it looks like OpenAI's CLIP ViT-L/14$"):
        state(tmp_path / "ViT-L-14.pt")


NONE = "is not a PyTorch checkpoint, or is incomplete: get it again"
NO_CHECKPOINTS = {
    b"": "is empty: get it again",
    b" \n\t": "is empty: get it again",
    b"<!DOCTYPE html><html><title>Google Drive - Virus scan warning</title>": "is a web page (Google Drive sends",
    b"\n<html>": "is a web page (Google Drive sends",
    b"version https://git-lfs.github.com/spec/v1\noid sha256:0": "is a Git LFS pointer",
    b"hello, world": NONE,
    b".": NONE,
    b"PK\x03\x04 and no more": "is cut off: it ends after 16 bytes: get it again",
    pickle.dumps({"x": 1}): NONE,
}


@pytest.mark.parametrize("suffix", ["pth", "safetensors"])
@pytest.mark.parametrize(("content", "line"), NO_CHECKPOINTS.items())
def test_what_is_no_checkpoint_is_one_line(content: bytes, line: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(content)
    with pytest.raises(StoreError) as error:
        read(path)
    pickled = line == NONE or "cut off" in line
    expected = "is damaged or no checkpoint (" if pickled and suffix == "safetensors" else line
    assert str(error.value).startswith(f"{path} {expected}")
    assert "\n" not in str(error.value)


@LAYOUTS
def test_a_file_that_ends_early_is_one_line_wherever_it_ends(zipped: bool, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "a.pt")
    whole = save({"x": torch.arange(100), "args": argparse.Namespace(a=1)}, tmp_path / "a.pt", zipped).read_bytes()
    for length in range(1, len(whole), 37):
        (tmp_path / "a.pt").write_bytes(whole[:length])
        late = f"is cut off: it ends after {length} bytes" if zipped else r"is damaged or no checkpoint \(.+\)"
        said = late if length >= 38 else NONE.partition(":")[0]
        with pytest.raises(StoreError, match=f"a.pt {said}: get it again$"):
            read(tmp_path / "a.pt")


def network() -> Any:
    return torch.nn.Sequential(OrderedDict(fc=torch.nn.Linear(2, 3), norm=torch.nn.BatchNorm1d(3)))


def filled(**others: Any) -> dict[str, Any]:
    tensors = {name: tensor + 1 for name, tensor in network().state_dict().items()} | others
    return {name: tensor for name, tensor in tensors.items() if tensor is not None}


def fill(tensors: dict[str, Any], ignore: tuple[str, ...] = ()) -> Any:
    into = network()
    load(into, tensors, model="the model", path=Path("a.pt"), ignore=ignore)
    return into.state_dict()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_floats_become_those_of_the_network(dtype: Any) -> None:
    half = {name: value.to(dtype) if value.is_floating_point() else value for name, value in filled().items()}
    assert equal(fill(half), {name: value.to(network().state_dict()[name].dtype) for name, value in half.items()})


def test_many_wrong_names_are_counted_and_extras_are_allowed_by_pattern_only() -> None:
    with pytest.raises(StoreError, match=r"^a.pt is not the model: 7 missing \(fc.weight, fc.bias, norm.weight, ...\)"):
        fill({})
    tensors = filled(**{"head.weight": torch.ones(2), "head2.bias": torch.ones(2)})
    assert torch.equal(fill(tensors, ("head.*", "head2.*"))["fc.weight"], tensors["fc.weight"])
    with pytest.raises(
        StoreError, match=r"^a.pt is not the model: 1 unexpected \(head2.bias\); it looks like no known model"
    ):
        fill(tensors, ("head.*",))


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda own: {f"module.{name}": value for name, value in own.items()},
        lambda own: {f"_orig_mod.module.{name}": value for name, value in own.items()},
        lambda own: {"state_dict": {f"model.{name}": value for name, value in own.items()}, "epoch": 3},
        lambda own: {f"backbone.{name}": value for name, value in own.items()} | {"head.fc.weight": torch.zeros(3, 2)},
        lambda own: {f"encoder.{name}": value for name, value in own.items()} | {"decoder.weight": torch.ones(1)},
        lambda own: {"ema": own, "step": torch.tensor(3)},
        lambda own: {"model_ema": {f"module.{name}": value for name, value in own.items()} | {"n": torch.tensor(3)}},
        lambda own: {"student": {name: value[:1] for name, value in own.items() if value.ndim}, "teacher": own},
    ],
)
def test_a_network_within_another_is_found(wrapped: Any, tmp_path: Path) -> None:
    own = filled()
    assert equal(fill(state(save(wrapped(own), tmp_path / "a.pt"), inside=("state_dict", "model"))), own)


def test_what_is_wrong_is_one_line_with_the_prefix_and_both_shapes() -> None:
    tensors = filled(**{"fc.weight": torch.ones(3, 5), "fc.bias": None})
    odd = {"x": torch.ones(1), "norm.running_mean": torch.ones(3, dtype=torch.int8)}
    deeper = filled(**{"fc2.weight": torch.ones(3, 5)})
    shapes, other = "fc.weight is [3, 5] floats, not [3, 2] floats", "norm.running_mean is [3] int8, not [3] floats"
    for held, said in (
        (
            tensors | odd,
            f"1 missing (fc.bias); 1 unexpected (x); 2 of another form ({shapes}, {other})",
        ),
        (
            {f"module.{name}": value for name, value in tensors.items()} | {"head.weight": torch.ones(1)},
            f"after the prefix 'module.', 1 missing (fc.bias); 1 of another form ({shapes})",
        ),
        (wrapped(deeper, "model."), "after the prefix 'model.', 1 unexpected (fc2.weight)"),
    ):
        with pytest.raises(StoreError) as error:
            fill(held)
        assert str(error.value).startswith(f"a.pt is not the model: {said}; it looks like ")


@LAYOUTS
def test_a_tensor_with_more_values_than_are_stored_is_refused(zipped: bool, tmp_path: Path) -> None:
    path = save({"a": torch.zeros(1).expand(1000)}, tmp_path / "a.pt", zipped)
    with pytest.raises(StoreError, match="a tensor has more values than its storage, which has 1"):
        read(path)


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_tensors_without_values_and_negated_ones_are_refused(tmp_path: Path) -> None:
    quantized = torch._empty_affine_quantized((2, 3), scale=1, zero_point=0, dtype=torch.qint8)
    for odd in (torch.empty(2, 3, device="meta"), torch.eye(3).to_sparse(), quantized):
        with pytest.raises(StoreError, match="a.pt: fc.weight has no values, or is sparse"):
            state(save({"fc.weight": odd, "fc.bias": torch.ones(3)}, tmp_path / "a.pt"))
    torch.save(torch.ones(2, dtype=torch.complex64).conj().imag, tmp_path / "a.pt")
    with pytest.raises(StoreError, match="a tensor is stored with {'neg': True}"):
        read(tmp_path / "a.pt")


def test_two_networks_in_a_file_are_not_chosen_from() -> None:
    both = {f"{which}.{name}": value for which in ("encoder_q", "encoder_k") for name, value in filled().items()}
    line = (
        "a.pt has the names of the model 2 times, as after the prefixes 'encoder_k.' and 'encoder_q.': keep one of them"
    )
    with pytest.raises(StoreError, match=f"^{line}$"):
        fill(both)


def of(**shapes: tuple[int, ...]) -> dict[str, Any]:
    return {name.replace("__", "."): torch.empty(shape, device="meta") for name, shape in shapes.items()}


def wrapped(tensors: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {f"{prefix}{name}": tensor for name, tensor in tensors.items()}


TIMESFORMER = of(blocks__0__temporal_fc__weight=(768, 768), time_embed=(1, 8, 768))
INTERNVIDEO = of(visual__transformer__temporal_cls_token=(1, 1, 1024), visual__conv1__weight=(1024, 3, 1, 14, 14))
EVA = of(visual__pos_embed=(1, 257, 1408))
WORDS = of(embeddings__word_embeddings__weight=(30522, 768))
CLIP4CAPTION = of(
    visual__embeddings__word_embeddings__weight=(768, 512),
    visual__encoder__layer__0__attention__self__query__weight=(768, 768),
    decoder__embeddings__word_embeddings__weight=(30522, 768),
    normalize_video__visual_norm2d__weight=(512,),
)
LOOKS: dict[str, Any] = {
    "S3D MIL-NCE (s3d_howto100m.pth)": of(conv1__conv1__weight=(64, 24, 2, 4, 4), fc__weight=(512, 1024)),
    "TimeSformer of HowTo100M by distant supervision": {
        "model_state": wrapped(TIMESFORMER | of(head__weight=(10588, 768)), "model."),
        "cfg": "",
    },
    "TimeSformer trained to classify": {"model_state": TIMESFORMER | of(head__weight=(400, 768))},
    "TimeSformer without its head": TIMESFORMER,
    "InternVideo MM-L-14, pre-trained": {"state_dict": wrapped(INTERNVIDEO, "clip.")},
    "InternVideo MM-L-14, fine-tuned": wrapped(INTERNVIDEO, "clip."),
    "InternVideo MM-L-14": INTERNVIDEO,
    "EVA-01-CLIP g/14 (eva_clip_psz14.pt)": {"module": wrapped(EVA | of(text__text_projection=(768, 1024)), "module.")},
    "EVA01_CLIP_g_14_plus": EVA | of(text__text_projection=(1024, 1024)),
    "open_clip's copy of EVA-01-CLIP": of(visual__trunk__pos_embed=(1, 257, 1408)),
    "EgoVLP or Frozen in Time": {
        "state_dict": of(module__video_model__temporal_embed=(1, 4, 768), module__txt_proj__1__weight=(256, 768))
    },
    "VideoCLIP": {"model": of(mmmodel__video_encoder__videomlp__linear1__weight=(768, 512))},
    "OpenAI's CLIP ViT-L/14": of(visual__conv1__weight=(1024, 3, 14, 14), visual__positional_embedding=(257, 1024)),
    "a CLIP of another size": of(visual__conv1__weight=(768, 3, 32, 32), text_projection=(512, 512)),
    "an MPNet sentence encoder": of(
        embeddings__word_embeddings__weight=(30527, 768), encoder__relative_attention_bias__weight=(32, 12)
    ),
    "a MiniLM sentence encoder": of(embeddings__word_embeddings__weight=(30522, 384)),
    "HiREST's joint model": wrapped(CLIP4CAPTION, "clip4cap_model.") | of(segment_predictor__0__weight=(1, 768)),
    "CLIP4Caption": CLIP4CAPTION,
    "BERT": WORDS | of(encoder__layer__0__attention__self__query__weight=(768, 768)),
    "DistilBERT": WORDS | of(transformer__layer__0__attention__q_lin__weight=(768, 768)),
    "no known model (its first name is 'x')": of(x=(3,)),
    "no known model (its first name is 'absent')": [1, 2],
}


@pytest.mark.parametrize(("model", "held"), LOOKS.items(), ids=list(LOOKS))
def test_a_wrong_file_is_called_by_its_model(model: str, held: Any) -> None:
    assert looks_like(held).startswith(f"it looks like {model}")


def test_torchvisions_s3d_is_known() -> None:
    from stepline.backbones.torchvision import make_importable

    make_importable()
    from torchvision.models.video import s3d

    with torch.device("meta"):
        assert looks_like(s3d().state_dict()) == "it looks like torchvision's S3D of Kinetics"


FOLDERS = {
    "s3d": "S3D MIL-NCE",
    "timesformer": "TimeSformer of HowTo100M by distant supervision",
    "evaclip": "EVA-01-CLIP g/14 (eva",
    "internvideo": "InternVideo MM-L-14",
    "videoclip": "VideoCLIP",
    "egovlp": "EgoVLP",
    "hirest_joint": "HiREST's joint model",
}


@pytest.mark.parametrize(("folder", "model"), FOLDERS.items())
def test_the_references_names_are_known(folder: str, model: str, parity: Path) -> None:
    from stepline.io import read_json

    manifest = read_json(parity / folder / "manifest.json")
    keys = manifest.get("keys") or manifest["configs"]["full"]["keys"]
    held = {name: torch.empty(shape, device="meta") for name, (shape, *_) in keys.items()}
    assert looks_like(held).startswith(f"it looks like {model}")


def test_what_holds_itself_is_looked_at_once() -> None:
    held: dict[str, Any] = {"x": torch.ones(1)}
    held["y"] = held
    assert looks_like(held).endswith("(its first name is 'x')")
