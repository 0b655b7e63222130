# For every entry of a benchmark: fits, predictions and scores.


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
