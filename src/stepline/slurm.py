"""A warning if Slurm's controller is down: Snakemake's plug-in queries it at every start, and waits."""

import shutil
import subprocess
import sys
from collections.abc import Iterator

PLUGIN = "snakemake_executor_plugin_slurm"
ANSWERS_IN_S = 2.0


def warnings() -> Iterator[str]:
    """Yield a warning if the plug-in is imported and no controller responds."""
    if PLUGIN not in sys.modules or not shutil.which("scontrol"):
        return
    try:
        ping = ["scontrol", "ping"]
        said = subprocess.run(ping, capture_output=True, text=True, timeout=ANSWERS_IN_S, check=False).stdout
    except subprocess.TimeoutExpired:
        said = "DOWN"
    if "DOWN" in said and "UP" not in said:
        yield (
            "Slurm's controller does not respond (scontrol ping): each start of snakemake waits 10 s for it, and no job"
            " can be submitted; if you do not use a cluster, uninstall snakemake-executor-plugin-slurm"
        )
