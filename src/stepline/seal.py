"""A file that holds the sha256 of its other bytes, so that whoever reads it knows that none has changed.

It stands where the format has room for a text: a key of a JSON object, or of the metadata of Parquet or safetensors,
else in a last line. A file without one, as earlier versions wrote them, passes.
"""

import hashlib
import re
from mmap import ACCESS_READ, mmap
from pathlib import Path

KEY = "seal"
_MARK = "sha256 of the rest: "
OPEN = _MARK + 64 * "0"
"""What a writer puts under KEY."""
CHANGED = "its bytes are not those that were written"
_seals = re.compile(_MARK.encode() + rb"([0-9a-f]{64})")


def sealed(content: bytes) -> bytes:
    """Return ``content``, in which OPEN stands, with its seal."""
    return content.replace(OPEN.encode(), _MARK.encode() + _sha256(content, content.index(OPEN.encode())), 1)


def sealed_below(content: bytes) -> bytes:
    """Return ``content`` with its seal as a last line."""
    return sealed(content + f"\n{OPEN}\n".encode())


def unsealed(content: bytes) -> bytes:
    """Return what ``sealed_below`` took, or ``content`` where it has no seal; raise ValueError where it has changed."""
    if not intact(content):
        raise ValueError(CHANGED)
    before, _, last = content.removesuffix(b"\n").rpartition(b"\n")
    return before if _seals.fullmatch(last) else content


def seal(path: Path) -> None:
    """Seal a file in which OPEN stands."""
    with open(path, "r+b") as file, mmap(file.fileno(), 0) as content:
        at = content.find(OPEN.encode())
        digest = _sha256(content, at)
        content[at + len(_MARK) : at + len(OPEN)] = digest


def intact(content: "bytes | mmap") -> bool:
    """Return whether the seal is that of the content, or there is none."""
    found = _seals.search(content)
    return found is None or found[1] == _sha256(content, found.start())


def check(path: Path) -> None:
    """Raise ValueError where a sealed file has changed."""
    with open(path, "rb") as file:
        if not path.stat().st_size:
            return
        with mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            if not intact(content):
                raise ValueError(CHANGED)


def _sha256(content: "bytes | mmap", at: int) -> bytes:
    """Return the sha256, in hex, of the content as it was before it had the seal at ``at``."""
    whole = hashlib.sha256()
    with memoryview(content) as view:
        whole.update(view[:at])
        whole.update(OPEN.encode())
        whole.update(view[at + len(OPEN) :])
    return whole.hexdigest().encode()
