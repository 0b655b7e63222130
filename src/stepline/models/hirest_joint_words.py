"""The words of HiREST's joint model: those of bert-base-uncased, which all-MiniLM-L6-v2 has too."""

from collections.abc import Sequence

from stepline.backbones.sentence import MODELS, PACKAGED, model_files
from stepline.errors import MissingError, StoreError
from stepline.mirror import cached_sha256

ENCODER = "minilm"


class Words:
    """Texts as word ids and back, as the release does it."""

    def __init__(self) -> None:
        """Load the vocabulary; raise MissingError where it is absent, StoreError where it is another one."""
        from tokenizers import Tokenizer

        files = model_files(ENCODER)
        if files is None:
            package = PACKAGED[ENCODER].replace("_", "-")
            raise MissingError(f"the words of bert-base-uncased are absent: install {package}")
        path, expected = files["tokenizer.json"], MODELS[ENCODER].tokenizer_sha256
        if (found := cached_sha256(path)) != expected:
            raise StoreError(f"{path} is not {MODELS[ENCODER].model}'s: sha256 {found}, expected {expected}")
        self._tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text's words, without a beginning or an end."""
        ids: list[int] = self._tokenizer.encode(text.strip(), add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, its words apart by a space, parts of a word together."""
        words = [str(self._tokenizer.id_to_token(number)) for number in ids]
        return " ".join(words).replace(" ##", "").strip("#").strip()
