import re
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import save_file

from stepline import config
from stepline.backbones import file
from stepline.backbones.beside import code_sha256
from stepline.benchmarks.spacewalk.benchmark import Spacewalk
from stepline.errors import ConfigError
from stepline.spec import ClipSpec, TextSpec
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "own-backbones.md").read_text(encoding="utf-8")
CODE = dict(re.findall(r"```python[ \w]*\n# (\w+\.py[ ,\w]*)\n(.*?)```", PAGE, re.DOTALL))
YAML = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def written(name: str, text: str) -> Path:
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    return path


def test_the_page_s_example_gives_vectors() -> None:
    path = written("mine.py", CODE["mine.py"])
    spec = file.spec("colours", path)
    assert isinstance(spec, ClipSpec)
    assert (spec.name, spec.architecture) == ("colours", "file")
    assert spec.weights_sha256 == code_sha256(path)
    assert [name for name, _ in spec.weights_sha256] == ["mine.py"]
    network = file.load(spec, {path.name: path})
    vectors = network(torch.ones(2, 3, spec.num_frames, 64, 64))
    torch.testing.assert_close(vectors, torch.ones(2, spec.dimension))
    written("mine.py", CODE["mine.py"].replace("(1, 4, 4)", "(4, 4, 1)"))
    assert file.spec("colours", path).id != spec.id, "a change of the file is another spec"


def without_torch() -> str:
    """Return the page's example with the function of arrays in place of the network."""
    return CODE["mine.py"].partition("def load")[0] + CODE["mine.py, without torch"]


def test_the_page_s_function_gives_the_vectors_of_the_network() -> None:
    written("network.py", CODE["mine.py"])
    written("function.py", without_torch())
    clips = np.random.default_rng(0).random((2, 3, 8, 64, 64), np.float32)
    network, function = (
        file.load(file.spec("mine", path), {path.name: path}) for path in (Path("network.py"), Path("function.py"))
    )
    np.testing.assert_allclose(function(clips), network(torch.from_numpy(clips)), rtol=1e-5)


def test_the_page_s_lines_enter_it_into_the_table() -> None:
    lines = YAML[-1]
    assert len(lines.splitlines()) <= 10
    written("mine.py", CODE["mine.py"])
    loaded = config.load(written("config.yaml", lines))
    plan = Spacewalk.configured(loaded, "spacewalk")
    assert plan.entries["2a-mine"].encoder == "mine"
    assert {table.name for table, line, _ in plan.lines() if line.entry == "2a-mine"} == {"2a"}
    assert loaded["spacewalk"]["video_encoders"] == [*loaded["backbones"]]
    name, declared = next(iter(loaded["backbones"].items()))
    assert file.spec(name, Path(declared["path"])).dimension == 48


def test_the_page_s_names_are_allowed() -> None:
    names = config.load(written("config.yaml", YAML[0]))["datasets"]["kitchen"]["backbones"]
    assert names == yaml.safe_load(YAML[0])["datasets"]["kitchen"]["backbones"]


def test_the_page_s_example_with_weights_follows_them() -> None:
    path = written("trained.py", CODE["trained.py"])
    specs = []
    for value in (0.0, 1.0):
        tensors = {"1.weight": torch.full((10, 768), value), "1.bias": torch.ones(10)}
        save_file(tensors, "trained.safetensors")
        specs.append(file.spec("trained", path))
        network = file.load(specs[-1], {path.name: path})
        assert network(torch.ones(1, 3, 1, 16, 16)).tolist() == [[768 * value + 1] * 10]
    assert specs[0] != specs[1]
    assert [name for name, _ in specs[0].weights_sha256] == ["trained.safetensors", "trained.py"]


TEXT = """
from stepline.spec import TextSpec
TEXT = TextSpec(
    name="", label="a", revision=1, architecture="", weights=(), licence="", max_tokens=9, output="text", dimension=48
)
def load_text(spec, files):
    return spec, sorted(files)
"""


def test_a_file_may_have_a_text_tower() -> None:
    path = written("mine.py", CODE["mine.py"] + TEXT)
    spec = file.text_spec("mine", path)
    assert isinstance(spec, TextSpec)
    assert (spec.name, spec.architecture, spec.max_tokens) == ("mine-text", "file", 9)
    weights = written("a.bin", "")
    for without, said in {
        TEXT.replace("def load_text", "def other"): "mine.py defines no load_text",
        TEXT.replace(
            "return spec,", "return absent,"
        ): r"mine.py: load_text\(\) failed: NameError: name 'absent' is not",
    }.items():
        written("mine.py", CODE["mine.py"] + without)
        with pytest.raises(ConfigError, match=said):
            file.load_text(file.text_spec("mine", path), {"mine.py": path})
    written("mine.py", CODE["mine.py"] + TEXT)
    assert file.load_text(spec, {"a.bin": weights, "mine.py": path}) == (spec, ["a.bin", "mine.py"])


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "mine.py defines no SPEC: see docs/own-backbones.md"),
        ("SPEC = {'fps': 1}", "mine.py: SPEC is a dict, not a stepline.spec.ClipSpec"),
        ("SPEC = (", r"mine.py cannot be imported: SyntaxError: '\(' was never closed \(mine.py, line 1\)"),
        ("raise RuntimeError('no')", "mine.py cannot be imported: RuntimeError: no"),
        (
            "import absent_library",
            "No module named 'absent_library'; move imports that only the computation needs into load",
        ),
        ("from stepline.spec import ClipSpec\nSPEC = ClipSpec(name='a')", "cannot be imported: TypeError: .*missing"),
        ("import sys\nsys.exit(3)", "mine.py cannot be imported: SystemExit: 3"),
        ("raise ValueError('a\\nb')", "mine.py cannot be imported: ValueError: a b$"),
        (CODE["mine.py"].replace("def load", "def other"), "mine.py defines no load: see docs/own-backbones.md"),
        (CODE["mine.py"].replace("fps=8", "fps=0"), "^mine.py: spec 'mine': fps is 0, not a finite number above 0"),
        (
            re.sub(r", \(\"centre_crop.*", ",),", CODE["mine.py"]),
            r"mine.py: the steps of SPEC, \(\('short_side', 64, 'pil_bicubic'\),\), keep the size of the video",
        ),
    ],
)
def test_a_file_that_does_not_fit_is_one_line(text: str, error: str) -> None:
    with pytest.raises(ConfigError, match=error) as caught:
        file.spec("mine", written("mine.py", text))
    assert "\n" not in str(caught.value)


def test_what_is_no_python_file_or_loads_no_network_is_one_line() -> None:
    written("mine.txt", CODE["mine.py"])
    Path("folder.py").mkdir()
    for name in ("absent.py", "mine.txt", "folder.py"):
        with pytest.raises(ConfigError, match=f"^{name} is not a Python file: `path` of a backbone must name one"):
            file.spec("mine", Path(name))
    path = written("mine.py", CODE["mine.py"].replace("return", "return 1, "))
    spec = file.spec("mine", path)
    with pytest.raises(ConfigError, match=r"mine.py: load\(spec, files\) returned a tuple: return a torch.nn.Module"):
        file.load(spec, {path.name: path})
    for line, said in {
        "raise ValueError('boo')": "ValueError: boo",
        "raise ValueError('a\\nb')": "ValueError: a b",
        "raise SystemExit(2)": "SystemExit: 2",
        "import absent_library": "ModuleNotFoundError: No module named 'absent_library'",
    }.items():
        written("mine.py", CODE["mine.py"].replace("from torch import nn", line))
        with pytest.raises(ConfigError, match=rf"^mine.py: load\(\) failed: {said}$") as caught:
            file.load(spec, {path.name: path})
        assert caught.value.__cause__ is not None
    written("mine.py", CODE["mine.py"].replace("def load", "def other"))
    with pytest.raises(ConfigError, match="mine.py defines no load"):
        file.load(spec, {path.name: path})
    with pytest.raises(ConfigError, match="mine.py defines no TEXT"):
        file.text_spec("mine", path)
