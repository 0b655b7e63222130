"""The features of ``reruns.py`` with CocoIndex: an app that declares a file for each video and network.

``cocoindex update peer_cocoindex.py`` updates the folder ``vectors`` from the folder ``videos`` and the networks. The
networks are the modules ``net_<name>`` of the variable NETWORKS.
"""

import io
import os
from importlib import import_module
from pathlib import Path

import av
import cocoindex as coco
import numpy as np
from cocoindex.connectors import localfs

NETWORKS = {name: import_module(f"net_{name}").network for name in os.environ["NETWORKS"].split()}


@coco.fn(memo=True)
def describe(file: localfs.File, target: localfs.DirTarget, networks: tuple[str, ...]) -> None:
    """Declare the vectors of a video, from every 25th frame at 112 x 112 pixels."""
    pictures = []
    with av.open(str(file.file_path.resolve())) as container:
        for index, frame in enumerate(container.decode(video=0)):
            if index % 25 == 0:
                pictures.append(np.asarray(frame.to_image().resize((112, 112))))
    inputs = np.stack(pictures).astype(np.float32) / np.float32(255)
    for name in networks:
        written = io.BytesIO()
        np.save(written, NETWORKS[name](inputs))
        target.declare_file(f"{file.file_path.path.name} {name}.npy", written.getvalue())


@coco.fn
async def main() -> None:
    """Compute the features of each video in the folder."""
    target = await coco.use_mount(localfs.declare_dir_target, Path("vectors"))
    await coco.mount_each(describe, localfs.walk_dir(Path("videos")).items(), target, tuple(NETWORKS))


app = coco.App(coco.AppConfig(name="features"), main)
