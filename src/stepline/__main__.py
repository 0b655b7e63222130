"""``python -m stepline``."""

import os
import sys

if address := os.environ.pop("STEPLINE_FORKSERVER", ""):
    from stepline.forkserver.client import ask

    if (code := ask(address)) is not None:
        sys.exit(code)

from stepline.cli import main

sys.exit(main())
