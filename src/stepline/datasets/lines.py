"""Reader of a user's CSV file."""

import csv
import os
from collections.abc import Iterator

from stepline.errors import ConfigError


def lines(
    key: str, file: str, *, required: tuple[str, ...], optional: tuple[str, ...]
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line number and the values by column for each line after the header; values are stripped.

    key: the origin of the file name, such as ``config: <key>``. Raises ConfigError if the file is not valid.
    """
    place = os.path.abspath(os.path.expanduser(file))
    try:
        with open(place, encoding="utf-8-sig", newline="") as content:
            rows = csv.reader(content, strict=True)
            header = [name.strip() for name in next(rows, [])]
            if not set(required) <= set(header) <= {*required, *optional} or len(set(header)) < len(header):
                allowed = f"{', '.join(required)}" + (f" and, optionally, {', '.join(optional)}" if optional else "")
                raise ConfigError(f"{file}, line 1: the columns must be {allowed}, with commas between them")
            for row in rows:
                if any(row) and len(row) != len(header):
                    raise ConfigError(f"{file}, line {rows.line_num}: {len(row)} values for {len(header)} columns")
                if any(row):
                    yield rows.line_num, dict(zip(header, map(str.strip, row), strict=True))
    except FileNotFoundError:
        raise ConfigError(f"{key}: the file {place} does not exist") from None
    except IsADirectoryError:
        raise ConfigError(f"{key}: {place} is a folder: name a CSV file") from None
    except OSError as error:
        raise ConfigError(f"{key}: {place}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{key}: {place}: not UTF-8") from None
    except csv.Error as error:
        raise ConfigError(f"{file}, line {rows.line_num}: {error}") from None
