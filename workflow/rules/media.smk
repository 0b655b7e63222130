# From videos to audio, content scores, shots and transcripts.


rule media:
    input:
        "datasets/{dataset}/availability/{shard}.json",
    output:
        "datasets/{dataset}/media/manifests/{shard}.json",
    log:
        "logs/media/{dataset}.{shard}.log",
    priority: 1
    conda:
        "../../envs/media.yaml"
    resources:
        **helpers.resources("media"),
    params:
        by=lambda wildcards: media_params(config),
    message:
        "audio and content scores of {wildcards.dataset}, shard {wildcards.shard}"
    shell:
        "python -m stepline --log {log} media {wildcards.dataset} --shard {wildcards.shard}"


rule shots:
    input:
        "datasets/{dataset}/media/manifests/{shard}.json",
    output:
        "datasets/{dataset}/shots/manifests/{shard}.json",
    log:
        "logs/shots/{dataset}.{shard}.log",
    priority: 2
    conda:
        "../../envs/media.yaml"
    resources:
        **helpers.resources("shots"),
    params:
        by=lambda wildcards: shots_params(config),
    message:
        "shots of {wildcards.dataset}, shard {wildcards.shard}"
    shell:
        "python -m stepline --log {log} shots {wildcards.dataset} --shard {wildcards.shard}"


rule transcribe:
    input:
        "datasets/{dataset}/media/manifests/{shard}.json",
    output:
        "datasets/{dataset}/transcripts/{engine}/manifests/{shard}.json",
    log:
        "logs/transcribe/{dataset}.{engine}.{shard}.log",
    priority: 2
    conda:
        f"../../envs/{ENVIRONMENTS[ENGINE]}.yaml"
    threads: THREADS[ENGINE]
    resources:
        **helpers.resources("transcribe"),
    params:
        by=lambda wildcards: pipeline(wildcards).speech.params(wildcards.shard),
    message:
        "transcripts of {wildcards.dataset}, shard {wildcards.shard}, by {wildcards.engine}"
    shell:
        "python -m stepline --log {log} transcribe {wildcards.dataset} --shard {wildcards.shard}"


rule thumbnails:
    input:
        "datasets/{dataset}/availability/{shard}.json",
        "datasets/{dataset}/shots/manifests/{shard}.json",
    output:
        "datasets/{dataset}/thumbnails/manifests/{shard}.json",
    log:
        "logs/thumbnails/{dataset}.{shard}.log",
    priority: 2
    conda:
        "../../envs/media.yaml"
    resources:
        **helpers.resources("thumbnails"),
    message:
        "pictures of {wildcards.dataset}, shard {wildcards.shard}"
    shell:
        "python -m stepline --log {log} thumbnails {wildcards.dataset} --shard {wildcards.shard}"
