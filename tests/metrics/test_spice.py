import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stepline.backbones.weights import WEIGHTS
from stepline.errors import MissingError, SteplineError
from stepline.metrics import java
from stepline.metrics.spice import missing, spice
from stepline.needs import Need

FILES = [file.name for file in WEIGHTS["corenlp"].files]


@pytest.fixture
def corenlp() -> Path:
    """The weights, of nothing."""
    folder = Path("weights/corenlp")
    folder.mkdir(parents=True)
    for name in FILES:
        (folder / name).touch()
    return folder


PROGRAM = """
import json
words = sys.argv[1:]
asked = json.load(open(words[words.index("edu.anu.spice.SpiceScorer") + 1]))
scores = [
    {"image_id": each["image_id"], "scores": {"Size": {"f": 1}, "All": {"pr": 1, "re": 0, "f": len(each["test"]) / 8}}}
    for each in asked[::-1]
]
json.dump(scores, open(words[words.index("-out") + 1], "w"))
import os, pathlib
json.dump({"words": words, "asked": asked, "folder": os.getcwd()}, open(pathlib.Path(__file__).with_name("saw"), "w"))
"""
"""It scores by the candidate's length, in an order of its own."""


def test_the_program_is_asked_for_pairs_in_a_folder_of_its_own(
    a_java: Callable[[str], None], corenlp: Path, tmp_path: Path
) -> None:
    a_java(PROGRAM)
    assert missing() == ()
    assert spice(["salt", 's\u00e4lt\n"oil"'], ["add", "stir it"]).tolist() == [3 / 8, 7 / 8]
    saw = json.loads((tmp_path / "bin/saw").read_text())
    assert saw["asked"] == [
        {"image_id": 0, "test": "add", "refs": ["salt"]},
        {"image_id": 1, "test": "stir it", "refs": ['s\u00e4lt\n"oil"']},
    ]
    program = tmp_path / "packages/pycocoevalcap/spice/spice-1.0.jar"
    paths = saw["words"][saw["words"].index("-cp") + 1].split(":")
    assert paths == [*(str(corenlp.absolute() / name) for name in FILES), str(program)]
    assert "-cache" not in saw["words"]
    assert not Path(saw["folder"]).exists()
    assert [*program.parent.iterdir()] == [program]


@pytest.mark.usefixtures("corenlp")
def test_there_must_be_a_candidate_for_each_reference(a_java: Callable[[str], None]) -> None:
    a_java(PROGRAM)
    assert spice([], []).shape == (0,)
    with pytest.raises(ValueError, match="zip"):
        spice(["a", "b"], ["a"])


COMPLAINT = "Parsing\nError: Could not score\n\tat Spice\nCaused by: no models\n\tat X\n"


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (f"{PROGRAM}\nsys.exit({COMPLAINT!r})", 1),
        (f"sys.stderr.write({COMPLAINT!r})", 0),
    ],
    ids=["it fails", "it writes nothing"],
)
@pytest.mark.usefixtures("corenlp")
def test_a_program_that_fails_is_an_error_of_one_line(a_java: Callable[[str], None], lines: str, status: int) -> None:
    a_java(lines)
    line = f"SPICE's Java process ended with status {status}: Caused by: no models"
    with pytest.raises(SteplineError, match=f"^{line}$"):
        spice(["a"], ["a"])


def test_what_is_absent_is_a_need_and_never_a_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)
    assert missing() == (Need("java"), Need("package", "pycocoevalcap"), Need("weights", "corenlp"))
    line = (
        "SPICE needs java, package:pycocoevalcap, weights:corenlp: run `apt install default-jre-headless && "
        "pip install -c constraints.txt -e '.[all]' && stepline fetch weights/corenlp`"
    )
    with pytest.raises(MissingError, match=f"^{re.escape(line)}$"):
        spice(["a"], ["a"])


PARSER = """
package edu.anu.spice;
import edu.cmu.meteor.aligner.SynonymDictionary;
import edu.cmu.meteor.util.Constants;
import java.net.URL;
import java.util.*;

/** Each word is an object. */
public class SpiceParser {
    private final SynonymDictionary synonyms;

    public SpiceParser(String cache, int threads, Boolean merge) throws Exception {
        String folder = Constants.DEFAULT_SYN_DIR_URL.toString();
        synonyms = new SynonymDictionary(
            new URL(folder + "/english.exceptions"),
            new URL(folder + "/english.synsets"),
            new URL(folder + "/english.relations"));
    }

    public List<SceneGraph> parseCaptions(List<String> captions, List<Integer> chunks) {
        List<SceneGraph> found = new ArrayList<>();
        for (String caption : captions) {
            SceneGraph scene = new SceneGraph(synonyms, true);
            for (String word : caption.split(" ")) {
                if (!word.isEmpty()) scene.addTuple(new ArrayList<>(List.of(word)));
            }
            found.add(scene);
        }
        return found;
    }

    public List<SceneGraph> parseCaptions(List<String> captions) {
        return parseCaptions(captions, null);
    }
}
"""
ENGINE = """
package edu.anu.spice;
import java.io.Reader;
import java.util.List;
import javax.script.*;

/** An engine "JavaScript" that gives back the text that is to be laid out. */
public class Engine extends AbstractScriptEngine {
    public Object eval(String script, ScriptContext context) {
        put("result", get("jsonString"));
        return null;
    }
    public Object eval(Reader script, ScriptContext context) { return null; }
    public Bindings createBindings() { return new SimpleBindings(); }
    public ScriptEngineFactory getFactory() { return null; }

    public static class Factory implements ScriptEngineFactory {
        public List<String> getNames() { return List.of("JavaScript"); }
        public ScriptEngine getScriptEngine() { return new Engine(); }
        public List<String> getExtensions() { return List.of(); }
        public List<String> getMimeTypes() { return List.of(); }
        public String getEngineName() { return ""; }
        public String getEngineVersion() { return ""; }
        public String getLanguageName() { return ""; }
        public String getLanguageVersion() { return ""; }
        public Object getParameter(String key) { return null; }
        public String getMethodCallSyntax(String object, String method, String... arguments) { return ""; }
        public String getOutputStatement(String text) { return ""; }
        public String getProgram(String... statements) { return ""; }
    }
}
"""


@pytest.mark.slow
def test_the_real_program_scores_what_another_parser_found(corenlp: Path, tmp_path: Path) -> None:
    """All of SPICE on the Java at hand but CoreNLP's parser and Rhino, for which two classes stand in.

    Equal words and synonyms ("large", "big") match; words that are one are counted once.
    """
    program = java.packaged("spice", "spice-1.0.jar")
    graphs = java.packaged("tokenizer", "stanford-corenlp-3.4.1.jar")
    if program is None or graphs is None or shutil.which("javac") is None:
        pytest.skip("this needs a Java compiler and pycocoevalcap")
    for name, text in (("SpiceParser", PARSER), ("Engine", ENGINE)):
        (tmp_path / f"{name}.java").write_text(text)
    words = ["-nowarn", "-d", "made", "-cp", f"{program}:{graphs}", "SpiceParser.java", "Engine.java"]
    subprocess.run(["javac", *words], check=True)
    shutil.copy(graphs, corenlp / FILES[0])
    with zipfile.ZipFile(corenlp / FILES[1], "w") as jar:
        for path in sorted(Path("made").rglob("*.class")):
            jar.write(path, path.relative_to("made"))
        jar.writestr("META-INF/services/javax.script.ScriptEngineFactory", "edu.anu.spice.Engine$Factory\n")
    for name in FILES[2:]:
        zipfile.ZipFile(corenlp / name, "w").close()
    references = ["large dog cat", "salt", "s\u00e4lt oil", "", "salt salt pan"]
    candidates = ["big dog", "", "s\u00e4lt", "", "pan pot salt"]
    found = spice(references, candidates)
    assert found == pytest.approx(np.array([0.8, 0, 2 / 3, 0, 0.8]))
    assert spice(references[::-1], candidates[::-1]) == pytest.approx(found[::-1])
