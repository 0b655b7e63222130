# The user's own videos: the table of videos and the report.


rule summary:
    input:
        lambda wildcards: pipeline(wildcards).summary_inputs(),
    output:
        shown("results/{dataset}/videos.csv", "videos", "What became of each video"),
        "results/{dataset}/videos.md",
    log:
        "logs/summary/{dataset}.log",
    conda:
        "../../envs/core.yaml"
    resources:
        **helpers.resources("summary"),
    params:
        needs=lambda wildcards: pipeline(wildcards).summary_params(),
    message:
        "results/{wildcards.dataset}/videos.csv"
    shell:
        "python -m stepline --log {log} summary {wildcards.dataset}"


rule page:
    input:
        "results/{dataset}/videos.csv",
        lambda wildcards: pipeline(wildcards).report_inputs(),
    output:
        shown("results/{dataset}/report.html", "page", "Each video with its shots and speech"),
    log:
        "logs/page/{dataset}.log",
    wildcard_constraints:
        dataset="|".join(sorted(PIPELINES.keys() - PLANS.keys())) or "(?!)",
    conda:
        "../../envs/core.yaml"
    resources:
        **helpers.resources("page"),
    params:
        segments=lambda wildcards: pipeline(wildcards).report_params(),
    message:
        "results/{wildcards.dataset}/report.html"
    shell:
        "python -m stepline --log {log} report {wildcards.dataset}"
