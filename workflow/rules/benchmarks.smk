# Of every benchmark: fits, predictions, scores, tables, differences, the report, and the list of all results.
from stepline.benchmark import pairs


rule fit:
    input:
        lambda wildcards: plan(wildcards).fit_inputs(job(wildcards)),
    output:
        "results/{study}/fits/{release}/{entry}/{context}/{seed}.safetensors",
    log:
        "logs/fit/{study}.{release}.{entry}.{context}.{seed}.log",
    group:
        helpers.group if CLUSTER else None
    conda:
        helpers.entry_environment
    threads: helpers.entry_threads
    resources:
        **helpers.resources("fit"),
    params:
        spec=lambda wildcards: plan(wildcards).fit_params(job(wildcards)),
    message:
        "fit {wildcards.entry} on {wildcards.release} at {wildcards.context}, seed {wildcards.seed}"
    shell:
        "python -m stepline --log {log} fit {wildcards.study} --release {wildcards.release} --entry {wildcards.entry}"
        " --context {wildcards.context} --seed {wildcards.seed}"


rule predict:
    input:
        lambda wildcards: plan(wildcards).predict_inputs(job(wildcards)),
    output:
        "results/{study}/predictions/{release}/{entry}/{context}.parquet",
    log:
        "logs/predict/{study}.{release}.{entry}.{context}.log",
    group:
        helpers.group if CLUSTER else None
    conda:
        helpers.entry_environment
    threads: helpers.entry_threads
    resources:
        **helpers.resources("predict"),
    params:
        spec=lambda wildcards: plan(wildcards).predict_params(job(wildcards)),
    message:
        "predict {wildcards.entry} on {wildcards.release} at {wildcards.context}"
    shell:
        "python -m stepline --log {log} predict {wildcards.study} --release {wildcards.release}"
        " --entry {wildcards.entry} --context {wildcards.context}"


rule score:
    input:
        "results/{study}/predictions/{release}/{entry}/{context}.parquet",
        lambda wildcards: plan(wildcards).score_inputs(job(wildcards)),
    output:
        "results/{study}/scores/{release}/{entry}/{context}.json",
    log:
        "logs/score/{study}.{release}.{entry}.{context}.log",
    group:
        helpers.group if CLUSTER else None
    conda:
        helpers.score_environment
    resources:
        **helpers.resources("score"),
    params:
        options=lambda wildcards: plan(wildcards).score_params(job(wildcards)),
    message:
        "score {wildcards.entry} on {wildcards.release} at {wildcards.context}"
    shell:
        "python -m stepline --log {log} score {wildcards.study} --release {wildcards.release}"
        " --entry {wildcards.entry} --context {wildcards.context}"


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
