# From frames to stores of features.


rule extract:
    input:
        "datasets/{dataset}/availability/{shard}.json",
        lambda wildcards: pipeline(wildcards).features.inputs,
    output:
        "features/{backbone}/{spec}/manifests/{dataset}.{shard}.json",
    log:
        "logs/extract/{backbone}/{spec}/{dataset}.{shard}.log",
    priority: helpers.extract_priority
    group:
        "extract.{dataset}.{shard}" if CLUSTER else None
    conda:
        helpers.backbone_environment
    threads: helpers.extract_threads
    resources:
        **helpers.resources("extract"),
    params:
        by=lambda wildcards: pipeline(wildcards).features.params(wildcards.backbone, wildcards.shard),
    message:
        "{wildcards.backbone} on {wildcards.dataset}, shard {wildcards.shard}"
    shell:
        "python -m stepline --log {log} extract {wildcards.dataset} --shard {wildcards.shard} --backbone {wildcards.backbone}"
