# What concerns clusters alone. Another workflow may use these rules by other names, beside its own.
OURS = {each.name: each for each in workflow.modifier.rules}


# What takes less time than a cluster needs to start it.
quick = "all", "table", "pairs", "picture", "results", "report", "summary", "page"
workflow.localrules(*OURS.keys() & {workflow.modifier.modify_rulename(name) for name in quick})


# A message would hide what a job asks for.
for each in OURS.values() if CLUSTER else []:
    each.message = None
