"""Count the questions of Spacewalk-18's line `LLM` and their tokens: see llm.md."""

from functools import cache
from hashlib import sha256

import numpy as np
from tokenizers import Tokenizer

from stepline.backbones.sentence import model_files
from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.methods.llm import _LanguageModel
from stepline.benchmarks.spacewalk.prompts import conversation
from stepline.config import validate
from stepline.plans import plan

TOKENIZER = Tokenizer.from_file(str((model_files("minilm") or {})["tokenizer.json"]))
TOKENIZER.no_truncation()
TOKENIZER.no_padding()


@cache
def tokens(line: str) -> int:
    """Return how many tokens a line has; BERT's kind of tokenizer knows no breaks of lines."""
    return len(TOKENIZER.encode(line, add_special_tokens=False).ids)


def main() -> None:
    """Print a line for each task and release. New questions are those that no release before has."""
    study = plan(validate({"spacewalk": {"llm": {"model": "any", "url": "http://localhost"}}}), "spacewalk")
    print("entry, release: questions, new ones; tokens of the new: mean, most, all in millions")
    for entry, releases in {"2a-llm": ("v0", "v1", "v2"), "2b-llm": ("v0", "v1")}.items():
        asked: dict[str, int] = {}
        for release in releases:
            inputs = SpacewalkInputs(study, study.job(release, entry, "60s"))
            model, listed, known = _LanguageModel(inputs, 60), 0, len(asked)
            for video, items in inputs.items("test").items():
                for question in model._questions(video, items):
                    said = [each["content"] for each in conversation(inputs.entry.task, model._examples, question)]
                    key = sha256("\0".join(said).encode()).hexdigest()
                    if key not in asked:
                        asked[key] = sum(tokens(line) for each in said for line in each.splitlines())
                    listed += 1
            new = np.array([*asked.values()][known:])
            print(f"{entry}, {release}: {listed}, {len(new)}; {new.mean():.0f}, {new.max()}, {new.sum() / 1e6:.1f}")


if __name__ == "__main__":
    main()
