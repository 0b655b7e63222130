"""METEOR 1.5: the Java program in the package ``pycocoevalcap``, with its synonyms and paraphrases."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import numpy as np

from stepline.errors import MissingError, SteplineError
from stepline.metrics.captions import Scores, Tokens, check_segments
from stepline.metrics.java import complaint, java, packaged
from stepline.needs import Need

_JAR = "meteor", "meteor-1.5.jar"


def missing() -> tuple[Need, ...]:
    """Return which of a Java runtime and the package ``pycocoevalcap`` are missing."""
    found = {Need("java"): shutil.which("java"), Need("package", "pycocoevalcap"): packaged(*_JAR)}
    return tuple(need for need, path in found.items() if path is None)


class Meteor:
    """A METEOR process for English, with ``-norm`` as in coco-caption. It runs for the length of a ``with`` block.

    Starting it takes seconds and up to 2 GB, so use one process for all captions. Raises MissingError if Java or the
    package is absent.
    """

    def __enter__(self) -> Self:
        if needs := missing():
            listed = " and ".join(map(str, needs))
            raise MissingError(f"METEOR needs {listed}: install a Java runtime and stepline[meteor]")
        self._complaints = tempfile.TemporaryFile()
        self._java = subprocess.Popen(
            [*java("2G"), "-jar", str(packaged(*_JAR)), "-", "-", "-stdio", "-l", "en", "-norm"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            encoding="utf-8",
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._java.kill()
        self._java.communicate()
        self._complaints.close()

    def score(self, references: Sequence[Sequence[Tokens]], candidates: Sequence[Tokens]) -> Scores:
        """Return METEOR in [0, 1], as a Scorer; the corpus score uses the summed statistics of all segments.

        Raises SteplineError if the process ends before it answers.
        """
        check_segments(references, candidates)
        # Each answer is read before the next line is written, so neither pipe can fill up.
        statistics = [
            self._answers(["SCORE", *(_sentence(each) for each in group), _sentence(candidate)], 1)[0]
            for group, candidate in zip(references, candidates, strict=True)
        ]
        *segments, corpus = self._answers(["EVAL", *statistics], len(statistics) + 1)
        return Scores(float(corpus), np.array(segments, dtype=np.float64))

    def _answers(self, fields: list[str], count: int) -> list[str]:
        assert self._java.stdin is not None
        assert self._java.stdout is not None
        try:
            self._java.stdin.write(" ||| ".join(fields) + "\n")
            self._java.stdin.flush()
        except BrokenPipeError:
            lines = [""]
        else:
            lines = [self._java.stdout.readline() for _ in range(count)]
        if not all(lines):
            status = self._java.wait()
            self._complaints.seek(0)
            raise SteplineError(
                f"METEOR's Java process ended with status {status}: {complaint(self._complaints.read())}"
            )
        return [line.strip() for line in lines]


def _sentence(tokens: Tokens) -> str:
    """Return the tokens joined by spaces, without the separator of METEOR's fields."""
    return " ".join(" ".join(tokens).replace("|||", " ").split())
