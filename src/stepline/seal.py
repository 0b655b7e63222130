"""Seals: a file contains the sha256 of its other bytes, so that a reader detects any change.

The seal is stored where the format allows text: under a key of a JSON object, or of the metadata of Parquet or
safetensors, or otherwise in an additional last line. A file without a seal, from an earlier version, is accepted.
"""

import hashlib
import re
from mmap import ACCESS_READ, mmap
from pathlib import Path

KEY = "seal"
_MARK = "sha256 of the rest: "
OPEN = _MARK + 64 * "0"
"""The placeholder that a writer puts under KEY."""
CHANGED = "its bytes have changed since it was written"
_seals = re.compile(_MARK.encode() + rb"([0-9a-f]{64})")


def sealed(content: bytes) -> bytes:
    """Return ``content``, which must contain OPEN, with OPEN replaced by the seal."""
    return content.replace(OPEN.encode(), _MARK.encode() + _sha256(content, content.index(OPEN.encode())), 1)


def sealed_below(content: bytes) -> bytes:
    """Return ``content`` with its seal as a last line."""
    return sealed(content + f"\n{OPEN}\n".encode())


def unsealed(content: bytes) -> bytes:
    """Return ``content`` without the seal of ``sealed_below``, if it has one; raise ValueError if it has changed."""
    if not intact(content):
        raise ValueError(CHANGED)
    before, _, last = content.removesuffix(b"\n").rpartition(b"\n")
    return before if _seals.fullmatch(last) else content


def seal(path: Path) -> None:
    """Seal a file that contains OPEN."""
    with open(path, "r+b") as file, mmap(file.fileno(), 0) as content:
        at = content.find(OPEN.encode())
        digest = _sha256(content, at)
        content[at + len(_MARK) : at + len(OPEN)] = digest


def intact(content: "bytes | mmap") -> bool:
    """Return whether the seal matches the content, or there is no seal."""
    found = _seals.search(content)
    return found is None or found[1] == _sha256(content, found.start())


def check(path: Path) -> None:
    """Raise ValueError if a sealed file has changed."""
    with open(path, "rb") as file:
        if not path.stat().st_size:
            return
        with mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            if not intact(content):
                raise ValueError(CHANGED)


def _sha256(content: "bytes | mmap", at: int) -> bytes:
    """Return the sha256, in hex, of the content with OPEN in place of the seal at ``at``."""
    whole = hashlib.sha256()
    with memoryview(content) as view:
        whole.update(view[:at])
        whole.update(OPEN.encode())
        whole.update(view[at + len(OPEN) :])
    return whole.hexdigest().encode()
