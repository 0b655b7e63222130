"""The service of Table 7: which vision-language model it asks, and what it is missing."""

import os
import re
from typing import Any
from urllib.parse import urlsplit

from stepline.benchmark import Option
from stepline.config import Config
from stepline.needs import Need

PAPER_MODEL = "gpt-4o"
"""The paper's model, which the service also names with a date."""
PAPERS = Need("config", "oepp.llm.model", PAPER_MODEL)
KEY = "OPENAI_API_KEY"


def other_model(service: Config) -> str:
    """Return the model that is asked where it is not the paper's; else ""."""
    model: str = service["model"] or ""
    return "" if re.fullmatch(rf"{PAPER_MODEL}(-\d{{4}}-\d\d-\d\d)?", model) else model


def model_option(service: Config) -> Option:
    """Return the model that is asked, beside the paper's."""
    return Option(service["model"], PAPER_MODEL if other_model(service) else service["model"])


def missing(service: Config, *, made: bool) -> list[Need]:
    """Return the model or the key that is missing. made: whether the plans are there, so that nothing is asked."""
    if service["model"] is None:
        return [Need("config", "oepp.llm.model", "NAME")]
    paid = urlsplit(service["url"]).hostname == "api.openai.com"
    return [Need("key", KEY)] if paid and not made and not os.environ.get(KEY) else []


def record(service: Config) -> dict[str, Any]:
    """Return all that decides answers."""
    return {key: value for key, value in service.items() if key != "concurrency"}
