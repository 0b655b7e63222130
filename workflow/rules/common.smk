# The configuration, the plans, and the shell prefix of every job.
import atexit
import gc
import os
import re
import shlex
import time
from glob import glob

from snakemake.persistence import PersistenceBase
from snakemake.settings.types import DeploymentMethod, SharedFSUsage
from snakemake.utils import min_version

from stepline import config as stepline_config, devices, slurm
from stepline.asr.engines import ENVIRONMENTS, KEYS, THREADS
from stepline.datasets.release import REBUILT
from stepline.errors import ConfigError, SteplineError, in_words
from stepline.forkserver.listener import listen
from stepline.helpers import Helpers, importable
from stepline.invocation import Invocation, name_account
from stepline.mirror import mirror_root
from stepline.overview.ahead import bring_back
from stepline.pipeline import media_params, shots_params
from stepline.plans import benchmarks, configured
from stepline.service import KEY

min_version("9.27")
name_account()

deployed = workflow.deployment_settings.deployment_method
use_conda = DeploymentMethod.CONDA in deployed
os.environ.update({"STEPLINE_CONDA": "1"} if use_conda else {})
os.environ.setdefault("STEPLINE_RUN", f"{os.getpid()}-{time.time_ns()}")


# Environment variables that jobs on other machines need. Kubernetes passes them as a secret.
envvars:
    "STEPLINE_RUN",
    *(name for name in os.environ if name in {"STEPLINE_MIRROR", KEY, *KEYS.values()} or name.startswith("AWS_")),


# On one host, the number of GPUs limits the jobs that use one. On a cluster each job, or group of jobs, gets its own GPU.
resource_scopes:
    gpu="local",


# On a cluster, `--jobs` or the profile sets the number of submitted jobs. The executor is not known yet.
CLUSTER = workflow.resource_settings.nodes is not None
# Without jobs, nothing but caches is written: the work folder may be read-only.
looks = workflow.output_settings.dryrun or any(word.startswith("--lint") for word in sys.argv)
if workflow.is_main_process and not CLUSTER and DeploymentMethod.APPTAINER not in deployed:
    listen()


# Printed commands repeat the options of this run. They are not job parameters, so a change does not rerun anything.
invocation = Invocation(
    snakefile="" if os.path.realpath(workflow.basedir) == os.getcwd() else str(workflow.main_snakefile),
    configfiles=tuple(map(str, workflow.config_settings.configfiles)),
    overrides=workflow.config_settings.config,
)
invocation.keep()

gc.disable()  # plans live until the end; the collector would traverse them repeatedly
try:
    if SharedFSUsage.INPUT_OUTPUT not in workflow.storage_settings.shared_fs_usage:
        raise ConfigError(
            "--shared-fs-usage: input-output is missing, and jobs use files of other jobs that rules do not name: "
            "share the work folder, see docs/storage.md"
        )
    if DeploymentMethod.APPTAINER in deployed and not use_conda:
        raise ConfigError(
            "--sdm apptainer: the container has conda but none of Stepline's packages: use --sdm conda apptainer"
        )
    if workflow.modifier.path_modifier.replace_prefix("results") != "results":
        raise ConfigError("module: jobs write to the work folder: remove `prefix`, and set a folder with `workdir:`")
    mirror_root()
    for file in (path for path in workflow.configfiles if not str(path).endswith(".json")):
        stepline_config.read(file)  # Snakemake would accept duplicate keys
    config = stepline_config.validate(config)
    found = map(re.compile("(?:results|datasets)/([^/]+)/(?:(.*)[.](?:csv|md|svg|html)$)?").match, sys.argv)
    targets = [target.groups() for target in found if target]
    KNOWN = benchmarks(config)
    at_once = 1 if CLUSTER else max(1, len(devices.visible()) * config["features"]["jobs_per_gpu"])
    if "gpu" not in workflow.global_resources:
        workflow.register_resource("gpu", at_once)
    names = dict.fromkeys([*configured(config), *sorted({name for name, _ in targets} & KNOWN.keys())])
    cores = max(1, (workflow.resource_settings.cores or 2) // at_once)
    helpers = Helpers.of(config, names, cores, lambda name: workflow.global_resources.get(name).value)
    PLANS, PIPELINES = helpers.plans, helpers.pipelines
    plan, pipeline, job = helpers.plan, helpers.pipeline, helpers.job
    if workflow.is_main_process:
        stale = (line for each in PLANS.values() for line in each.stale())
        ahead = () if looks else bring_back()
        for line in [*invocation.forgets(), *helpers.forget_lost(looks=looks), *ahead, *slurm.warnings(), *stale]:
            print(f"warning: {line}", file=sys.stderr)
        sys.stderr.writelines(f"{line}\n" for line in helpers.left_out())
    helpers.check_records()
    for name, table in targets:
        if name in PLANS and table in KNOWN[name].all_tables():
            PLANS[name].check_table(table)
    if looks and not os.access(".snakemake", os.W_OK):
        os.makedirs(".snakemake/locks", exist_ok=True)
        for record in glob(".snakemake/metadata/*")[:1]:
            open(record).close()
        PersistenceBase.save_iocache = lambda self: None  # it is for a later run by this account
    if not looks:
        kept, modules = stepline_config.keep(config), [importable()]
    if workflow.is_main_process and not looks:
        helpers.note_current()
        alone = os.path.realpath(workflow.basedir) == os.path.realpath(f"{workflow.current_basedir}/../..")
        read = map(os.path.abspath, workflow.configfiles if alone else [])
        invocation.remember(read, kept)
        # Dry runs need this folder too, but Snakemake removes it at the end of a run.
        atexit.register(os.makedirs, os.path.abspath(".snakemake/locks"), exist_ok=True)
except (SteplineError, OSError) as error:
    print(f"error: {in_words(error) if isinstance(error, OSError) else error}", file=sys.stderr)
    sys.exit(2)
gc.freeze()
gc.enable()


# Jobs use the validated configuration, the package and, outside conda, the Python that runs Snakemake.
if not looks:
    modules += [] if use_conda else filter(None, [os.environ.get("PYTHONPATH")])
    environment = {"STEPLINE_CONFIG": str(kept), "PYTHONPATH": os.pathsep.join(modules)}
    environment |= {} if CLUSTER or not workflow.is_main_process else {"STEPLINE_ONE_HOST": "1"}
    prefix = "".join(f"export {name}={shlex.quote(value)}; " for name, value in environment.items())
    if not use_conda:
        prefix += f"export PATH={shlex.quote(os.path.dirname(sys.executable))}:$PATH; "
    # A workflow that uses this one as a module keeps its own shell prefix for its own rules.
    shell.prefix((shell._get_process_prefix() + prefix).replace("{", "{{").replace("}", "}}"))


ENGINE = config["asr"]["engine"]


wildcard_constraints:
    study="|".join(KNOWN),
    dataset="|".join(sorted({*KNOWN, *PIPELINES})),
    engine=re.escape(ENGINE),
    release="[a-z0-9_-]+",
    task="[a-z0-9_-]+",
    split="[a-z]+",
    shard=r"\d\d\d+",
    entry="[a-z0-9][a-z0-9.-]*",
    context=r"all|[\d.]+s",
    seed=r"\d+",
    table="|".join(dict.fromkeys(table for made in KNOWN.values() for table in made.all_tables())),
