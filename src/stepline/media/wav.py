"""Whether the audio that an earlier version extracted must be written again. It needs the standard library only."""

import array
import wave
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HEADER = 44
"""The length of the header of a WAV file, in bytes."""
LOUD = 0.01
"""The amplitude from which a sample is loud: -40 dB of full scale."""
QUIET = 0.01
"""Audio with a smaller share of loud samples is compared with the file's other tracks and channels."""
EVERY = 16
"""Of how many samples one is examined."""
AT_ONCE = 1 << 18
"""Number of samples that are read at once."""


def doubtful(wav: Path, audio: Mapping[str, Any]) -> str:
    """Return why the 16-bit mono file ``wav`` must be written again, or "". audio: its entry in the media record.

    Earlier versions, whose entries have no ``loud_s``, could write a header that states too few samples, and did not
    look for sound in other tracks and channels of a file whose audio is quiet.
    """
    if audio["status"] != "present" or "loud_s" in audio:
        return ""
    try:
        with wave.open(str(wav)) as file:
            n_samples, n_loud = file.getnframes(), 0
            if wav.stat().st_size != HEADER + 2 * n_samples:
                return "is damaged: its header states another length"
            while content := file.readframes(AT_ONCE):
                n_loud += sum(abs(sample) > LOUD * (1 << 15) for sample in array.array("h", content)[::EVERY])
                if n_loud * EVERY >= QUIET * n_samples:
                    return ""
    except (EOFError, wave.Error):
        return "is damaged"
    return "is quiet: its video may have sound in another track or channel"
