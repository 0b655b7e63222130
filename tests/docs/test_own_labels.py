"""The lines of docs/own-videos.md that turn exports of other tools into a file of segments."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from stepline.datasets.segments import LabelledSpan, read_segments
from tests.conftest import ROOT

(CODE,) = re.findall(
    r"```python check\n(import csv, glob, json\n.*?)```", (ROOT / "docs/own-videos.md").read_text(), re.DOTALL
)
EXPORTS = {
    "elan/soup.txt": """\
steps\t\t00:00:00.500\t0.5\t00:00:02.000\t2.0\t00:00:01.500\t1.5\tcut the "red" ones, then wash
steps\t\t00:00:02.000\t2.0\t00:00:04.250\t4.25\t00:00:02.250\t2.25\tcook
""",
    "boris.csv": """\
Observation id,Observation date,Media file name,Subject,Behavior,Behavior type,Start (s),Stop (s),Duration (s)
soup,2024-01-01,/media/soup.mp4,,"cut the ""red"" ones, then wash",STATE,0.500,2.000,1.500
soup,2024-01-01,/media/soup.mp4,,ring,POINT,1.000,1.000,NA
soup,2024-01-01,/media/soup.mp4,,cook,STATE,2.000,4.250,2.250
""",
    "via.csv": """\
# Exported using VGG Image Annotator (http://www.robots.ox.ac.uk/~vgg/software/via)
# SHAPE_ID = {"POINT":1,"RECTANGLE":2}
# CSV_HEADER = metadata_id,file_list,flags,temporal_coordinates,spatial_coordinates,metadata
"1_a","[""soup.mp4""]",0,"[0.5,2]","[]","{""1"":""cut the \\""red\\"" ones, then wash""}"
"1_b","[""soup.mp4""]",0,"[1]","[2,10,10,20,20]","{""1"":""a carrot""}"
"1_c","[""soup.mp4""]",0,"[2,4.25]","[]","{""1"":""cook""}"
""",
    "activitynet.json": json.dumps(
        {
            "database": {
                "soup": {
                    "subset": "training",
                    "duration": 5.0,
                    "annotations": [
                        {"segment": [0.5, 2], "label": 'cut the "red" ones, then wash'},
                        {"segment": [2, 4.25], "label": "cook"},
                    ],
                }
            }
        }
    ),
}
"""The same two segments in the forms of the tools."""
SEGMENTS = [LabelledSpan(0.5, 2, 'cut the "red" ones, then wash'), LabelledSpan(2, 4.25, "cook")]


@pytest.mark.parametrize("tool", ["elan", "boris", "via", "activitynet"])
def test_an_export_becomes_the_same_segments(tool: str) -> None:
    for name, content in EXPORTS.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(content)
    made: dict[str, Any] = {}
    exec(CODE.replace("*elan]", f"*{tool}]"), made)
    assert read_segments("mine", "labels.csv", {"soup"}) == {"soup": SEGMENTS}
    with open("labels.csv", newline="") as file:
        assert len(list(csv.reader(file))) == 3
