"""What a whole data set waits for."""

from stepline import paths
from stepline.pipeline import media_params
from tests.pipeline.own import made


def test_the_table_counts_what_all_stages_made() -> None:
    folders = paths.media("mine"), paths.shots("mine"), paths.transcripts("mine", "pocketsphinx")
    wanted = [paths.manifest(folder, "000") for folder in folders]
    wanted += [paths.availability("mine", "000"), *made().features.manifests("histogram")]
    assert sorted(made().summary_inputs()) == sorted(wanted)


def test_keeping_videos_or_not_decides_no_number() -> None:
    one, other = made(), made(media={"keep": "none"})
    assert media_params(one.config) == media_params(other.config)
    assert one.features.params("histogram", "000") == other.features.params("histogram", "000")
