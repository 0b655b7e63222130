"""The documentation site: Markdown pages where they stand in the repository, and a reference made of the code."""

import argparse
import os
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

from stepline import __version__
from stepline.cli.parser import make_parser

ROOT = Path(__file__).parents[1]

project = "Stepline"
author = "The Stepline developers"
version = release = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc"]

# The source folder is the repository, so that a link between two pages is the same on the site and on a code host.
root_doc = "docs/index"
include_patterns = ["docs/**.md", "docs/**.ipynb", "config/README.md", "perf/README.md", "*.md"]
READ = {"docs", "config", "perf"}
exclude_patterns = [path.name for path in ROOT.iterdir() if path.is_dir() and path.name not in READ]
exclude_patterns.append("**/.ipynb_checkpoints")

myst_heading_anchors = 4
nb_execution_mode = "off"  # outputs are committed, see tests/docs/test_notebook.py
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types of other libraries, whose documentation is not at hand offline

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True

html_theme = "furo"
html_title = f"Stepline {__version__}"
html_additional_pages = {"index": "to_start.html"}
templates_path = ["_templates"]
html_copy_source = False
html_show_copyright = False
html_show_search_summary = False  # it would fetch pages, which browsers refuse where the site is opened from the disk

COMMANDS = "docs/reference/commands"


def _verbs(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers below one, by name."""
    found = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return {name: below for action in found for name, below in action.choices.items()}


def _help(parser: argparse.ArgumentParser, level: int) -> str:
    section = f"{'#' * level} {parser.prog}\n\n```text\n{parser.format_help()}```\n\n"
    return section + "".join(_help(below, level + 1) for below in _verbs(parser).values())


def _fill_commands(_: Sphinx, docname: str, source: list[str]) -> None:
    if docname == COMMANDS:
        os.environ["COLUMNS"] = "100"  # the width that argparse writes in
        source[0] += _help(make_parser(), 2)


def setup(app: Sphinx) -> None:
    """Fill the page of commands when it is read."""
    app.add_lexer("csv", TextLexer)
    app.connect("source-read", _fill_commands)
