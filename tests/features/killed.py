"""``python -m tests.features.killed FOLDER BATCHES``: the stage, killed at the batch after these; prints those left."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from stepline.backbones import registry
from stepline.features import cache, encoder
from tests.features import test_networks as tests


def main(folder: Path, left: int) -> None:
    call = encoder.Encoder.__call__

    def counted(*arguments: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments)

    encoder.Encoder.__call__ = counted  # type: ignore[method-assign]
    registry.FAMILIES["toy"] = "tests.features.toy"
    cache.CHUNK = 4
    works = [tests.work(folder, tests.LISTED, listed=tests.CLIPS), tests.work(folder, tests.WIDE)]
    tests.store(folder, *works, batch_size=2)
    tests.store(folder, *reversed(works), batch_size=2)
    print(left)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
