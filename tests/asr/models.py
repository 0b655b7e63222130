"""Tiny speech models of random numbers, with the tokens and the files of real ones."""

import json
from pathlib import Path

import tokenizers
import torch
import transformers
from whisper.tokenizer import get_tokenizer

LENGTH = 16
"""Maximum number of tokens of a window."""


def randomise(network: torch.nn.Module, std: float = 0.3) -> None:
    generator = torch.Generator().manual_seed(0)
    for part in network.parameters():
        torch.nn.init.normal_(part, std=std, generator=generator)


def whisper(folder: Path, *, multilingual: bool) -> Path:
    """Write a Whisper of transformers with one small layer, and the tokens of the real one."""
    whole = get_tokenizer(multilingual, num_languages=99).encoding
    special = whole._special_tokens
    start, end = special["<|startoftranscript|>"], special["<|endoftext|>"]
    own = {"decoder_start_token_id": start, "pad_token_id": end, "bos_token_id": end, "eos_token_id": end}
    config = transformers.WhisperConfig(
        vocab_size=whole.n_vocab, num_mel_bins=80, d_model=48, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=48, decoder_ffn_dim=48, **own,
    )  # fmt: skip
    network = transformers.WhisperForConditionalGeneration(config)
    randomise(network)
    network.save_pretrained(folder)
    many = {
        "lang_to_id": {token: place for token, place in special.items() if start < place < special["<|translate|>"]},
        "task_to_id": {task: special[f"<|{task}|>"] for task in ("transcribe", "translate")},
    }
    transformers.GenerationConfig(
        is_multilingual=multilingual,
        no_timestamps_token_id=special["<|notimestamps|>"],
        max_initial_timestamp_index=50,
        max_length=LENGTH,
        begin_suppress_tokens=[220, end],
        suppress_tokens=[special["<|startoftranscript|>"]],
        **(many if multilingual else {}),
        **own,
    ).save_pretrained(folder)
    transformers.WhisperFeatureExtractor().save_pretrained(folder)
    letters = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    assert len(letters) == 256
    printable = [b for b in range(256) if chr(b) in letters]
    shown = {b: chr(b) for b in printable} | {
        b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in printable)
    }
    tokens = {"".join(map(shown.get, token)): rank for token, rank in whole._mergeable_ranks.items()}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=tokens, merges=[]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens([token for token in sorted(special, key=special.get) if not token[2].isdigit()])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "WhisperTokenizer"}))
    return folder


def faster_whisper(source: Path, folder: Path) -> Path:
    """Convert a Whisper of transformers, as docs/transcripts.md does."""
    from ctranslate2.converters import TransformersConverter

    TransformersConverter(str(source), copy_files=["tokenizer.json", "preprocessor_config.json"]).convert(str(folder))
    return folder
