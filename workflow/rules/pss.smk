# PSS: the worked examples of its metrics.


rule worked_examples:
    output:
        shown("results/pss/worked_examples.html", "worked_examples", "The metrics by hand"),
    log:
        "logs/worked_examples/pss.log",
    conda:
        "../../envs/core.yaml"
    resources:
        **helpers.resources("worked_examples"),
    message:
        "results/pss/worked_examples.html"
    shell:
        "python -m stepline --log {log} examples pss"
