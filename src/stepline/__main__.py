"""``python -m stepline``."""

import sys

from stepline.cli import main

sys.exit(main())
