"""In a server of forks, does what a test's words say in the place of a verb."""

import json
import os
import subprocess
import sys
import time
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path


def square(number: int) -> int:
    return number * number


def show(*words: str) -> None:
    print(json.dumps({"words": words, "folder": os.getcwd(), "environment": dict(os.environ)}))
    print(f"python {sys.executable}, parent {os.getppid()}, {sys.stdin.read()}", file=sys.stderr)


def fail(why: str) -> None:
    raise RuntimeError(why)


def die(number: str) -> None:
    os.kill(os.getpid(), int(number))


def wait(file: str) -> None:
    nothing = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    child = subprocess.Popen(["sleep", "1000"], **nothing)
    Path(file).write_text(f"{os.getpid()} {child.pid} {os.getppid()}")
    try:
        child.wait()
    finally:
        child.kill()


def burn(seconds: str) -> None:
    while time.process_time() < float(seconds):
        sum(range(10_000))


def spawn(number: str) -> None:
    with get_context("spawn").Pool(1) as pool:
        print(pool.apply(square, (int(number),)))


def imports(name: str) -> None:
    print(name in sys.modules)
    if name == "torchvision":
        import_module("stepline.backbones.torchvision").make_importable()
    import_module(name)


encode = extract = imports


def leave(code: str) -> None:
    sys.exit(int(code))


def main() -> int:
    """Call what the first word names with the others."""
    globals()[sys.argv[1]](*sys.argv[2:])
    return 0


if "stepline.forkserver.server" in sys.orig_argv:
    from stepline import cli

    cli.main = main
