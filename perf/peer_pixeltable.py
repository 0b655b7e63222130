"""The features of ``reruns.py`` with Pixeltable: a table of videos, a view of frames, a computed column per network.

``sync [NETWORK ...] [--recompute NETWORK]`` updates the tables from the folder ``videos``; ``read FILE`` writes the
vectors as an npz. The networks are the modules ``net_<name>``.
"""

import argparse
import hashlib
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pixeltable as pxt
from pixeltable.functions.video import frame_iterator


def sync(networks: list[str], recompute: str | None) -> None:
    """Update the tables. Pixeltable does not watch folders, so this function finds the new files."""
    columns = {"name": pxt.String, "video": pxt.Video, "mtime_ns": pxt.Int, "sha256": pxt.String}
    videos: Any = pxt.create_table("videos", columns, if_exists="ignore")
    frames: Any = pxt.create_view("frames", videos, iterator=frame_iterator(videos.video, fps=1), if_exists="ignore")
    for name in networks:
        column = {name: import_module(f"net_{name}").network(frames.frame.resize((112, 112)))}
        frames.add_computed_column(**column, if_exists="ignore")
    had = {row["name"]: row for row in videos.select(videos.name, videos.mtime_ns, videos.sha256).collect()}
    there = {path.name: path for path in sorted(Path("videos").resolve().iterdir())}
    added = []
    for name in had.keys() - there.keys():
        videos.delete(where=videos.name == name)
    for name, path in there.items():
        mtime_ns = path.stat().st_mtime_ns
        if name in had and had[name]["mtime_ns"] == mtime_ns:
            continue
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        if name in had and had[name]["sha256"] == sha256:
            videos.update({"mtime_ns": mtime_ns}, where=videos.name == name)
            continue
        if name in had:
            videos.delete(where=videos.name == name)
        added.append({"name": name, "video": str(path), "mtime_ns": mtime_ns, "sha256": sha256})
    if added:
        videos.insert(added)
    if recompute:
        frames.recompute_columns(recompute)


def read(file: Path) -> None:
    """Write the vectors, (T, D) of each video and network, under the names ``<video> <network>``."""
    frames: Any = pxt.get_table("frames")
    networks = [name for name in ("a", "b", "c") if name in frames.columns()]
    columns = {name: getattr(frames, name) for name in networks}
    rows = frames.select(video=frames.name, pos=frames.pos, **columns).order_by(frames.name, frames.pos).collect()
    vectors = defaultdict(list)
    for row in rows:
        for name in networks:
            vectors[f"{row['video']} {name}"].append(row[name])
    np.savez(file, **{name: np.stack(each) for name, each in vectors.items()})


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    synced = commands.add_parser("sync")
    synced.add_argument("networks", nargs="*")
    synced.add_argument("--recompute")
    commands.add_parser("read").add_argument("file", type=Path)
    options = parser.parse_args()
    if options.command == "sync":
        sync(options.networks, options.recompute)
    else:
        read(options.file)


if __name__ == "__main__":
    main()
