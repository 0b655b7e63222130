"""Pages: HTML files that can be read anywhere, and the figures in them."""

import base64
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from stepline.io import write_text


@dataclass(frozen=True)
class Picture:
    """An image for the page: its data address, what it shows in words, and its caption."""

    source: str
    alt: str
    caption: str


def write_html(path: Path | str, template: str, **values: Any) -> None:
    """Fill a template of this package with ``values``, in which all text is escaped, and write the page to ``path``."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    text = files(__name__).joinpath(template).read_text(encoding="utf-8")
    write_text(path, environment.from_string(text).render(values).rstrip() + "\n")


def svg_address(figure: Any) -> str:
    """Return an address that is the drawn figure itself."""
    from stepline.report import figures

    return data_address("image/svg+xml", figures.render(figure))


def data_address(kind: str, content: bytes) -> str:
    """Return an address that is the content itself."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
