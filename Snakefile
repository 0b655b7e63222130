# Stepline: from raw procedural video to tables.
#   snakemake --cores 8 --use-conda results/spacewalk/table2.csv
import sys

sys.path.insert(0, f"{workflow.basedir}/src")


if not workflow.config_settings.configfiles:

    configfile: f"{workflow.basedir}/config.yaml"


include: "workflow/rules/common.smk"


rule all:
    input:
        [f"results/{name}/{target}" for name in PLANS for target in PLANS[name].targets],
        [
            path
            for name in OWN
            if PLANS[name].targets
            for path in PLANS[name].summary_inputs() + PLANS[name].report_inputs()
        ],


include: "workflow/rules/fetch.smk"
include: "workflow/rules/media.smk"
include: "workflow/rules/features.smk"
include: "workflow/rules/datasets.smk"
include: "workflow/rules/benchmarks.smk"
include: "workflow/rules/study.smk"
include: "workflow/rules/pss.smk"
include: "workflow/rules/oepp.smk"
