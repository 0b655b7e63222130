"""SPICE 1.0: the Java program in the package ``pycocoevalcap`` (Anderson et al. 2016).

It parses with Stanford CoreNLP 3.6.0 and writes its scores with a JavaScript engine. Java has had no such engine since
version 15, so Rhino is used. The user downloads both as the weights ``corenlp``. SPICE runs as a separate process.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepline.backbones.weights import locate
from stepline.errors import SteplineError
from stepline.io import read_json
from stepline.metrics.java import complaint, java, packaged
from stepline.needs import Need
from stepline.pipeline.fill import require

_JAR = "spice", "spice-1.0.jar"


def missing() -> tuple[Need, ...]:
    """Return which of a Java runtime, the package ``pycocoevalcap`` and the weights ``corenlp`` are missing."""
    found = {
        Need("java"): shutil.which("java"),
        Need("package", "pycocoevalcap"): packaged(*_JAR),
        Need("weights", "corenlp"): locate("corenlp"),
    }
    return tuple(need for need, path in found.items() if path is None)


def spice(references: Sequence[str], candidates: Sequence[str]) -> NDArray[np.float64]:
    """Return the (N,) F-scores in [0, 1] of each candidate's scene graph against the graph of its one reference.

    The texts are parsed unchanged; coco-caption passes tokens without punctuation, joined by spaces. The corpus score
    is the mean. The process starts once, takes seconds and up to 8 GB, and runs on one core. Its cache of parses is
    off, because Java 16 and later refuse to run it.

    Raises ValueError if the numbers of references and candidates differ, MissingError if a requirement is missing, and
    SteplineError if the process fails.
    """
    pairs = zip(references, candidates, strict=True)
    asked = [{"image_id": i, "test": ours, "refs": [theirs]} for i, (theirs, ours) in enumerate(pairs)]
    require("SPICE", missing())
    parser, program = locate("corenlp"), packaged(*_JAR)
    assert parser is not None
    assert program is not None
    # The program's jar names the libraries beside it.
    class_path = os.pathsep.join(str(jar.absolute()) for jar in (*parser.values(), program))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "captions.json").write_text(json.dumps(asked))
        words = ["edu.anu.spice.SpiceScorer", "captions.json", "-out", "scores.json", "-threads", "1", "-silent"]
        done = subprocess.run(
            [*java("8G"), "-XX:ActiveProcessorCount=1", "-cp", class_path, *words],
            cwd=folder,
            capture_output=True,
            check=False,
        )
        scores = Path(folder, "scores.json")
        if done.returncode or not scores.is_file():
            raise SteplineError(f"SPICE's Java process ended with status {done.returncode}: {complaint(done.stderr)}")
        values = {each["image_id"]: each["scores"]["All"]["f"] for each in read_json(scores)}
    return np.array([values[i] for i in range(len(candidates))], dtype=np.float64)
