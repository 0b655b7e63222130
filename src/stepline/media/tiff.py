"""TIFF files that FFmpeg decodes to another picture without an error."""

import struct
from pathlib import Path

BITS, COMPRESSION, PHOTOMETRIC, TILE_WIDTH, SAMPLE_FORMAT = 258, 259, 262, 322, 339
"""Tags."""
CMYK, YCBCR = 5, 6
"""Values of ``PHOTOMETRIC``."""
INTEGERS = {3: "H", 4: "I"}
"""Types of values: 16 and 32 bits."""


def wrongly_decoded(path: Path, pixels: str) -> str:
    """Return which property of a TIFF file makes FFmpeg return another picture without an error, or "".

    pixels: the pixel format that FFmpeg returns.
    """
    try:
        tags = _tags(path)
    except struct.error:
        return ""  # it is cut off, which FFmpeg notices
    numbers = tags.get(BITS, 1), tags.get(SAMPLE_FORMAT, 1)
    signs = {
        "JPEG compression": tags.get(COMPRESSION) in (6, 7),
        "tiles": TILE_WIDTH in tags,
        "YCbCr": tags.get(PHOTOMETRIC) == YCBCR,
        "CMYK": tags.get(PHOTOMETRIC) == CMYK and pixels != "rgb0",
        "numbers other than unsigned integers of up to 16 bits": numbers != (32, 3)
        and (numbers[0] > 16 or numbers[1] != 1),
    }
    return next((sign for sign, found in signs.items() if found), "")


def _tags(path: Path) -> dict[int, int]:
    """Return the tags of the first picture whose values are integers, with the first value of each."""
    found = {}
    with path.open("rb") as file:
        order = "<" if file.read(2) == b"II" else ">"

        def read(form: str, at: int) -> tuple[int, ...]:
            file.seek(at)
            return struct.unpack(order + form, file.read(struct.calcsize(order + form)))

        (start,) = read("I", 4)
        for at in range(start + 2, start + 2 + 12 * read("H", start)[0], 12):
            tag, kind, count = read("HHI", at)
            if form := INTEGERS.get(kind):
                inline = count * struct.calcsize(order + form) <= 4
                (found[tag],) = read(form, at + 8 if inline else read("I", at + 8)[0])
    return found
