"""Speak the demo's script: `python scripts/synthesise_narration.py`, with flite installed (Debian: apt install flite).

Reads the texts in src/stepline/demo/script.yaml, writes narration/<recording>.opus beside it (16 kHz mono, 11 kbit/s),
and writes the times that follow from the speech back into the script. Run it after every change of a text or voice.
"""

import io
import subprocess
import tempfile
import wave
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import yaml

DEMO = Path(__file__).parents[1] / "src/stepline/demo"
RATE = 16000
BIT_RATE = 11_000
SILENCE_BETWEEN_S = 0.2
"""Between two sentences in the Opus file, so that the codec does not smear one into the other."""
LEAD_S = 0.32
"""From the start of a clip to its first sentence, and from its last sentence to its end."""
PAUSE_S = 0.56
"""Between two sentences of a clip: long enough for a recogniser to hear two."""
SILENT_CLIP_S = 1.6


def speak(text: str, voice: str) -> np.ndarray:
    """Return ``text`` in a flite voice: mono float32 in [-1, 1] at 16 kHz, without the silence around it."""
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        subprocess.run(["flite", "-voice", voice, "-t", text, "-o", file.name], check=True)
        with wave.open(io.BytesIO(Path(file.name).read_bytes())) as sound:
            if (sound.getframerate(), sound.getnchannels(), sound.getsampwidth()) != (RATE, 1, 2):
                raise SystemExit(
                    f"voice {voice} does not give {RATE} Hz mono 16-bit sound: choose slt, rms, awb or kal16"
                )
            samples = np.frombuffer(sound.readframes(sound.getnframes()), np.int16).astype(np.float32)
    samples /= np.abs(samples).max()
    loud = np.flatnonzero(np.abs(samples) > 0.02)
    margin = RATE // 50
    return 0.7 * samples[max(0, loud[0] - margin) : loud[-1] + margin]


def write_opus(path: Path, samples: np.ndarray) -> None:
    """Write mono float samples at 16 kHz as Ogg Opus."""
    with av.open(str(path), "w", format="ogg", options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream("libopus", rate=RATE, layout="mono", options={"application": "audio"})
        stream.bit_rate = BIT_RATE
        stream.codec_context.flags |= av.codec.context.Flags.bitexact
        frame = av.AudioFrame.from_ndarray((samples * 32767).astype(np.int16)[None, :], format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE, 0, Fraction(1, RATE)
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def synthesise(recording: dict[str, Any], fps: int) -> np.ndarray:
    """Speak all sentences of ``recording``, write their times into it, and return the sound of its Opus file."""
    parts, length = [], 0
    for clip in recording["clips"]:
        at_s = LEAD_S
        for sentence in clip["say"]:
            sound = speak(sentence["text"], recording["voice"])
            sentence["at_s"] = round(at_s, 3)
            sentence["offset_s"] = round(length / RATE, 4)
            sentence["length_s"] = round(len(sound) / RATE, 4)
            at_s += sentence["length_s"] + PAUSE_S
            parts += [sound, np.zeros(round(SILENCE_BETWEEN_S * RATE), np.float32)]
            length += len(parts[-2]) + len(parts[-1])
        duration_s = at_s - PAUSE_S + LEAD_S if clip["say"] else SILENT_CLIP_S
        clip["duration_s"] = round(-(-duration_s * fps // 1) / fps, 2)
    return np.concatenate(parts)


def main() -> None:
    """Synthesise every recording of the script."""
    path = DEMO / "script.yaml"
    text = path.read_text()
    script = yaml.safe_load(text)
    for name, recording in script["recordings"].items():
        opus = DEMO / "narration" / f"{name}.opus"
        opus.parent.mkdir(exist_ok=True)
        write_opus(opus, synthesise(recording, script["fps"]))
        seconds = sum(clip["duration_s"] for clip in recording["clips"])
        print(f"{name}: {seconds:.1f} s of video, {opus.stat().st_size} bytes of narration")
    header = "".join(line + "\n" for line in text.splitlines() if line.startswith("#"))
    path.write_text(header + yaml.safe_dump(script, sort_keys=False, width=116, default_flow_style=None))


if __name__ == "__main__":
    main()
