# The package: from the checkout, or else the installed one, which must have the same version.
import os
import sys

VERSION = "0.1.0"

sys.path.insert(0, os.path.normpath(f"{workflow.current_basedir}/../../src"))
try:
    from stepline import __version__ as installed
except ModuleNotFoundError:
    installed = "not installed"
if installed != VERSION:
    print(
        f"error: these rules need Stepline {VERSION}, the package is {installed}: pip install stepline=={VERSION}",
        file=sys.stderr,
    )
    sys.exit(2)

# A workflow that uses this one as a module keeps its own output.
if workflow.is_main_process and workflow.modifier.parent_modifier is None:
    from snakemake_logger_plugin_stepline import attach

    attach(workflow)
