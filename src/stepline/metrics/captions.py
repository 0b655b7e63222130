"""Caption metrics on tokens: BLEU, CIDEr-D and ROUGE-L as in ``pycocoevalcap``, and a METEOR that matches stems only.

Each metric is a ``Scorer``: it takes the references and candidates of N segments and returns ``Scores``. So is the real
METEOR in ``stepline.metrics.meteor``.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import snowballstemmer
from numpy.typing import NDArray

Tokens = list[str]


class Scores(NamedTuple):
    """corpus: the score of all segments together, which is not always their mean. segments: (N,), one score each."""

    corpus: float
    segments: NDArray[np.float64]


_STEMMER = snowballstemmer.stemmer("english")
Scorer = Callable[[Sequence[Sequence[Tokens]], Sequence[Tokens]], Scores]
"""Scores candidates against references: each segment has one candidate and at least one reference.

Raises ValueError if there are no segments, if the two numbers differ, or if a segment has no reference.
"""

_TYPOGRAPHY = str.maketrans(
    {"‘": "'", "’": "'", "“": '"', "”": '"', "–": " -- ", "—": " -- ", "…": "...", "˚": " ˚"}
    | {"½": " 1/2 ", "¼": " 1/4 ", "¾": " 3/4 ", "⅓": " 1/3 ", "⅔": " 2/3 "}
)
_CLITIC = r"'(?:s|re|ve|ll|d|m)\b"
_TOKEN = re.compile(
    rf"""
    n't\b | {_CLITIC}                                           # the second half of a contraction
  | \b(?:can(?=not\b) | (?:gon|wan)(?=na\b) | got(?=ta\b))      # the first half of two words in one
  | (?-i:[A-Z]+(?:&[A-Z]+)+)                                    # M&M
  | (?<!\w)(?:[a-z](?:\.[a-z])*|etc|vs)\.(?!\w|(?-i:\ [A-Z]))   # p.m.
  | (?<!\w)[-+]?\d+(?:[.,:]\d+)+(?:-\w+)?                  # 1,000 and 1.5-quart
  | (?<!\w)[-+]\d+                                              # -5
  | [.,]\d+                                                     # .5
  | [a-z]\w*(?:\.[a-z]\w*)+                                     # two sentences without a space between them
  | \w+?(?=n't\b)                                               # the first half of a contraction
  | [\w˚]+(?:(?:[-/]|(?<=[a-z])(?!{_CLITIC})'(?=[a-z]))\w+)*    # medium-high, 1/2, o'clock
  | [!?]{{2,}}
  | \S
    """,
    re.VERBOSE | re.IGNORECASE,
)
_BRACKETS = {"(": "-lrb-", ")": "-rrb-", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-"}
_PUNCTUATION = set(".?!,:;-'`\"\x7f")


def ascii_only(text: str) -> str:
    """Return ``text`` with each non-ASCII character replaced by a space, as densevid does before scoring."""
    return re.sub(r"[^\x00-\x7f]", " ", text)


def tokenise(text: str) -> Tokens:
    """Return the lower-case tokens of ``text`` without punctuation, close to those of coco-caption's PTBTokenizer.

    PTBTokenizer is Stanford's Penn Treebank tokeniser, in Java. The tokens here differ in rare abbreviations,
    addresses, smileys and similar text. Brackets are tokens in both (``-lrb-``).
    """
    found = _TOKEN.findall(text.translate(_TYPOGRAPHY))
    return [_BRACKETS.get(token, token.lower()) for token in found if token not in _PUNCTUATION]


def bleu(references: Sequence[Sequence[Tokens]], candidates: Sequence[Tokens], n: int = 4) -> Scores:
    """Return BLEU of 1- to ``n``-grams, in [0, 1], with the reference length closest to the candidate's length.

    Papineni et al. (2002). The smoothing constants for absent n-grams are those of ``pycocoevalcap``.
    """
    check_segments(references, candidates)
    rows = []
    for group, candidate in zip(references, candidates, strict=True):
        reference_length = min((abs(len(each) - len(candidate)), len(each)) for each in group)[1]
        correct, possible = [], []
        for k in range(1, n + 1):
            most: Counter[tuple[str, ...]] = Counter()
            for each in group:
                most |= _ngrams(each, k)
            correct.append((_ngrams(candidate, k) & most).total())
            possible.append(max(0, len(candidate) - k + 1))
        rows.append([len(candidate), reference_length, *correct, *possible])
    counts = np.array(rows, dtype=np.float64)
    values = [_bleu(row, n) for row in (counts.sum(axis=0), *counts)]
    return Scores(values[0], np.array(values[1:]))


def _bleu(counts: NDArray[np.float64], n: int) -> float:
    """Return BLEU from (candidate length, reference length, n counts of matches, n counts of possible matches)."""
    precisions = (counts[2 : 2 + n] + 1e-15) / (counts[2 + n :] + 1e-9)
    ratio = (counts[0] + 1e-15) / (counts[1] + 1e-9)
    return float(precisions.prod() ** (1 / n) * math.exp(min(0, 1 - 1 / ratio)))


def cider(references: Sequence[Sequence[Tokens]], candidates: Sequence[Tokens]) -> Scores:
    """Return CIDEr-D of 1- to 4-grams, in [0, 10], with sigma 6.

    Document frequencies come from the references passed in, so the score of a segment depends on the other segments,
    and a single segment scores 0. The corpus score is the mean.
    Vedantam et al. (2015). Length is counted in 2-grams, as in ``pycocoevalcap``.
    """
    check_segments(references, candidates)
    documents = Counter(
        gram
        for group in references
        for gram in {gram for each in group for k in range(1, 5) for gram in _ngrams(each, k)}
    )

    def vectors(tokens: Tokens) -> list[dict[tuple[str, ...], float]]:
        return [
            {gram: count * math.log(len(references) / max(1, documents[gram])) for gram, count in grams.items()}
            for grams in (_ngrams(tokens, k) for k in range(1, 5))
        ]

    def similarity(candidate: Tokens, reference: Tokens) -> float:
        apart = max(0, len(candidate) - 1) - max(0, len(reference) - 1)
        cosines = []
        for ours, theirs in zip(vectors(candidate), vectors(reference), strict=True):
            product = sum(min(weight, theirs[gram]) * theirs[gram] for gram, weight in ours.items() if gram in theirs)
            norms = math.hypot(*ours.values()) * math.hypot(*theirs.values())
            cosines.append(product / norms if norms else 0.0)
        return math.exp(-(apart**2) / 72) * math.fsum(cosines) / 4

    return _mean_of(
        [
            10 * math.fsum(similarity(candidate, each) for each in group) / len(group)
            for group, candidate in zip(references, candidates, strict=True)
        ]
    )


def rouge_l(references: Sequence[Sequence[Tokens]], candidates: Sequence[Tokens]) -> Scores:
    """Return ROUGE-L, in [0, 1]: the F-score (beta 1.2) of the best precision and best recall over all references.

    The corpus score is the mean. A candidate or reference without tokens counts as one empty token.
    Lin (2004), as in ``pycocoevalcap``.
    """
    check_segments(references, candidates)
    values = []
    for group, candidate in zip(references, candidates, strict=True):
        ours = candidate or [""]
        common = [(_common(ours, each or [""]), len(each) or 1) for each in group]
        precision = max(length for length, _ in common) / len(ours)
        recall = max(length / total for length, total in common)
        values.append(2.44 * precision * recall / (recall + 1.44 * precision) if precision else 0.0)
    return _mean_of(values)


def _common(first: Tokens, second: Tokens) -> int:
    """Return the length of the longest common subsequence."""
    row = [0] * (len(second) + 1)
    for token in first:
        before = row
        row = [0]
        for j, other in enumerate(second):
            row.append(before[j] + 1 if token == other else max(row[j], before[j + 1]))
    return row[-1]


class _Alignment(NamedTuple):
    """The match of a candidate and a reference: lengths, exact matches, stem-only matches, and chunks.

    If all words of both match in one chunk, ``chunks`` is 0, because nothing is fragmented.
    """

    candidate: int
    reference: int
    exact: int
    stems: int
    chunks: int

    def score(self) -> float:
        matches = self.exact + self.stems
        if not matches:
            return 0.0
        weight = self.exact + 0.6 * self.stems
        precision, recall = weight / self.candidate, weight / self.reference
        mean = precision * recall / (0.85 * precision + 0.15 * recall)
        return mean * (1 - 0.6 * math.pow(self.chunks / matches, 0.2))


def meteor_stem(references: Sequence[Sequence[Tokens]], candidates: Sequence[Tokens]) -> Scores:
    """Return METEOR 1.5 with exact and stem matches only, in [0, 1]: no synonyms, no paraphrases, no Java.

    NOT comparable with METEOR in papers; use ``stepline.metrics.meteor`` for that. All words count as content words.
    The parameters are the English ones: alpha 0.85, beta 0.2, gamma 0.6, weights 1 and 0.6. The corpus score pools the
    alignments of all segments, each with its best reference. Denkowski and Lavie (2014).
    """
    check_segments(references, candidates)
    best = [
        max((_align(candidate, each) for each in group), key=_Alignment.score)
        for group, candidate in zip(references, candidates, strict=True)
    ]
    together = _Alignment(*(sum(column) for column in zip(*best, strict=True)))
    return Scores(together.score(), np.array([each.score() for each in best]))


def _align(candidate: Tokens, reference: Tokens) -> _Alignment:
    """Return the alignment with the most matches, then the fewest chunks, then the least crossing.

    This is a beam search over the candidate's words with 40 states, as in METEOR. A word may stay unmatched only if
    enough later words have its stem to fill all free positions.
    """
    ours, theirs = _STEMMER.stemWords(candidate), _STEMMER.stemWords(reference)
    following = Counter(ours)
    # (taken positions, position of the previous word) -> (chunks, distance, stem-only matches)
    states = {(frozenset[int](), -2): (0, 0, 0)}
    for i, each in enumerate(ours):
        following[each] -= 1
        places = [j for j, other in enumerate(theirs) if other == each]
        reached: dict[tuple[frozenset[int], int], tuple[int, int, int]] = {}
        for (taken, last), (chunks, distance, stems) in states.items():
            free = [j for j in places if j not in taken]
            options = {
                (taken | {j}, j): (
                    chunks + (j != last + 1),
                    distance + abs(i - j),
                    stems + (candidate[i] != reference[j]),
                )
                for j in free
            }
            if following[each] >= len(free):
                options[taken, -2] = (chunks, distance, stems)
            for state, cost in options.items():
                reached[state] = min(cost, reached.get(state, cost))
        states = dict(sorted(reached.items(), key=lambda item: item[1])[:40])
    chunks, _, stems = min(states.values())
    matches = (Counter(ours) & Counter(theirs)).total()
    whole = chunks == 1 and matches == len(candidate) == len(reference)
    return _Alignment(len(candidate), len(reference), matches - stems, stems, 0 if whole else chunks)


def _ngrams(tokens: Tokens, k: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[start:] for start in range(k)), strict=False))


def check_segments(references: Sequence[Sequence[Tokens]], candidates: Sequence[Tokens]) -> None:
    """Raise ValueError if the segments cannot be scored, as every Scorer does."""
    if len(references) != len(candidates):
        raise ValueError(f"{len(references)} segments of references and {len(candidates)} candidates")
    if not candidates:
        raise ValueError("no segments to score")
    if not all(references):
        raise ValueError("a segment has no reference")


def _mean_of(values: list[float]) -> Scores:
    return Scores(math.fsum(values) / len(values), np.array(values))
