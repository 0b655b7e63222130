"""What the pages tell a reader to run, see ``tests.docs.pages``."""

import argparse
import ast
import os
import re
from io import StringIO
from pathlib import Path
from tokenize import COMMENT, generate_tokens
from typing import Any

import pytest
import yaml
from snakemake.cli import get_argument_parser

from stepline import config
from stepline.cli.parser import make_parser
from tests.conftest import ROOT, snakemake
from tests.docs.conftest import execute
from tests.docs.pages import PAGES, Block, blocks, commands, inline
from tests.workflow import conda_standin

ELSEWHERE = "docs/own-benchmark.md"
"""Its commands are run by test_own_benchmark.py."""
KINDS = {"sh", "sh plan", "sh check", "python", "python check", "python snakefile"}
BLOCKS = [block for page in PAGES for block in blocks(page) if not block.place.startswith(ELSEWHERE)]


@pytest.fixture(scope="session")
def conda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return conda_standin.install(tmp_path_factory.mktemp("conda"))


def write(block: Block, folder: Path) -> None:
    path = folder / (block.file or "")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.text, encoding="utf-8")


def of(kind: str) -> list[Any]:
    return [pytest.param(block, id=block.place) for block in BLOCKS if block.kind == kind and not block.file]


def test_every_block_says_what_becomes_of_it() -> None:
    shells = [block for block in BLOCKS if re.match("sh|bash|console|python", block.kind) and not block.file]
    assert [f"{block.place}: {block.kind}" for block in shells if block.kind not in KINDS] == []
    hidden = r"^\$? ?(?:\.venv/bin/)?(?:snakemake|stepline|make) "
    other = [block for block in BLOCKS if block not in shells and re.search(hidden, block.text, re.MULTILINE)]
    assert [block.place for block in other] == []


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_shows_runs_word_for_word(
    page: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = [block for block in blocks(page) if block in BLOCKS and (block.file or block.kind in {"sh", "python"})]
    if not shown:
        return
    folder = request.getfixturevalue("checkout")
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    for block in shown:
        if block.file:
            write(block, folder)
        elif block.kind == "sh":
            execute(block.text, folder)
        else:
            evaluate(block, names)


def evaluate(block: Block, names: dict[str, Any]) -> None:
    """Execute Python, and compare each expression with the value in the comment behind or below it, if there is one."""
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in generate_tokens(StringIO(block.text).readline)
        if token.type == COMMENT
    }
    for statement in ast.parse(block.text).body:
        code = ast.Module([statement], [])
        if isinstance(statement, ast.Expr):
            end = statement.end_lineno or 0
            value = eval(compile(ast.Expression(statement.value), block.place, "eval"), names)
            printed = comments.get(end) or comments.get(end + 1, "")
            if re.match(r"[-\d.]|\w+\(\w+=", printed):
                assert_same(printed, value, block.place)
        else:
            exec(compile(code, block.place, "exec"), names)


def assert_same(printed: str, value: Any, place: str) -> None:
    """Compare a value with its printed form, whose numbers may be rounded; words behind it do not count."""
    number = r"(?<!\w)-?\d+\.?\d*(?:e-?\d+)?"
    single = value.item() if getattr(value, "ndim", None) == 0 else value
    text = re.sub(r"np\.float64\((.*?)\)", r"\1", repr(single))
    pattern = re.escape(re.sub(number, "NUMBER", text)).replace("NUMBER", f"({number})")
    match = re.match(pattern, printed)
    assert match, f"{place}: {printed} is {text}"
    for shown, real in zip(match.groups(), re.findall(number, text), strict=True):
        decimals = len(shown.partition(".")[2])
        assert round(float(real), decimals) == float(shown), f"{place}: {printed} is {text}"


def parser_of(program: str) -> argparse.ArgumentParser | None:
    """Return the parser of a command of ours; None of a program from elsewhere."""
    made = {"stepline": make_parser, "snakemake": get_argument_parser}.get(Path(program).name)
    return None if made is None else made()


@pytest.mark.parametrize("block", [*of("sh check"), *of("sh plan")])
def test_verbs_and_options_exist(block: Block) -> None:
    for words in commands(block.text):
        if parser := parser_of(words[0]):
            parser.exit_on_error = False
            parser.parse_args(words[1:])


@pytest.mark.parametrize("block", of("python check"))
def test_python_that_is_not_executed_is_python(block: Block) -> None:
    compile(block.text, block.place, "exec")


@pytest.mark.parametrize("block", [pytest.param(block, id=block.place) for block in BLOCKS if block.kind == "yaml"])
def test_a_configuration_is_valid(block: Block) -> None:
    config.validate(yaml.safe_load(block.text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_within_sentences_exist(page: Path) -> None:
    for text in inline(page):
        for words in commands(text):
            parser = parser_of(words.pop(0))
            while words and parser and (below := verbs(parser).get(words[0])):
                parser = below
                words.pop(0)
            assert parser is not None
            assert not words or words[0].startswith("-") or not verbs(parser), f"{text}: there is no verb {words[0]}"
            options = [word.partition("=")[0] for word in words if re.match("--.", word)]
            assert [option for option in options if option not in parser._option_string_actions] == [], text


def verbs(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers below one, by name."""
    found = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return {name: below for action in found for name, below in action.choices.items()}


def plans() -> list[tuple[str, ...]]:
    """Return the words of each command of Snakemake that is only planned; those with the same options are one."""
    texts = [block.text for block in BLOCKS if block.kind == "sh plan"] + inline(ROOT / "README.md")
    targets: dict[tuple[str, ...], dict[str, None]] = {}
    for words in (words for text in texts for words in commands(text)):
        if Path(words[0]).name == "snakemake":
            named = [word for word in words[1:] if word.startswith("results/")]
            options = tuple(word for word in words[1:] if word not in {*named, "--dry-run"})
            targets.setdefault(options, {}).update(dict.fromkeys(named))
    return [(*named, *options) for options, named in targets.items()]


@pytest.mark.slow
@pytest.mark.parametrize("words", plans(), ids=" ".join)
def test_a_full_study_is_planned(words: tuple[str, ...], checkout: Path, conda: Path, real_data: Path) -> None:
    for block in BLOCKS:
        if block.file and "snakemake/mysite" in block.file:
            write(block, checkout)
    path = f"{conda}{os.pathsep}{os.environ['PATH']}"
    home = {"PATH": path, "HOME": str(checkout), "STEPLINE_MIRROR": str(real_data)}
    done = snakemake("--dry-run", *words, folder=checkout, **home)
    assert done.returncode == 0, done.stderr
