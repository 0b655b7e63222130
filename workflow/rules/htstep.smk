# HT-Step: the challenge submissions for the splits with withheld labels, and Table 7 with one line per activity.


rule submissions:
    input:
        lambda wildcards: PLANS["htstep"].predictions(PLANS["htstep"].job("v1", wildcards.entry, "all")),
        lambda wildcards: PLANS["htstep"].score_inputs(PLANS["htstep"].job("v1", wildcards.entry, "all")),
    output:
        directory("results/htstep/submissions/{entry}"),
    log:
        "logs/submissions/htstep.{entry}.log",
    conda:
        "../../envs/core.yaml"
    resources:
        **helpers.resources("submissions"),
    message:
        "results/htstep/submissions/{wildcards.entry}"
    shell:
        "python -m stepline --log {log} htstep submissions {wildcards.entry}"


rule activities:
    input:
        lambda wildcards: [PLANS["htstep"].scores(each) for each in PLANS["htstep"].by_activity],
    output:
        shown("results/htstep/table7.csv", "activities", "Scores by activity"),
        "results/htstep/table7.md",
    log:
        "logs/activities/htstep.log",
    conda:
        "../../envs/core.yaml"
    resources:
        **helpers.resources("activities"),
    params:
        needs=lambda wildcards: PLANS["htstep"].by_activity_needs,
    message:
        "results/htstep/table7.csv"
    shell:
        "python -m stepline --log {log} htstep activities"
