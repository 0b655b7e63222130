"""Stepline: from raw procedural video to the tables of five papers, reproducibly."""

TYPE_CHECKING = False  # what each job imports first does without typing
if TYPE_CHECKING:
    from typing import Any

    from stepline.features.opening import open_bank

__version__ = "0.1.0"
__all__ = ["__version__", "open_bank"]


def __getattr__(name: str) -> "Any":
    """Import what the package offers when it is asked for: the command line and the workflow do without numpy."""
    if name == "open_bank":
        from stepline.features.opening import open_bank

        return open_bank
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
