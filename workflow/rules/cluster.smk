from stepline.resources import LOCAL

# Settings for clusters only. Another workflow may use these rules under other names, in addition to its own.
ours = {each.name for each in workflow.modifier.rules}


workflow.localrules(*ours & {workflow.modifier.modify_rulename(name) for name in ("all", *LOCAL)})


# On a cluster, --resources mem_mb= and runtime= limit the request of each job, or group of jobs.
resource_scopes:
    runtime="local",


if CLUSTER and workflow.is_main_process:
    from snakemake_logger_plugin_stepline.cluster import adapt

    adapt(helpers.exceeded)


# In a Slurm job, Snakemake would use all cores of the node.
if not workflow.is_main_process and slurm.cpus():
    workflow.register_resource("_cores", slurm.cpus())
