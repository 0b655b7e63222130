"""SPICE 1.0 itself: the Java program that the package ``pycocoevalcap`` brings (Anderson et al. 2016).

It parses with Stanford CoreNLP 3.6.0 and writes its scores with a JavaScript engine, here Rhino: Java has none since
version 15. The user fetches both, as the weights ``corenlp``. All of it runs as a program of its own.
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
    """Return what SPICE is missing of a Java runtime, the package ``pycocoevalcap`` and the weights ``corenlp``."""
    found = {
        Need("java"): shutil.which("java"),
        Need("package", "pycocoevalcap"): packaged(*_JAR),
        Need("weights", "corenlp"): locate("corenlp"),
    }
    return tuple(need for need, path in found.items() if path is None)


def spice(references: Sequence[str], candidates: Sequence[str]) -> NDArray[np.float64]:
    """Return (N,) F-scores in [0, 1] of each candidate's scene graph against that of its one reference.

    The texts are parsed as they are; coco-caption gives tokens without punctuation, with a space between them. SPICE of
    a corpus is the mean. The program starts once, takes up to 8 GB and seconds to load, and runs on one core. It keeps
    no cache of parses: with one, Java from 16 on refuses to run it.

    Raises ValueError where there are not as many references as candidates, MissingError where something is absent,
    SteplineError where the program fails.
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
