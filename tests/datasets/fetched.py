"""Releases as they stand after they are fetched."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepline.datasets.release import Released
from stepline.io import sha256_file, write_json


def write_release(of: Released, release: str, files: Mapping[str, Any], root: Path = Path()) -> None:
    """Write files of a release below ``root``, beside those that it has: bytes, text, or what is written as JSON."""
    folder = root / of.folder(release)
    for path, content in files.items():
        if not isinstance(content, str | bytes):
            content = json.dumps(content)
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content.encode() if isinstance(content, str) else content)
    there = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "release.json"]
    digests = {str(path.relative_to(folder)): sha256_file(path) for path in there}
    write_json(folder / "release.json", {"study": of.name, "release": release, "files": digests})
