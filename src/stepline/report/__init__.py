"""Pages: HTML files that can be read anywhere, and the figures in them."""

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepline.io import write_text


@dataclass(frozen=True)
class Picture:
    """An image for the page: its data address, what it shows in words, its caption, and a command that shows more."""

    source: str
    alt: str
    caption: str
    command: str = ""


def write_html(path: Path | str, template: str, **values: Any) -> None:
    """Fill a template of this package with ``values``, in which all text is escaped, and write the page to ``path``."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader(__name__, "")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    write_text(path, environment.get_template(template).render(values).rstrip() + "\n")


def svg_address(figure: Any) -> str:
    """Return an address that is the drawn figure itself."""
    from stepline.report import figures

    return data_address("image/svg+xml", figures.render(figure))


def data_address(kind: str, content: bytes) -> str:
    """Return an address that is the content itself."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
