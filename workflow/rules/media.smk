# From videos to audio, content scores, shots and transcripts.
from stepline.media import REVISION as MEDIA_REVISION


rule media:
    input:
        "datasets/{study}/availability/{shard}.json",
    output:
        "datasets/{study}/media/manifests/{shard}.json",
    log:
        "logs/media/{study}.{shard}.log",
    conda:
        "../../envs/media.yaml"
    params:
        revision=MEDIA_REVISION,
    message:
        "audio and content scores of {wildcards.study}, shard {wildcards.shard}"
    shell:
        "python -m stepline --log {log} media {wildcards.study} --shard {wildcards.shard}"


rule shots:
    input:
        "datasets/{study}/media/manifests/{shard}.json",
    output:
        "datasets/{study}/shots/manifests/{shard}.json",
    log:
        "logs/shots/{study}.{shard}.log",
    conda:
        "../../envs/media.yaml"
    params:
        options=canonical_json(config["shots"]),
    message:
        "shots of {wildcards.study}, shard {wildcards.shard}"
    shell:
        "python -m stepline --log {log} shots {wildcards.study} --shard {wildcards.shard}"


rule transcribe:
    input:
        "datasets/{study}/media/manifests/{shard}.json",
    output:
        "datasets/{study}/transcripts/{engine}/manifests/{shard}.json",
    log:
        "logs/transcribe/{study}.{engine}.{shard}.log",
    conda:
        "../../envs/asr.yaml"
    params:
        by=lambda wildcards: plan(wildcards).transcribe_params(wildcards.shard),
    message:
        "transcripts of {wildcards.study}, shard {wildcards.shard}, by {wildcards.engine}"
    shell:
        "python -m stepline --log {log} transcribe {wildcards.study} --shard {wildcards.shard}"
