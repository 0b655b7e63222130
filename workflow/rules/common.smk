# Configuration, plans and what every job's shell needs.
import os
import re
import shlex
import time

from snakemake.settings.types import DeploymentMethod
from snakemake.utils import min_version

from stepline import config as stepline_config
from stepline.asr.engines import ENVIRONMENTS, THREADS
from stepline.backbones.sentence import MODELS
from stepline.benchmarks.spacewalk import presentation
from stepline.benchmarks.spacewalk.entries import TARGETS
from stepline.datasets import oepp
from stepline.datasets.release import REBUILT
from stepline.datasets.studies import STUDIES
from stepline.errors import SteplineError
from stepline.io import canonical_json, write_text
from stepline.mirror import mirror_root
from stepline.plans import BENCHMARKS, configured, has_tables, plan as plan_of
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
    PLANS = {name: plan_of(config, name) for name in dict.fromkeys([*configured(config), *sorted(asked & known)])}
    for name, table in targets:
        shown = "table2" if table == "report" and name not in BENCHMARKS else table
        if name in PLANS and has_tables(config, name) and shown in TABLES:
            PLANS[name].check_table(shown)
    for each in PLANS.values():
        each.check_records()
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
NETWORKS = any(PLANS[name].networks for name in PLANS)
OWN = [name for name in PLANS if not has_tables(config, name)]
SPACEWALKS = "|".join(sorted({*STUDIES, *PLANS} - {*OWN, *BENCHMARKS}))
ENGINE = config["asr"]["engine"]


wildcard_constraints:
    study="|".join([SPACEWALKS, *BENCHMARKS]),
    dataset="|".join(sorted({*STUDIES, *PLANS})),
    engine=re.escape(ENGINE),
    release="[a-z0-9-]+",
    task="step_recognition|intra-video_retrieval",
    split="train|val|test",
    shard=r"\d\d\d+",
    entry="[a-z0-9][a-z0-9.-]*",
    context=r"all|[\d.]+s",
    seed=r"\d+",
    table="|".join(TABLES),


def plan(wildcards):
    return PLANS[wildcards.get("dataset") or wildcards.study]


def environment_file(wildcards):
    made = plan(wildcards)
    name = made.environment(made.backbone_of(wildcards.backbone))
    return name if os.path.isabs(name) else f"{workflow.basedir}/envs/{name}.yaml"


def entry_environment(wildcards):
    return f"{workflow.basedir}/envs/{job(wildcards).entry.made.environment}.yaml"


def score_environment(wildcards):
    return f"{workflow.basedir}/envs/{job(wildcards).entry.made.scored_in}.yaml"


def entry_threads(wildcards):
    return (job(wildcards).entry.made.decoded and workflow.resource_settings.cores) or 1


def disk_gb(stage):
    return lambda wildcards: plan(wildcards).disk_gb(stage, wildcards.shard)


def job(wildcards):
    return plan(wildcards).job(wildcards.release, wildcards.entry, wildcards.context)
