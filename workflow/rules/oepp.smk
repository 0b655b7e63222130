# OEPP: its lists of events and actions, and OpenEvent rebuilt from its sources.
from stepline.datasets import oepp


rule listings:
    input:
        "datasets/oepp/split1/release.json",
    output:
        shown("results/oepp/table9.csv", "listings", "Events by cluster"),
        shown("results/oepp/table10.csv", "listings", "Actions in other words than COIN's"),
    log:
        "logs/listings/oepp.log",
    conda:
        "../../envs/core.yaml"
    resources:
        **helpers.resources("listings"),
    message:
        "results/oepp/table9.csv"
    shell:
        "python -m stepline --log {log} oepp list"


rule rebuild:
    input:
        "datasets/oepp/split1/release.json",
        "datasets/oepp/coin/release.json",
        ["datasets/oepp/crosstask/release.json"] if oepp.RELEASES.is_there("crosstask") else [],
    output:
        shown("results/oepp/rebuilt.csv", "rebuilt", "OpenEvent rebuilt from COIN and CrossTask"),
        f"datasets/oepp/{REBUILT}/release.json",
    log:
        "logs/rebuild/oepp.log",
    conda:
        "../../envs/core.yaml"
    resources:
        **helpers.resources("rebuild"),
    params:
        seed=lambda wildcards: PLANS["oepp"].rebuild_options,
    message:
        "results/oepp/rebuilt.csv"
    shell:
        "python -m stepline --log {log} oepp rebuild{params.seed}"


rule clusters:
    input:
        "datasets/oepp/split1/release.json",
        "datasets/oepp/coin/release.json",
        ["datasets/oepp/crosstask/release.json"] if oepp.RELEASES.is_there("crosstask") else [],
    output:
        shown("results/oepp/clusters-{encoder}.csv", "clusters", "Events whose texts are alike"),
    log:
        "logs/clusters/oepp.{encoder}.log",
    conda:
        "../../envs/networks.yaml"
    resources:
        **helpers.resources("clusters"),
    message:
        "results/oepp/clusters-{wildcards.encoder}.csv"
    shell:
        "python -m stepline --log {log} oepp cluster --encoder {wildcards.encoder}"
