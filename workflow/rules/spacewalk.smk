# Studies in Spacewalk-18's format: samples, text embeddings, and the figures, examples and durations.
from stepline.benchmarks.spacewalk import demand, presentation
from stepline.benchmarks.spacewalk.benchmark import Spacewalk

SPACEWALKS = "|".join(Spacewalk.studies)


rule samples:
    input:
        "datasets/{study}/{release}/release.json",
    output:
        "results/{study}/samples/{release}/{task}/{split}.json",
    log:
        "logs/samples/{study}.{release}.{task}.{split}.log",
    conda:
        "../../envs/core.yaml"
    resources:
        **helpers.resources("samples"),
    message:
        "samples of {wildcards.study} {wildcards.release}, {wildcards.task} {wildcards.split}"
    shell:
        "python -m stepline --log {log} samples {wildcards.study} --release {wildcards.release}"
        " --task {wildcards.task} --split {wildcards.split}"


rule encode:
    input:
        lambda wildcards: demand.encode_inputs(plan(wildcards), wildcards.release, wildcards.task, wildcards.video),
    output:
        "features/{encoder}/{spec}/manifests/{study}.{release}.{task}.{video}.json",
    log:
        "logs/encode/{encoder}/{spec}/{study}.{release}.{task}.{video}.log",
    group:
        "texts" if CLUSTER else None
    conda:
        "../../envs/networks.yaml"
    resources:
        **helpers.resources("encode"),
    params:
        texts=lambda wildcards: demand.encode_params(plan(wildcards), wildcards.task, wildcards.encoder),
    message:
        "{wildcards.encoder} on the texts of {wildcards.video}, {wildcards.release} {wildcards.task}"
    shell:
        "python -m stepline --log {log} encode {wildcards.study} --release {wildcards.release} --task {wildcards.task}"
        " --video {wildcards.video} --encoder {wildcards.encoder}"


rule figures:
    input:
        lambda wildcards: presentation.figure_inputs(plan(wildcards)),
    output:
        shown("results/{study}/figure3.svg", "figures", "Last-layer fine-tuning over window lengths"),
        shown("results/{study}/figure4.svg", "figures", "Ways of using temporal context"),
        shown("results/{study}/figureA9.svg", "figures", "Fewer training samples and videos"),
    log:
        "logs/figures/{study}.log",
    wildcard_constraints:
        study=SPACEWALKS,
    conda:
        "../../envs/core.yaml"
    resources:
        **helpers.resources("figures"),
    params:
        lines=lambda wildcards: presentation.figure_params(plan(wildcards)),
    message:
        "results/{wildcards.study}/figure3.svg"
    shell:
        "python -m stepline --log {log} figures {wildcards.study}"


rule examples:
    input:
        lambda wildcards: presentation.example_inputs(plan(wildcards)),
    output:
        shown("results/{study}/examples.html", "examples", "What methods answer"),
    log:
        "logs/examples/{study}.log",
    wildcard_constraints:
        study=SPACEWALKS,
    conda:
        "../../envs/media.yaml"
    resources:
        **helpers.resources("examples"),
    params:
        methods=lambda wildcards: presentation.example_params(plan(wildcards)),
    message:
        "results/{wildcards.study}/examples.html"
    shell:
        "python -m stepline --log {log} examples {wildcards.study}"


rule durations:
    input:
        lambda wildcards: presentation.duration_inputs(plan(wildcards)),
    output:
        shown("results/{study}/tableA1.csv", "durations", "Durations of recordings"),
        "results/{study}/tableA1.md",
        shown("results/{study}/tableA5.csv", "durations", "Temporal certificates"),
        "results/{study}/tableA5.md",
        shown("results/{study}/figureA2.svg", "durations", "Durations of recordings and segments"),
    log:
        "logs/durations/{study}.log",
    wildcard_constraints:
        study=SPACEWALKS,
    conda:
        "../../envs/core.yaml"
    resources:
        **helpers.resources("durations"),
    params:
        paper=lambda wildcards: presentation.duration_params(plan(wildcards)),
    message:
        "results/{wildcards.study}/tableA1.csv"
    shell:
        "python -m stepline --log {log} durations {wildcards.study}"
