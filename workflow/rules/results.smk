# How Snakemake's report shows results.


def shown(path, caption, title):
    """Return an output, ``results/<study>/<file>``, that Snakemake's report shows. title: a text or a function of wildcards.

    It has only one label: if a category has two results, Snakemake's page treats a second label as a toggle, and breaks.
    """
    study, file = path.split("/")[1:]
    category = {".csv": "Tables", ".svg": "Figures", ".html": "Pages"}[os.path.splitext(file)[1]]

    def labels(wildcards):
        return {"result": f"{file}: {title(wildcards) if callable(title) else title}"}

    return report(path, caption=f"../report/{caption}.rst", category=category, subcategory=study, labels=labels)


def table_title(wildcards):
    return plan(wildcards).table_title(wildcards.table)
