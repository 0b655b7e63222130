"""Texts of windows from the sentences' times as arrays, compared with checking every sentence."""

import random

from measure import show, sized

from stepline.asr.transcript import Sentence
from stepline.benchmarks.spacewalk.text import RecordingText, window
from stepline.datasets.schema import Recording

DURATION_S = 8 * 3600.0
SENTENCES, WINDOWS = sized((5000, 2000), small=(500, 20))


def main() -> None:
    """Print the table."""
    rng = random.Random(0)
    starts = sorted(rng.sample(range(int(DURATION_S)), SENTENCES))
    sentences = tuple(Sentence("nine words that somebody said to somebody out there", s, s + 0.9) for s in starts)
    recording = Recording(video="v", split="test", duration_s=DURATION_S, segments=(), steps=())
    text = RecordingText(recording, sentences, recognised=False)
    times = [rng.uniform(0, DURATION_S) for _ in range(WINDOWS)]
    for length_s in (60.0, 300.0):

        def linear(length_s: float = length_s) -> list[str]:
            texts = []
            for t in times:
                start_s, end_s = window(t, length_s, DURATION_S)
                texts.append(" ".join(s.text for s in sentences if s.start_s < end_s and s.end_s > start_s))
            return texts

        def vectorised(length_s: float = length_s) -> list[str]:
            return text.texts(text.windows_s(times, length_s))

        assert linear() == vectorised()
        show(
            f"texts of {WINDOWS:,} windows of {length_s:.0f} s among {SENTENCES:,} sentences",
            "every sentence checked",
            {"every sentence checked": linear, "stepline, all at once": vectorised},
            repeats=1,
        )


if __name__ == "__main__":
    main()
