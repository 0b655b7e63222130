"""The verb `weights`: what is there, what brings the rest, and whether it is what it should be."""

import argparse
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline import models
from stepline.cli.lines import columns
from stepline.errors import MissingError, SteplineError, StoreError

if TYPE_CHECKING:
    from stepline.backbones.weights import Weights

    Verbs = argparse._SubParsersAction[Any]


def add(verbs: "Verbs") -> None:
    """Add the verb."""
    verb = verbs.add_parser("weights", help="list, fetch and check the networks' published weights")
    actions = verb.add_subparsers(dest="action", metavar="ACTION", required=True)
    action = actions.add_parser("list", help="the files, where they are, their licences and where they come from")
    action.set_defaults(run=_list)
    action = actions.add_parser("get", help="bring weights, as `stepline fetch weights/NAME` does")
    action.add_argument("name", metavar="NAME")
    action.set_defaults(run=_get)
    action = actions.add_parser("check", help="sizes and sha256, and whether each network that they are for loads them")
    action.add_argument("name", metavar="NAME", nargs="?", help="default: all that are there")
    action.set_defaults(run=_check)


def _list(_: argparse.Namespace) -> None:
    from stepline.backbones.weights import WEIGHTS

    lines: list[tuple[str, ...]] = [("name", "file", "bytes", "where", "sha256", "licence", "origin")]
    lines += [line for weights in WEIGHTS.values() for line in _lines(weights)]
    print(columns(lines))


def _lines(weights: "Weights") -> list[tuple[str, ...]]:
    from stepline.backbones.weights import place, trusted

    folder = place(weights)
    where = "absent" if folder is None else "mirror" if folder.is_absolute() else "here"
    fetched = trusted(folder) if folder else {}
    lines: list[tuple[str, ...]] = []
    for file in weights.files:
        size = (folder / file.name).stat().st_size if folder else file.size
        known = "first use" if file.name in fetched else "as supplied" if folder else ""
        state = "pinned" if file.sha256 else known
        lines.append((weights.name, file.name, str(size or ""), where, state, weights.licence, weights.origin))
    return lines


def _get(parsed: argparse.Namespace) -> None:
    from stepline.fetch import fetch_weights

    fetch_weights(parsed.name)


def _check(parsed: argparse.Namespace) -> None:
    from stepline.backbones.weights import WEIGHTS, how_to_get, place, weights_of

    names = [parsed.name] if parsed.name else [name for name in WEIGHTS if place(WEIGHTS[name])]
    if not names:
        print("no weights are there: `stepline weights list` names them")
    failed = []
    for name in names:
        folder = place(weights_of(name))
        if folder is None:
            raise MissingError(f"weights {name} are absent: run `{how_to_get(name)}`")
        try:
            loaded = _loaded(name, folder)
        except SteplineError as error:
            if parsed.name:
                raise
            failed.append(name)
            print(f"{name}: {error}", flush=True)
        else:
            print(f"{name}: {folder}: loads as {', '.join(loaded) or 'nothing that is known here'}", flush=True)
    if failed:
        raise StoreError(f"{len(failed)} of {len(names)} weights are not what they should be: {', '.join(failed)}")


def _loaded(name: str, folder: Path) -> list[str]:
    """Check the files and load each network, text tower, encoder and head that they are for; return their names.

    Those that need other weights too are for the first that they name. A metric of captions scores one.
    """
    from stepline.backbones import registry, weights
    from stepline.backbones.sentence import MODELS, SentenceEncoder
    from stepline.io import sha256_file
    from stepline.metrics.step_captions import SCORERS, WEIGHTS

    weights.check(name, folder, sha256_file)
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
