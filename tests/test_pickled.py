"""Pickles as data. More that are hostile: ``tests/chaos/strangers.py``."""

import pickle
from argparse import Namespace
from collections import OrderedDict
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from stepline import pickled
from stepline.pickled import Stub, parse

PLAIN: dict[Any, Any] = {
    "numbers": [0, -1, 255, 256, 1 << 31, -(1 << 40), 1 << 200, 1.5, float("inf")],
    "texts": ["", "a", "\u00e9\u4e2d", "x" * 300, "y" * 70_000],
    "constants": (None, True, False),
    "tuples": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
    ("a", 1): {"empty": {}, "lists": [[], [[]]]},
    "many": [*range(2000)],
    "ordered": OrderedDict(a=1, b=OrderedDict()),
}
PLAIN["again"] = PLAIN["many"]
PROTOCOLS = pytest.mark.parametrize("protocol", range(6))


@PROTOCOLS
def test_plain_containers_are_read_as_they_are(protocol: int) -> None:
    found = parse(BytesIO(pickle.dumps(PLAIN, protocol)))
    assert found == PLAIN
    assert found["again"] is found["many"]
    bits = {"bytes": b"a" * 300, "array": bytearray(b"b")}
    assert protocol < 5 or parse(BytesIO(pickle.dumps(bits, protocol))) == bits


@PROTOCOLS
def test_what_is_named_is_a_stub(protocol: int) -> None:
    found = parse(BytesIO(pickle.dumps([Namespace(a=1), Path, {1, 2}, frozenset("a"), Path("b")], protocol)))
    assert [type(each) for each in found] == [Stub] * 5
    assert (found[0].name[-1], found[0].state) == ("_reconstructor" if protocol < 2 else "Namespace", {"a": 1})
    assert (found[1].name[0].partition(".")[0], found[1].name[1], found[1].arguments) == ("pathlib", "Path", None)
    assert found[4].arguments is not None


def test_calls_and_persistent_ids_are_the_readers() -> None:
    class Pickler(pickle.Pickler):
        def persistent_id(self, each: Any) -> Any:
            return "stored" if each == 7 else None

    made = BytesIO()
    Pickler(made, 2).dump([7, Namespace()])
    made.seek(0)
    assert parse(made, lambda stub: "made", lambda saved: [saved]) == [["stored"], "made"]


@pytest.mark.parametrize(
    "content", [b"\x80\x04N", b"", b".", b"\x80\x02cos\nsystem\n}b.", b"\x80\x02K\1)R.", b"K\1K\2a."]
)
def test_what_makes_no_sense_is_refused(content: bytes) -> None:
    with pytest.raises((ValueError, IndexError, pickle.UnpicklingError)):
        parse(BytesIO(content))


def test_pickles_and_keys_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(pickle.UnpicklingError, match="the key of a dictionary is too large"):
        parse(BytesIO(pickle.dumps({tuple(range(1000)): 1})))
    monkeypatch.setattr(pickled, "MOST_OPCODES", 10)
    assert parse(BytesIO(pickle.dumps([1] * 4))) == [1] * 4
    with pytest.raises(pickle.UnpicklingError, match="too many objects"):
        parse(BytesIO(pickle.dumps([1] * 10)))
