"""Speech in several languages by a synthesiser."""

import io
import shutil
import subprocess
import wave

import numpy as np

from stepline.media.audio import RATE
from tests.conftest import unavailable

TEXTS = {
    "de": "Wir öffnen die Tür und machen das Licht an. Danach stellen wir das Wasser auf den Tisch.",
    "ja": "まず おゆを わかします。 つぎに やさいを きります。",
}


def spoken(language: str) -> np.ndarray:
    """Return the text of a language as 16 kHz samples."""
    program = shutil.which("espeak-ng")
    if program is None:
        unavailable("espeak-ng is not installed: apt-get install espeak-ng")
    made = subprocess.run([program, "-v", language, "--stdout", TEXTS[language]], capture_output=True, check=True)
    with wave.open(io.BytesIO(made.stdout)) as file:
        rate, samples = file.getframerate(), np.frombuffer(made.stdout[44:], np.int16)
    times = np.arange(int(len(samples) * RATE / rate)) * rate / RATE
    return np.interp(times, np.arange(len(samples)), samples).astype(np.int16)
