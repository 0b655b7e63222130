"""``python -m stepline`` and the command ``stepline``."""

import os
import signal
import sys


def main() -> None:
    """Run the command line, for a job in a fork of a server if there is one, and exit.

    Until work begins, an interrupt ends the process silently instead of with a traceback from an import.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if address := os.environ.pop("STEPLINE_FORKSERVER", ""):
        from stepline.forkserver.client import ask

        if (code := ask(address)) is not None:
            sys.exit(code)
    from stepline import cli

    sys.exit(cli.main())


if __name__ == "__main__":
    main()
