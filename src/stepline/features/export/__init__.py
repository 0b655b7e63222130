"""Export from a bank to the files that other code reads: a module per form."""

import errno
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, get_args

from stepline.errors import ConfigError, StoreError
from stepline.features.bank import Bank
from stepline.features.export import actionformer, files, hdf5, pdvc
from stepline.features.export.job import Annotated, Export

Form = Literal["npy", "dict", "hdf5", "pt", "actionformer", "pdvc"]
FORMS: tuple[Form, ...] = get_args(Form)
TIMED: tuple[Form, ...] = ("npy", "hdf5")
"""Forms with the time of each row: they have rows of spans, of listed clips and of damaged videos as well."""
ANNOTATED: tuple[Form, ...] = ("actionformer", "pdvc")
"""Forms with the annotations of the videos."""
_WRITE: dict[Form, Callable[[Export], None]] = {
    "npy": files.write_npy,
    "dict": files.write_dict,
    "hdf5": hdf5.write,
    "pt": files.write_pt,
    "actionformer": actionformer.write,
    "pdvc": pdvc.write,
}


def export(
    bank: Bank,
    out: Path,
    form: Form,
    *,
    prefix: str | None = None,
    suffix: str = "",
    annotations: Mapping[str, Annotated] | None = None,
) -> None:
    """Write the rows of each video to the folder ``out``; the video's name there is ``<prefix><video><suffix>``.

    prefix: None means ``v_`` for PDVC, otherwise "". annotations: by video, for ``ANNOTATED`` forms.
    Before anything is written, raises StoreError if there is no video, or if a form without times cannot have the rows
    of a video, and ConfigError if a name is not a plain file name, or if two videos have the same name.
    """
    if not bank:
        raise StoreError("there is no video to export")
    if form not in TIMED:
        try:
            bank.check_whole()
        except StoreError as error:
            raise StoreError(f"{error}; `--form npy` and `--form hdf5` include the times of rows") from None
    if prefix is None:
        prefix = pdvc.PREFIX if form == "pdvc" else ""
    names = _names(bank, form, prefix, suffix)
    job = Export(bank=bank, out=out, names=names, prefix=prefix, suffix=suffix, annotations=annotations or {})
    try:
        _WRITE[form](job)
    except (OSError, RuntimeError) as error:  # HDF5 states the reason only in the text
        for number in (errno.ENOSPC, errno.EDQUOT):
            if os.strerror(number) in str(error) and getattr(error, "errno", None) != number:
                raise OSError(number, os.strerror(number), str(out)) from None
        raise


def _names(bank: Bank, form: Form, prefix: str, suffix: str) -> dict[str, str]:
    """Return the name of each video, in the order of ids."""
    videos: dict[str, str] = {}
    for video in sorted(bank):
        name = pdvc.name(prefix, video, suffix) if form == "pdvc" else f"{prefix}{video}{suffix}"
        if re.search(r"^\.\.|[/\\\x00-\x1f]", name):
            raise ConfigError(f"{name!r} is not a plain file name: give another --prefix or --suffix")
        if name in videos:
            raise ConfigError(f"`--form {form}` has the same name {name!r} for {videos[name]} and {video}: rename one")
        videos[name] = video
    return {video: name for name, video in videos.items()}
