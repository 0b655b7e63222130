# Stepline: from raw procedural video to tables.
#   snakemake --cores 8 --use-conda results/spacewalk/table2.csv


report: "workflow/report/workflow.rst"


if not workflow.config_settings.configfiles:

    configfile: f"{workflow.current_basedir}/config.yaml"


# With `--sdm conda apptainer`, the conda environments of rules are created and used in this container.
container: "docker://condaforge/miniforge3:25.3.1-0"


include: "workflow/rules/package.smk"
include: "workflow/rules/common.smk"
include: "workflow/rules/results.smk"


rule all:
    input:
        [f"results/{name}/{target}" for made in (PLANS, PIPELINES) for name in made for target in made[name].targets],
        [path for each in PIPELINES.values() if each.targets for path in each.summary_inputs() + each.report_inputs()],


include: "workflow/rules/fetch.smk"
include: "workflow/rules/media.smk"
include: "workflow/rules/features.smk"
include: "workflow/rules/datasets.smk"
include: "workflow/rules/entries.smk"
include: "workflow/rules/benchmarks.smk"
include: "workflow/rules/spacewalk.smk"
include: "workflow/rules/pss.smk"
include: "workflow/rules/oepp.smk"
include: "workflow/rules/htstep.smk"
include: "workflow/rules/cluster.smk"
