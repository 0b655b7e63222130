"""A verb that meets a fault at a change of its folder: ``python -m tests.chaos.job FAULT N VERB...``.

FAULT is ``kill``, or the name of an errno, and the N-th change in order: a file that is opened to be written, a name
that is made, moved or removed, bytes that are brought to the disk. 0 is none. The file that ``CHAOS_LOG`` names gets a
line for each change, and one for each video that is decoded.
"""

import errno
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stepline import cli
from stepline.asr import chunks
from stepline.media.audio import RATE
from stepline.media.process import Decoder

NAMES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.truncate", "shutil.rmtree")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def main() -> None:
    """Do the verb."""
    fault, at, *words = sys.argv[1:]
    folder, process = os.getcwd() + os.sep, os.getpid()
    log = os.open(os.environ["CHAOS_LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    changes = 0

    def change(path: Any) -> None:
        nonlocal changes
        if os.getpid() != process or isinstance(path, int) or not os.path.abspath(os.fsdecode(path)).startswith(folder):
            return
        changes += 1
        os.write(log, b"change\n")
        if changes == int(at):
            if fault == "kill":
                os.kill(process, signal.SIGKILL)
            number = getattr(errno, fault)
            raise OSError(number, os.strerror(number), os.fspath(path))

    def seen(event: str, arguments: tuple[Any, ...]) -> None:
        if event in NAMES or (event == "open" and arguments[0] and arguments[2] & WRITES):
            change(arguments[0])

    fsync = os.fsync

    def synced(file: int) -> None:
        change(os.readlink(f"/proc/self/fd/{file}"))
        fsync(file)

    def noted(self: Decoder, work: Any, video: Path, *rest: Any, **limits: Any) -> Iterator[Any]:
        os.write(log, f"decoded {video.stem}\n".encode())
        return decode(self, work, video, *rest, **limits)

    decode, Decoder.__call__ = Decoder.__call__, noted  # type: ignore[method-assign, assignment]
    chunks.LONGEST, chunks.SEARCHED = 2 * RATE, RATE
    os.fsync = synced
    sys.addaudithook(seen)
    sys.exit(cli.main(words))


if __name__ == "__main__":
    main()
