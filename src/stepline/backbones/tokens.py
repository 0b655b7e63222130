"""Tokenizers of the hub: ``tokenizer.json``."""

from pathlib import Path

from tokenizers import Tokenizer

from stepline.errors import StoreError


def read(path: Path, max_tokens: int) -> Tokenizer:
    """Return the tokenizer of a file, which cuts texts and pads none; raise StoreError if the file is not one."""
    try:
        found = Tokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001 - tokenizers raises no other class
        raise StoreError(f"{path} is not a tokenizer: {' '.join(str(error).split())[:200]}: remove it") from None
    found.enable_truncation(max_length=max_tokens)
    found.no_padding()
    return found
