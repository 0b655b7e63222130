"""The page of all keys: config/README.md."""

from collections.abc import Iterator
from typing import Any

from stepline.config.declarations import folders
from stepline.config.reference import page
from stepline.config.schema import schema_of
from tests.conftest import ROOT

WORDS = {
    *("$schema", "type", "properties", "additionalProperties", "propertyNames", "required", "items", "enum", "default"),
    *("description", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf", "minLength"),
    *("minItems", "maxItems", "uniqueItems", "pattern", "oneOf", "allOf", "allowed", "examples", "removed"),
    "writeOnly",
}
"""What a schema says of a key. A description with a comma that is not in quotes makes others."""


def parts(schema: dict[str, Any], key: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield key, schema
    for name, child in schema.get("properties", {}).items():
        yield from parts(child, f"{key}.{name}".lstrip("."))


def section(name: str) -> list[str]:
    """Return the rows of a section by what stands between their bars."""
    _, _, after = page().partition(f"\n## {name}\n")
    return [line for line in after.partition("\n## ")[0].splitlines() if line.startswith("| `")]


def test_the_page_is_that_of_the_schema() -> None:
    kept = (ROOT / "config/README.md").read_text(encoding="utf-8")
    assert kept == page(), "run: python -m stepline.config > config/README.md"


def test_every_key_has_a_row_or_is_that_of_every_benchmark() -> None:
    common = section("Every benchmark")
    for name in ("media", "hirest", "pss", "spacewalk"):
        rows = [*section(f"`{name}`"), *common]
        for key, _ in parts(schema_of(folders({}))["properties"][name]):
            assert not key or any(row.startswith(f"| `{key}` |") for row in rows), f"{name}.{key}"


def test_a_row_says_what_is_allowed_and_what_is_used() -> None:
    rows = [*section("General"), *section("`media`"), *section("`shots`"), *section("`spacewalk`"), *section("`pss`")]
    said = [row.rpartition(" | ")[0] for row in rows]
    assert "| `shard_hours` | number > 0 | `20`" in said
    assert "| `keep` | `all`, `none` | `all`" in said
    assert "| `limits` |  | " in said
    assert "| `threshold` | number > 0, ≤ 255 or `null` | `null`" in said
    assert "| `min_content_val` | number from 0 to 255 | " in said
    assert "| `contexts_s.3b` | one or more numbers from 0.001 to 86400 | `[180]`" in said
    assert "| `releases` | one or more of `youcook2`, `tasty` | all" in said
    assert "| `subset.fraction` | number > 0, ≤ 1 | required" in said
    assert "| `datasets` | " not in page()


def test_what_has_the_form_of_a_benchmark_shows_what_differs() -> None:
    [row] = section("`demo`")
    assert row.startswith("| `releases` | one or more of `v0`, `v1`, `v2`, `demo` | `[demo]` |")
    assert "\n\nThe embedded study, in Spacewalk-18's format. As `spacewalk`, except for:\n\n" in page()


def test_what_all_benchmarks_share_stands_once() -> None:
    assert page().count("`metrics.bootstrap_samples`") == 1
    assert "| `subset.seed`" not in "\n".join(section("Every benchmark"))


def test_a_schema_says_nothing_that_is_not_read() -> None:
    for key, part in parts(schema_of(folders({}))):
        assert part.keys() <= WORDS, key
