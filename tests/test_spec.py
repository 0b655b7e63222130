import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.spec import Spec, digest


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlurSpec(Spec):
    sigma: float
    size: tuple[int, int] = (3, 3)


BLUR = BlurSpec(name="blur", label="gauss3", revision=1, sigma=1.5)


def test_the_id_is_readable_and_pinned() -> None:
    assert BLUR.id == "gauss3-f8f1ef36"


@pytest.mark.parametrize("change", [{"sigma": 1.6}, {"size": (3, 5)}, {"revision": 2}, {"name": "box"}])
def test_whatever_decides_the_bytes_changes_the_id(change: dict[str, object]) -> None:
    assert dataclasses.replace(BLUR, **change).id != BLUR.id  # type: ignore[arg-type]


def test_the_record_holds_every_field() -> None:
    assert BLUR.record() == {"name": "blur", "label": "gauss3", "revision": 1, "sigma": 1.5, "size": (3, 3)}


def test_a_spec_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        BLUR.sigma = 2.0  # type: ignore[misc]


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.none(), min_size=1))
def test_the_digest_does_not_depend_on_order(value: dict[str, object]) -> None:
    assert digest(value) == digest(dict(reversed(value.items())))
    assert len(digest(value)) == 8
