import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.metrics.stemming import stem

WORDS = """
caresses:caress flies:fli dies:die gas:gas gaps:gap kiwis:kiwi this:this agreed:agre feed:feed proceedings:proceed
plastered:plaster bled:bled motoring:motor sing:sing conflated:conflat troubled:troubl sized:size hopping:hop
tanned:tan falling:fall hissing:hiss filing:file hoping:hope cry:cri say:say by:by enjoy:enjoy relational:relat
conditional:condit rational:ration valenci:valenc digitizer:digit conformabli:conform radically:radic
differently:differ vilely:vile analogously:analog vietnamization:vietnam operator:oper feudalism:feudal
decisiveness:decis hopefulness:hope callousness:callous formality:formal sensitivity:sensit sensibility:sensibl
geology:geolog pathology:patholog carefully:care fearlessly:fearless quickly:quick friendly:friend
electricity:electr electrical:electr triplicate:triplic formative:format formalize:formal goodness:good hopeful:hope
revival:reviv allowance:allow inference:infer airliner:airlin gyroscopic:gyroscop adjustable:adjust
defensible:defens irritant:irrit replacement:replac adjustment:adjust dependent:depend adoption:adopt
homologou:homologou communism:communism activate:activ homologous:homolog effective:effect bowdlerize:bowdler
criterion:criterion probate:probat rate:rate cease:ceas controll:control roll:roll rolls:roll skies:sky dying:die
gently:gentl news:news inning:inning exceeded:exceed generate:generat generously:generous communication:communic
arsenal:arsenal yellow:yellow youth:youth syrup:syrup cook's:cook cooks':cook 'tis:tis tomatoes:tomato baking:bake
baked:bake bake:bake slices:slice slicing:slice mixture:mixtur mixing:mix onions:onion boiling:boil sautéed:sauté
350:350 ox:ox a:a
"""


@pytest.mark.parametrize(("word", "expected"), [pair.split(":") for pair in WORDS.split()])
def test_it_is_the_stemmer_of_meteor(word: str, expected: str) -> None:
    """Stems by the class englishStemmer that METEOR 1.5 brings: each rule, the exceptions, words of the kitchen."""
    assert stem(word) == expected


@given(st.text("aeioubcdglnsty'", max_size=9))
def test_a_stem_is_no_longer_than_its_word_and_an_e(word: str) -> None:
    assert len(stem(word)) <= len(word) + 1
