# PSS: the metrics' examples by hand.


rule worked_examples:
    output:
        "results/pss/worked_examples.html",
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
