# From frames and texts to stores.


rule extract:
    input:
        "datasets/{dataset}/availability/{shard}.json",
        lambda wildcards: pipeline(wildcards).features.inputs,
    output:
        "features/{backbone}/{spec}/manifests/{dataset}.{shard}.json",
    log:
        "logs/extract/{backbone}/{spec}/{dataset}.{shard}.log",
    priority: 1
    conda:
        helpers.backbone_environment
    threads: (NETWORKS and workflow.resource_settings.cores) or 1
    resources:
        disk_gb=helpers.disk_gb("extract"),
        gpu=int(NETWORKS and config["features"]["device"] == "cuda"),
    params:
        by=lambda wildcards: pipeline(wildcards).features.params(wildcards.backbone, wildcards.shard),
    message:
        "{wildcards.backbone} on {wildcards.dataset}, shard {wildcards.shard}"
    shell:
        "python -m stepline --log {log} extract {wildcards.dataset} --shard {wildcards.shard} --backbone {wildcards.backbone}"


rule encode:
    input:
        lambda wildcards: plan(wildcards).encode_inputs(wildcards.release, wildcards.task, wildcards.video),
    output:
        "features/{encoder}/{spec}/manifests/{study}.{release}.{task}.{video}.json",
    log:
        "logs/encode/{encoder}/{spec}/{study}.{release}.{task}.{video}.log",
    conda:
        lambda wildcards: f"{workflow.basedir}/envs/{'text' if wildcards.encoder in MODELS else 'vision'}.yaml"
    params:
        texts=lambda wildcards: plan(wildcards).encode_params(wildcards.task, wildcards.encoder),
    message:
        "{wildcards.encoder} on the texts of {wildcards.video}, {wildcards.release} {wildcards.task}"
    shell:
        "python -m stepline --log {log} encode {wildcards.study} --release {wildcards.release} --task {wildcards.task}"
        " --video {wildcards.video} --encoder {wildcards.encoder}"
