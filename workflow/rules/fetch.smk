# What comes from elsewhere: release files and videos.


rule release:
    output:
        "datasets/{study}/{release}/release.json",
    log:
        "logs/release/{study}.{release}.log",
    conda:
        "../../envs/core.yaml"
    params:
        files=lambda wildcards: plan(wildcards).release_params(wildcards.release),
    message:
        "release files of {wildcards.study} {wildcards.release}"
    shell:
        "python -m stepline --log {log} fetch {wildcards.study}/{wildcards.release}"


rule videos:
    output:
        "datasets/{study}/availability/{shard}.json",
    log:
        "logs/videos/{study}.{shard}.log",
    conda:
        "../../envs/core.yaml"
    params:
        found=lambda wildcards: plan(wildcards).video_params(wildcards.shard),
    message:
        "videos of {wildcards.study}, shard {wildcards.shard}"
    shell:
        "python -m stepline --log {log} fetch {wildcards.study}/videos/{wildcards.shard}"
