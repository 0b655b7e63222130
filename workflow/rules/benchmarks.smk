# For every benchmark: tables, pairwise differences, the report, and the list of all results.
from stepline.benchmark import pairs


rule table:
    input:
        lambda wildcards: plan(wildcards).table_inputs(wildcards.table),
    output:
        shown("results/{study}/{table}.csv", "table", table_title),
        "results/{study}/{table}.md",
    log:
        "logs/table/{study}.{table}.log",
    conda:
        "../../envs/core.yaml"
    resources:
        **helpers.resources("table"),
    params:
        lines=lambda wildcards: plan(wildcards).table_params(wildcards.table),
    message:
        "results/{wildcards.study}/{wildcards.table}.csv"
    shell:
        "python -m stepline --log {log} table {wildcards.study} --table {wildcards.table}"


rule report:
    input:
        lambda wildcards: plan(wildcards).report_inputs(),
    output:
        shown("results/{study}/report.html", "report", "All tables, with pictures"),
    log:
        "logs/report/{study}.log",
    conda:
        "../../envs/media.yaml"
    resources:
        **helpers.resources("report"),
    message:
        "results/{wildcards.study}/report.html"
    shell:
        "python -m stepline --log {log} report {wildcards.study}"


rule picture:
    input:
        "results/{study}/{table}.csv",
    output:
        shown("results/{study}/{table}.svg", "picture", table_title),
    log:
        "logs/picture/{study}.{table}.log",
    conda:
        "../../envs/core.yaml"
    resources:
        **helpers.resources("picture"),
    message:
        "results/{wildcards.study}/{wildcards.table}.svg"
    shell:
        "python -m stepline --log {log} picture {wildcards.study} --table {wildcards.table}"


rule pairs:
    input:
        lambda wildcards: pairs.inputs(plan(wildcards)),
    output:
        shown("results/{study}/pairs.csv", "pairs", "Differences between methods"),
        "results/{study}/pairs.md",
    log:
        "logs/pairs/{study}.log",
    conda:
        "../../envs/core.yaml"
    resources:
        **helpers.resources("pairs"),
    params:
        pairs=lambda wildcards: pairs.params(plan(wildcards)),
    message:
        "results/{wildcards.study}/pairs.csv"
    shell:
        "python -m stepline --log {log} pairs {wildcards.study}"


rule results:
    input:
        lambda wildcards: plan(wildcards).results,
    output:
        "results/{study}/all",
    log:
        "logs/results/{study}.log",
    conda:
        "../../envs/core.yaml"
    resources:
        **helpers.resources("results"),
    message:
        "results/{wildcards.study}/all"
    shell:
        "python -m stepline --log {log} results {wildcards.study}"
