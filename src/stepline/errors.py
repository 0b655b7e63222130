"""Every error that a user can cause. The command line prints one as a single line and exits with its code."""


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
