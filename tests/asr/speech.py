"""A short recording of speech."""

from pathlib import Path

import numpy as np

from stepline.media.audio import RATE


def speech() -> np.ndarray:
    """Return 6 s: "we open the door and turn on the light" at 1.0-2.7 s, "put the water on the table" at 4.0-5.3 s."""
    import av

    resampler = av.AudioResampler("s16", "mono", RATE)
    with av.open(str(Path(__file__).with_name("speech.opus"))) as container:
        return np.concatenate(
            [part.to_ndarray()[0] for f in container.decode(audio=0) for part in resampler.resample(f)]
        )
