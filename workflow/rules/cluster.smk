# Settings for clusters only. Another workflow may use these rules under other names, in addition to its own.
OURS = {each.name: each for each in workflow.modifier.rules}


# Jobs that take less time than a cluster needs to start them.
quick = "all", "table", "pairs", "picture", "results", "report", "summary", "page"
workflow.localrules(*OURS.keys() & {workflow.modifier.modify_rulename(name) for name in quick})


# On a cluster a message would hide the resources that a job requests.
for each in OURS.values() if CLUSTER else []:
    each.message = None
