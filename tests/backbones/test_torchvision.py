"""A user's file that imports timm, next to a build of torch for which torchvision's operators were not compiled."""

import subprocess
import sys
from pathlib import Path

import pytest

SPEC = """
from stepline.spec import ClipSpec

SPEC = ClipSpec(
    name="x", label="a", revision=1, architecture="", weights=(), licence="", num_frames=1,
    steps=(("exact", 8, 8, "bilinear"),), mean=(0, 0, 0), std=(1, 1, 1), output="o", dimension=3,
)
"""
FILES = {
    "plain.py": "def load(spec, files):\n    return len\n",
    "within.py": "def load(spec, files):\n    import timm\n    return timm.create_model('test_vit').eval()\n",
    "above.py": "import timm\ndef load(spec, files):\n    return timm.create_model('test_vit').eval()\n",
}
PROGRAM = """
import sys
from importlib.util import find_spec
from pathlib import Path
from stepline.backbones import file

paths = [Path(name) for name in sys.argv[1:]]
specs = [file.spec("mine", path) for path in paths[:-1]]
file.load(specs[0], {"plain.py": paths[0]})
print(find_spec("torchvision") is not None, "torch" in sys.modules)
networks = [file.load(file.spec("mine", path), {path.name: path}) for path in paths[1:]]
print([type(network).__name__ for network in networks])
"""


@pytest.mark.slow
def test_a_file_may_import_timm_and_one_without_it_needs_no_torch() -> None:
    for name, code in FILES.items():
        Path(name).write_text(SPEC + code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *FILES], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.splitlines() == ["True False", "['VisionTransformer', 'VisionTransformer']"], done.stderr
