"""Which command brings what is missing."""

from stepline.asr import weights as recognisers
from stepline.backbones import weights as backbones
from stepline.needs import Need


def how_to_fill(need: Need) -> str:
    """Return the command that brings what is missing; "" for what no command brings."""
    if need.kind == "weights":
        known = need.what in backbones.WEIGHTS or ":" in need.what
        return backbones.how_to_get(need.what) if known else recognisers.how_to_get(need.what)
    commands = {
        "videos": f"stepline fetch {need.what}/videos",
        "key": f"export {need.what}=...",
        "java": "apt install default-jre-headless",
        "package": "pip install -c constraints.txt -e '.[all]'",
    }
    return commands.get(need.kind, "")
