"""The pipeline of a data set of the user's own."""

from typing import Any

from stepline.config import validate
from stepline.pipeline import Pipeline


def made(**changes: Any) -> Pipeline:
    """Return the pipeline of the data set ``mine``, whose videos are the files of ``clips``."""
    return Pipeline.of(validate({"datasets": {"mine": {"videos": "clips"}}} | changes), "mine")
