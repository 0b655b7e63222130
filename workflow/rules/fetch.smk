# Downloads: release files and videos.


rule release:
    output:
        "datasets/{study}/{release}/release.json",
    log:
        "logs/release/{study}.{release}.log",
    wildcard_constraints:
        study="|".join(KNOWN),
        release=f"(?!{REBUILT}/)[a-z0-9_-]+",
    conda:
        "../../envs/core.yaml"
    resources:
        **helpers.resources("release"),
    params:
        files=lambda wildcards: plan(wildcards).release_params(wildcards.release),
    message:
        "release files of {wildcards.study} {wildcards.release}"
    shell:
        "python -m stepline --log {log} fetch {wildcards.study}/{wildcards.release}"


rule videos:
    input:
        lambda wildcards: pipeline(wildcards).videos.inputs,
    output:
        "datasets/{dataset}/availability/{shard}.json",
    log:
        "logs/videos/{dataset}.{shard}.log",
    conda:
        "../../envs/media.yaml"
    resources:
        **helpers.resources("videos"),
    params:
        found=lambda wildcards: pipeline(wildcards).videos.params(wildcards.shard),
    message:
        "videos of {wildcards.dataset}, shard {wildcards.shard}"
    shell:
        "python -m stepline --log {log} fetch {wildcards.dataset}/videos/{wildcards.shard}"


# If videos are not kept, a shard's videos are deleted after everything is computed from them.
rule drop:
    input:
        lambda wildcards: pipeline(wildcards).drop_inputs(wildcards.shard),
    output:
        "datasets/{dataset}/dropped/{shard}.json",
    log:
        "logs/drop/{dataset}.{shard}.log",
    priority: 3
    conda:
        "../../envs/core.yaml"
    resources:
        **helpers.resources("drop"),
    message:
        "delete the videos of {wildcards.dataset}, shard {wildcards.shard}"
    shell:
        "python -m stepline --log {log} drop {wildcards.dataset} --shard {wildcards.shard}"
