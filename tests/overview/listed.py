"""A data set of listed addresses under configuration ``listed.yaml``: three videos of an hour, a shard each."""

import json
from pathlib import Path
from typing import Any

from stepline.config import Config, validate


def config(**changes: Any) -> Config:
    """Write the list and return the configuration with changes."""
    lines = [f"{video},https://example.org/{video}.mp4,3600" for video in "abc"]
    Path("list.csv").write_text("\n".join(["video,url,duration_s", *lines]) + "\n")
    mine = {"kind": "list", "videos": "list.csv", **changes.pop("mine", {})}
    made = {"datasets": {"mine": mine}, "shard_hours": 1, **changes}
    Path("listed.yaml").write_text(json.dumps(made))
    return validate(made)
