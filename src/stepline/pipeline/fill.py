"""The commands that install or download what is missing."""

from collections.abc import Sequence

from stepline.asr import weights as recognisers
from stepline.backbones import weights as backbones
from stepline.errors import MissingError
from stepline.needs import Need, how_to_install

EXTRAS = {"decord": "decord", "obstore": "s3", "openpyxl": "coin"}
"""Package -> the extra that installs it; ``all`` installs the others."""


def how_to_fill(need: Need) -> str:
    """Return the command that installs or downloads what is missing; "" if there is none."""
    if need.kind == "weights":
        known = need.what in backbones.WEIGHTS or ":" in need.what
        return backbones.how_to_get(need.what) if known else recognisers.how_to_get(need.what)
    commands = {
        "videos": f"stepline fetch {need.what}/videos",
        "key": f"export {need.what}=...",
        "java": "apt install default-jre-headless",
        "package": how_to_install(EXTRAS.get(need.what, "all")),
    }
    return commands.get(need.kind, "")


def require(what: str, needs: Sequence[Need]) -> None:
    """Raise MissingError, which names the needs of ``what`` and the commands to run, if there are any needs."""
    if needs:
        commands = " && ".join(dict.fromkeys(map(how_to_fill, needs)))
        raise MissingError(f"{what} needs {', '.join(map(str, needs))}: run `{commands}`")
