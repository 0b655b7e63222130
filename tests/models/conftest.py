from collections.abc import Iterator

import pytest


@pytest.fixture
def float64() -> Iterator[None]:
    """What torch makes or draws has that type."""
    torch = pytest.importorskip("torch")
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
