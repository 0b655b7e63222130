# What concerns clusters alone.


# What takes less time than a cluster needs to start it.
localrules:
    all,
    table,
    pairs,
    picture,
    results,
    report,
    summary,
    page,


# A message would hide what a job asks for.
for each in workflow.modifier.rules if CLUSTER else []:
    each.message = None
