"""Tables of scores next to the paper's numbers."""

from stepline.tables.files import legend, markdown_table, write_csv, write_lines, write_markdown
from stepline.tables.finding import Finding, blind_methods, finding
from stepline.tables.layout import (
    Panel,
    context_name,
    facts,
    groups,
    is_oracle,
    measures,
    missing,
    panels,
    sees_text,
)  # fmt: skip
from stepline.tables.lines import NumberLine, computed, lines
from stepline.tables.number import Number
from stepline.tables.paper import read_paper
from stepline.tables.rows import COLUMNS, UNDECLARED, Row, build
from stepline.tables.status import MARKS, MEANINGS, TRUNCATES, Status
from stepline.tables.text import metric_text, percent

__all__ = [
    "COLUMNS", "MARKS", "MEANINGS", "TRUNCATES", "UNDECLARED", "Finding", "Number", "NumberLine", "Panel", "Row",
    "Status", "blind_methods", "build", "computed", "context_name", "facts", "finding", "groups", "is_oracle", "legend",
    "lines", "markdown_table", "measures", "metric_text", "missing", "panels", "percent", "read_paper", "sees_text",
    "write_csv", "write_lines", "write_markdown",
]  # fmt: skip
