"""Every error that a user can cause. The command line prints one as a single line and exits with its code."""

import errno
import os


class SteplineError(Exception):
    """Base of all errors that are shown as one line, without a traceback."""

    code = 2
    """What the command line exits with."""


class ConfigError(SteplineError):
    """A configuration key or value that is not allowed."""


class ReleaseError(SteplineError):
    """Release files that are absent, truncated, changed or inconsistent."""


class DownloadError(SteplineError):
    """A required download that could not be made."""


class StoreError(SteplineError):
    """A cached store that is damaged or holds something else than what was asked for."""


class MissingError(SteplineError):
    """Something optional that is absent (weights, videos, a key) where ``strict`` asks for it."""


class ParityError(SteplineError):
    """A network whose outputs are not the reference implementation's."""

    code = 1


class SetupError(SteplineError):
    """Something broken that the configuration needs."""

    code = 1


def denied(error: OSError) -> str:
    """Return what to do where this account may not read or write; raise any other error of the system."""
    if not isinstance(error, PermissionError) and error.errno != errno.EROFS:
        raise error
    file = os.path.abspath(os.fsdecode(error.filename or os.curdir))
    return f"{file}: {error.strerror}: this account cannot write or read it; run in a folder where it can write"
