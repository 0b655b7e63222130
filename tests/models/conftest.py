import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stepline.models import training


@pytest.fixture(autouse=True)
def slow_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """States are written when they are due, however long a busy machine takes."""
    monkeypatch.setattr(training, "SHORT_S", math.inf)


@pytest.fixture
def float64() -> Iterator[None]:
    """What torch makes or draws has that type."""
    torch = pytest.importorskip("torch")
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def goes_on(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Check that a fit goes on to the bytes of a whole one; return the number of calls of what ended it, in both parts.

    A call of ``of.name``, the one with the number ``killed_at``, ends it.
    """

    def check(fit: Callable[[Path], object], of: Any, name: str, killed_at: int) -> int:
        fit(Path("whole"))
        original, calls = getattr(of, name), 0

        def killing(*given: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == killed_at:
                raise KeyboardInterrupt
            return original(*given, **named)

        monkeypatch.setattr(of, name, killing)
        with pytest.raises(KeyboardInterrupt):
            fit(Path("part"))
        fit(Path("part"))
        assert Path("part").read_bytes() == Path("whole").read_bytes()
        return calls

    return check
