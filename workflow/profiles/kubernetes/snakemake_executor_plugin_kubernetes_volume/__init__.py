"""The executor of snakemake-executor-plugin-kubernetes, for pods that share the work folder on a volume.

The original executor assumes that pods share nothing and requires a storage provider, which would transfer only the
files that rules name. Here all pods mount one volume at the same path as the head of the run, start in the work folder,
and use the Python of their image.
"""

import os
import shlex
from dataclasses import replace
from typing import Any

import snakemake_executor_plugin_kubernetes as kubernetes
from kubernetes.client import ApiException, BatchV1Api, CoreV1Api, V1Job
from kubernetes.config import ConfigException
from snakemake.common import get_container_image
from snakemake_executor_plugin_kubernetes import ExecutorSettings as ExecutorSettings
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface
from urllib3.exceptions import HTTPError

common_settings = replace(kubernetes.common_settings, implies_no_shared_fs=False)


class Executor(kubernetes.Executor):
    """Runs each job, or group of jobs, as a Kubernetes Job."""

    def __post_init__(self) -> None:
        """Connect to the cluster; raise SetupError if it cannot run the jobs, or does not answer."""
        from stepline.errors import SetupError  # the Snakefile has chosen which ``stepline``

        if self.workflow.remote_execution_settings.container_image == get_container_image():
            raise SetupError("--container-image is not set: name an image with Stepline, see docs/containers.md")
        folder, volumes = os.getcwd(), self.workflow.executor_settings.persistent_volumes
        mounted = [str(volume.path) for volume in volumes]
        if folder not in mounted and not any(folder.startswith(f"{path}/") for path in mounted):
            raise SetupError(
                f"--kubernetes-volume-persistent-volumes: no volume contains the work folder {folder}; "
                f"volumes are mounted at: {', '.join(mounted) or 'nowhere'}"
            )
        try:
            super().__post_init__()
        except (ConfigException, HTTPError, ApiException) as error:
            why = str(error).splitlines()[0]
            raise SetupError(
                f"no answer from Kubernetes: set KUBECONFIG, or start run.yaml in the cluster: {why}"
            ) from None
        self.kubeapi, self.batchapi = _Pods(), _Jobs()

    def print_job_error(self, job_info: SubmittedJobInfo, msg: str | None = None, **more: Any) -> None:
        """Report a failed job, with the reason for which its pod ended, such as OOMKilled."""
        reason = self.kubeapi.reasons.get(job_info.external_jobid)
        super().print_job_error(job_info, f"Kubernetes status is: '{reason}'. " if reason else msg, **more)

    def get_job_exec_prefix(self, job: JobExecutorInterface) -> str:  # noqa: ARG002 - of the interface
        """Return the shell command that a pod runs first."""
        return f"cd {shlex.quote(os.getcwd())}"


class _Pods(CoreV1Api):
    def __init__(self) -> None:
        super().__init__()
        self.reasons: dict[str, str] = {}

    def list_namespaced_pod(self, **asked: Any) -> Any:
        """Return pods, and keep the reasons for which they or their containers ended, by job."""
        found = super().list_namespaced_pod(**asked)
        for pod in found.items:
            ended = [each.state.terminated for each in pod.status.container_statuses or ()]
            reasons = [pod.status.reason, *(each.reason for each in ended if each and each.reason != "Error")]
            self.reasons |= {asked["label_selector"].removeprefix("job-name="): each for each in reasons if each}
        return found

    def read_namespaced_pod_log(self, **asked: Any) -> Any:
        """Return the log of a pod, never the log of a previous start: each pod starts only once."""
        return super().read_namespaced_pod_log(**asked | {"previous": False})


class _Jobs(BatchV1Api):
    def create_namespaced_job(self, namespace: str, body: V1Job) -> Any:
        """Submit a job without a request for disk space of the node, because the job writes to the volume."""
        asked = body.spec.template.spec.containers[0].resources
        for each in (asked.requests, asked.limits or {}):
            each.pop("ephemeral-storage", None)
        return super().create_namespaced_job(namespace, body)
