# What a study in Spacewalk-18's form is shown by besides its tables: differences, figures, examples, durations.


rule pairs:
    input:
        lambda wildcards: presentation.pair_files(plan(wildcards)),
    output:
        "results/{study}/pairs.csv",
        "results/{study}/pairs.md",
    log:
        "logs/pairs/{study}.log",
    wildcard_constraints:
        study=SPACEWALKS,
    conda:
        "../../envs/core.yaml"
    params:
        pairs=lambda wildcards: presentation.pair_params(plan(wildcards)),
    message:
        "results/{wildcards.study}/pairs.csv"
    shell:
        "python -m stepline --log {log} pairs {wildcards.study}"


rule figures:
    input:
        lambda wildcards: presentation.figure_files(plan(wildcards)),
    output:
        "results/{study}/figure3.svg",
        "results/{study}/figure4.svg",
        "results/{study}/figureA9.svg",
    log:
        "logs/figures/{study}.log",
    wildcard_constraints:
        study=SPACEWALKS,
    conda:
        "../../envs/core.yaml"
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
        "results/{study}/examples.html",
    log:
        "logs/examples/{study}.log",
    wildcard_constraints:
        study=SPACEWALKS,
    conda:
        "../../envs/media.yaml"
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
        "results/{study}/tableA1.csv",
        "results/{study}/tableA1.md",
        "results/{study}/tableA5.csv",
        "results/{study}/tableA5.md",
        "results/{study}/figureA2.svg",
    log:
        "logs/durations/{study}.log",
    wildcard_constraints:
        study=SPACEWALKS,
    conda:
        "../../envs/core.yaml"
    params:
        paper=lambda wildcards: presentation.duration_params(plan(wildcards)),
    message:
        "results/{wildcards.study}/tableA1.csv"
    shell:
        "python -m stepline --log {log} durations {wildcards.study}"


# Everything that the configuration has of a study.
rule results:
    input:
        lambda wildcards: presentation.results(plan(wildcards)),
    output:
        "results/{study}/all",
    log:
        "logs/results/{study}.log",
    wildcard_constraints:
        study=SPACEWALKS,
    conda:
        "../../envs/core.yaml"
    message:
        "results/{wildcards.study}/all"
    shell:
        "python -m stepline --log {log} results {wildcards.study}"
