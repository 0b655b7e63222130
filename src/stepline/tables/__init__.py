"""Tables from scores, with the paper's numbers beside ours."""

from stepline.tables.files import legend, markdown_table, write_csv, write_lines, write_markdown
from stepline.tables.layout import (
    VALUE_COLUMNS,
    context_name,
    facts,
    groups,
    is_oracle,
    measures,
    missing,
    panels,
    sees_text,
    values,
)  # fmt: skip
from stepline.tables.number import Number
from stepline.tables.paper import read_paper
from stepline.tables.rows import COLUMNS, UNDECLARED, Row, build
from stepline.tables.status import MARKS, Status
from stepline.tables.text import metric_text, percent

__all__ = [
    "COLUMNS", "MARKS", "UNDECLARED", "VALUE_COLUMNS", "Number", "Row", "Status", "build", "context_name", "facts",
    "groups", "is_oracle", "legend", "markdown_table", "measures", "metric_text", "missing", "panels", "percent",
    "read_paper", "sees_text", "values", "write_csv", "write_lines", "write_markdown",
]  # fmt: skip
