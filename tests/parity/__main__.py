"""Compares a network with outputs of its reference implementation, see ``tests.parity``.

It prints the error and the largest allowed error of each output. It exits with 0 if every error is allowed, with 1 if
one is not, and with 2 if the network and the files cannot be compared.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from tests.parity import NETWORKS, Output, check


def main(words: Sequence[str] | None = None) -> int:
    """Compare, print the errors and return the exit code."""
    parser = argparse.ArgumentParser("python -m tests.parity", description=__doc__)
    parser.add_argument("name", metavar="NAME", choices=NETWORKS, help=", ".join(NETWORKS))
    parser.add_argument("--manifest", type=Path, required=True, help="the names, shapes and fill rules of the weights")
    parser.add_argument("--golden", type=Path, required=True, help="the outputs of the reference")
    parser.add_argument("--tolerance", type=float, help="allow this error of every float, not each output's own")
    parser.add_argument("--anchors", type=Path, help="a folder of public outputs of the real weights, compared too")
    parsed = parser.parse_args(words)
    outputs = []
    try:
        for output in _outputs(parsed):
            outputs.append(output)
            print(
                f"{output.name:56} {output.error:.2e} of {output.allowed:.1e}{'' if output.agrees else ' !'}",
                flush=True,
            )
    except Exception as error:  # noqa: BLE001 - whatever prevents the comparison
        print(f"{parsed.name} cannot be compared: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    wrong = [output.name for output in outputs if not output.agrees]
    if wrong:
        print(f"{parsed.name} differs from the reference in {len(wrong)} of {len(outputs)} outputs, such as {wrong[0]}")
        return 1
    worst = max(outputs, key=lambda output: output.error)
    print(f"{parsed.name} matches the reference: error at most {worst.error:.2e} of {worst.allowed:.1e}")
    return 0


def _outputs(parsed: argparse.Namespace) -> Iterator[Output]:
    for output in check(parsed.name, parsed.manifest, parsed.golden):
        yield output if parsed.tolerance is None else replace(output, tolerance=parsed.tolerance)
    if parsed.anchors:
        yield from import_module(f"tests.parity.{parsed.name}").anchors(parsed.anchors)


if __name__ == "__main__":
    sys.exit(main())
