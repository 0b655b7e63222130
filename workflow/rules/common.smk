# Configuration, plans and what every job's shell needs.
import os
import re
import shlex
import time

from helpers import Helpers
from snakemake.settings.types import DeploymentMethod
from snakemake.utils import min_version

from stepline import config as stepline_config
from stepline.asr.engines import ENVIRONMENTS, THREADS
from stepline.backbones.sentence import MODELS
from stepline.benchmarks.spacewalk import presentation
from stepline.benchmarks.spacewalk.plan import TARGETS
from stepline.datasets import oepp
from stepline.datasets.release import REBUILT
from stepline.datasets.studies import STUDIES
from stepline.errors import SteplineError
from stepline.io import canonical_json, write_text
from stepline.mirror import mirror_root
from stepline.pipeline import media_params, shots_params
from stepline.plans import BENCHMARKS, configured
from stepline.spec import digest

min_version("9.27")

use_conda = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
os.environ.update({"STEPLINE_CONDA": "1"} if use_conda else {})
os.environ.setdefault("STEPLINE_RUN", f"{os.getpid()}-{time.time_ns()}")


envvars:
    "STEPLINE_RUN",


TABLES = dict.fromkeys([*TARGETS, *(table for made in BENCHMARKS.values() for table in made.all_tables())])

try:
    mirror_root()
    config = stepline_config.validate(config)
    found = map(re.compile("(?:results|datasets)/([^/]+)/(?:(.*)[.](?:csv|md|svg|html)$)?").match, sys.argv)
    targets = [target.groups() for target in found if target]
    asked = {name for name, _ in targets}
    known = {*STUDIES, *BENCHMARKS}
    names = dict.fromkeys([*configured(config), *sorted(asked & known)])
    helpers = Helpers.of(config, names, workflow.basedir, workflow.resource_settings.cores)
    PLANS, PIPELINES = helpers.plans, helpers.pipelines
    for name, table in targets:
        shown = "table2" if table == "report" and name not in BENCHMARKS else table
        if name in PLANS and shown in TABLES:
            PLANS[name].check_table(shown)
except SteplineError as error:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(2)


# Jobs see the validated configuration, the package and, outside conda, the Python that runs Snakemake.
CONFIG = os.path.abspath(f".stepline/config-{digest(config)}.json")
if not os.path.exists(CONFIG):
    write_text(CONFIG, canonical_json(config))
environment = {"STEPLINE_CONFIG": CONFIG, "PYTHONPATH": f"{workflow.basedir}/src"}
prefix = "".join(f"export {name}={shlex.quote(value)}; " for name, value in environment.items())
if not use_conda:
    prefix += f"export PATH={shlex.quote(os.path.dirname(sys.executable))}:$PATH; "
shell.prefix(prefix)


# A job with networks takes all cores.
NETWORKS = any(each.features.networks for each in PIPELINES.values())
SPACEWALKS = "|".join(sorted({*STUDIES, *PLANS} - {*BENCHMARKS}))
ENGINE = config["asr"]["engine"]


wildcard_constraints:
    study="|".join([SPACEWALKS, *BENCHMARKS]),
    dataset="|".join(sorted({*STUDIES, *PIPELINES})),
    engine=re.escape(ENGINE),
    release="[a-z0-9-]+",
    task="step_recognition|intra-video_retrieval",
    split="train|val|test",
    shard=r"\d\d\d+",
    entry="[a-z0-9][a-z0-9.-]*",
    context=r"all|[\d.]+s",
    seed=r"\d+",
    table="|".join(TABLES),


plan, pipeline, job = helpers.plan, helpers.pipeline, helpers.job
