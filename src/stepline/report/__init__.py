"""Reports: self-contained HTML pages and their figures."""

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepline.io import write_text


@dataclass(frozen=True)
class Picture:
    """An image of a page: its data URL, alternative text, caption, and a command that shows details."""

    source: str
    alt: str
    caption: str
    command: str = ""


def write_html(path: Path | str, template: str, **values: Any) -> None:
    """Render a template of this package with ``values``, which are escaped, and write the page to ``path``."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader(__name__, "")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    write_text(path, environment.get_template(template).render(values).rstrip() + "\n")


def svg_address(figure: Any) -> str:
    """Return a data URL of a figure as SVG."""
    from stepline.report import figures

    return data_address("image/svg+xml", figures.render(figure))


def data_address(kind: str, content: bytes) -> str:
    """Return a data URL with the content."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
