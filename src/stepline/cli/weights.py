"""The verb `weights`: lists, fetches and checks weights."""

import argparse
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline import models
from stepline.cli.lines import columns
from stepline.config import is_there, load
from stepline.errors import MissingError, SteplineError, StoreError

if TYPE_CHECKING:
    Verbs = argparse._SubParsersAction[Any]


def add(verbs: "Verbs") -> None:
    """Add the verb."""
    verb = verbs.add_parser("weights", help="list, fetch and check the published weights of networks")
    actions = verb.add_subparsers(dest="action", metavar="ACTION", required=True)
    action = actions.add_parser(
        "list", help="list the files, also of the configured models by name, with location, licence and origin"
    )
    action.set_defaults(run=_list)
    action = actions.add_parser("get", help="fetch weights, like `stepline fetch weights/NAME`")
    action.add_argument("name", metavar="NAME")
    action.set_defaults(run=_get)
    action = actions.add_parser(
        "check", help="check sizes and sha256, and load the weights into each of their networks"
    )
    action.add_argument("name", metavar="NAME", nargs="?", help="default: all weights in the mirror or this folder")
    action.set_defaults(run=_check)


def _list(parsed: argparse.Namespace) -> None:
    from stepline.backbones.weights import WEIGHTS

    lines: list[tuple[str, ...]] = [("name", "file", "bytes", "where", "sha256", "licence", "origin")]
    lines += [line for name in (*WEIGHTS, *_by_name(parsed)) for line in _lines(name)]
    print(columns(lines))


def _by_name(parsed: argparse.Namespace) -> list[str]:
    """Return the weights of the configured models by name; [] without a configuration."""
    from stepline.backbones.registry import weights_by_name

    return weights_by_name(load(parsed.configfile)) if is_there(parsed.configfile) else []


def _lines(name: str) -> list[tuple[str, ...]]:
    from stepline.backbones.weights import place, present, trusted, weights_of

    try:
        weights = weights_of(name)
    except MissingError as error:
        return [(name, "", "", "unknown", "", "", str(error))]
    folder = place(weights)
    where = "absent" if folder is None else "mirror" if folder.is_absolute() else "here"
    fetched = trusted(folder) if folder else {}
    lines: list[tuple[str, ...]] = []
    for file in weights.files:
        for each in present(folder, file) if folder else [file.name]:
            size = (folder / each).stat().st_size if folder else file.size
            known = "first use" if each in fetched else "as supplied" if folder else ""
            state = "pinned" if file.sha256 else known
            found = "optional" if file.optional and not folder else where
            lines.append((name, each, str(size or ""), found, state, weights.licence, weights.origin))
    return lines


def _get(parsed: argparse.Namespace) -> None:
    from stepline.fetch import fetch_weights

    fetch_weights(parsed.name)


def _check(parsed: argparse.Namespace) -> None:
    from stepline.backbones.weights import WEIGHTS, how_to_get, place, weights_of

    names = [parsed.name] if parsed.name else [name for name in (*WEIGHTS, *_by_name(parsed)) if _is_there(name)]
    if not names:
        print("no weights found: `stepline weights list` lists them")
    failed = []
    for name in names:
        folder = place(weights_of(name))
        if folder is None:
            raise MissingError(f"weights {name} are missing: run `{how_to_get(name)}`")
        try:
            loaded = _loaded(name, folder)
        except SteplineError as error:
            if parsed.name:
                raise
            failed.append(name)
            print(f"{name}: {error}", flush=True)
        else:
            print(f"{name}: {folder}: loads as {', '.join(loaded) or 'no known network'}", flush=True)
    if failed:
        raise StoreError(f"{len(failed)} of {len(names)} weights failed the check: {', '.join(failed)}")


def _is_there(name: str) -> bool:
    from stepline.backbones.weights import place, weights_of

    try:
        return place(weights_of(name)) is not None
    except MissingError:  # the library that knows it is not installed
        return False


def _loaded(name: str, folder: Path) -> list[str]:
    """Check the files and load each network, text tower, encoder and head that uses them; return their names.

    A network that needs several weights counts only for the first. A caption metric scores one caption.
    """
    from stepline.backbones import registry, weights
    from stepline.backbones.sentence import MODELS, SentenceEncoder
    from stepline.io import sha256_file
    from stepline.metrics.step_captions import SCORERS, WEIGHTS

    weights.check(name, folder, sha256_file)
    if ":" in name:
        return _loaded_by_name(name)
    if name in WEIGHTS:
        SCORERS[WEIGHTS[name]](["salt"], ["salt"])
        return [WEIGHTS[name]]
    if name in MODELS:
        encoder = SentenceEncoder(name)
        encoder.encode(encoder.tokens(""))
        return [MODELS[name].model]
    if name in models.WEIGHTS:
        (file,) = weights.WEIGHTS[name].files
        load = getattr(import_module("stepline.models.hirest_joint_release"), models.WEIGHTS[name])
        return [type(load(folder / file.name)).__name__]
    networks = [spec for spec in registry.networks_of(name) if spec.weights[0] == name]
    towers = [spec for spec in registry.towers().values() if spec.weights[0] == name]
    for spec in {(spec.architecture, spec.model, spec.weights): spec for spec in networks}.values():
        import_module(registry.FAMILIES[spec.architecture]).load(spec, registry.files_of(spec.weights))
    for tower in towers:
        import_module(registry.FAMILIES[tower.architecture]).load_text(tower, registry.files_of(tower.weights))
    return [spec.name for spec in (*networks, *towers)]


def _loaded_by_name(name: str) -> list[str]:
    """Load a model by name, and its text tower if its tokenizer is there; return their names.

    name: that of the model, or of its tokenizer, with which only the text tower is loaded.
    """
    from stepline.backbones import named, registry, weights

    model = name.removesuffix(named.TOKENIZER)
    if weights.locate(model) is None:
        return []
    spec = named.spec(model)
    tower = registry.tower_of(spec)
    if model == name:
        named.load(spec, registry.files_of(spec.weights))
    loaded = [spec.name] if model == name else []
    if tower and all(map(weights.locate, tower.weights)):
        named.load_text(tower, registry.files_of(tower.weights))
        loaded.append(tower.name)
    return loaded
