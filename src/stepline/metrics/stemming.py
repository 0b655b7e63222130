"""The English stemmer of Snowball, "Porter2": what METEOR 1.5 calls a stem."""

import re
from functools import cache

_VOWELS = "aeiouy"
_REGION = re.compile(f"[{_VOWELS}][^{_VOWELS}]")
_SHORT = re.compile(f"(?:^|.*[^{_VOWELS}])[{_VOWELS}][^{_VOWELS}wxY]|[{_VOWELS}][^{_VOWELS}]")
_SPECIAL = {
    "skis": "ski",
    "skies": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "idly": "idl",
    "gently": "gentl",
    "ugly": "ugli",
    "early": "earli",
    "only": "onli",
    "singly": "singl",
} | {word: word for word in ("sky", "news", "howe", "atlas", "cosmos", "bias", "andes")}
_FINISHED = {"inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed"}
_SECOND = {
    "ization": "ize",
    "ational": "ate",
    "fulness": "ful",
    "ousness": "ous",
    "iveness": "ive",
    "tional": "tion",
    "biliti": "ble",
    "lessli": "less",
    "entli": "ent",
    "ation": "ate",
    "alism": "al",
    "aliti": "al",
    "ousli": "ous",
    "iviti": "ive",
    "fulli": "ful",
    "enci": "ence",
    "anci": "ance",
    "abli": "able",
    "izer": "ize",
    "ator": "ate",
    "alli": "al",
    "bli": "ble",
    "ogi": "og",
    "li": "",
}
_THIRD = {
    "ational": "ate",
    "tional": "tion",
    "alize": "al",
    "icate": "ic",
    "iciti": "ic",
    "ative": "",
    "ical": "ic",
    "ness": "",
    "ful": "",
}
_FOURTH = {
    **dict.fromkeys(("ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous"), ""),
    **dict.fromkeys(("ive", "ize", "ion", "al", "er", "ic"), ""),
}


@cache
def stem(word: str) -> str:
    """Return the stem of a lower-case English word (Porter 2002, snowballstem.org/algorithms/english).

    Words of one or two characters and those without letters are their own stems.
    """
    if word in _SPECIAL:
        return _SPECIAL[word]
    if len(word) < 3:
        return word
    word = re.sub(f"(?:^|(?<=[{_VOWELS}]))y", "Y", word.removeprefix("'"))
    prefix = re.match("gener|commun|arsen", word)
    first = prefix.end() if prefix else _region(word, 0)
    second = _region(word, first)
    word = re.sub(r"('s'|'s|')$", "", word)
    word = _plural(word)
    if word in _FINISHED:
        return word
    word = _past(word, first)
    word = re.sub(f"(?<=.)(?<=[^{_VOWELS}])[yY]$", "i", word) if len(word) > 2 else word
    word = _without(word, _SECOND, first, second)
    word = _without(word, _THIRD, first, second)
    word = _without(word, _FOURTH, second, second)
    kept = word[:-1]
    bare = word.endswith(("e", "ll")) and len(kept) >= second
    if bare or (word.endswith("e") and len(kept) >= first and not _SHORT.fullmatch(kept)):
        word = kept
    return word.replace("Y", "y")


def _region(word: str, start: int) -> int:
    """Return where the part after the first consonant behind a vowel begins, from ``start`` on."""
    found = _REGION.search(word, start)
    return found.end() if found else len(word)


def _plural(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ied", "ies")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")) and re.search(f"[{_VOWELS}]", word[:-2]):
        return word[:-1]
    return word


def _past(word: str, first: int) -> str:
    """Return ``word`` without -ed and -ing, and what is left of it repaired."""
    ending = next((e for e in ("eedly", "ingly", "edly", "eed", "ing", "ed") if word.endswith(e)), "")
    kept = word[: len(word) - len(ending)]
    if ending in ("eedly", "eed"):
        return f"{kept}ee" if len(kept) >= first else word
    if not ending or not re.search(f"[{_VOWELS}]", kept):
        return word
    if kept.endswith(("at", "bl", "iz")):
        return f"{kept}e"
    if re.search(r"(bb|dd|ff|gg|mm|nn|pp|rr|tt)$", kept):
        return kept[:-1]
    return f"{kept}e" if len(kept) <= first and _SHORT.fullmatch(kept) else kept


def _without(word: str, endings: dict[str, str], region: int, second: int) -> str:
    """Return ``word`` with its longest of ``endings`` replaced, where that begins in ``region`` or later."""
    ending = next((e for e in endings if word.endswith(e)), None)
    if ending is None:
        return word
    kept = word[: len(word) - len(ending)]
    before = {"ogi": "l", "li": "cdeghkmnrt", "ion": "st"}.get(ending)
    allowed = len(kept) >= (second if ending == "ative" else region) and (not before or kept.endswith(tuple(before)))
    return kept + endings[ending] if allowed else word
