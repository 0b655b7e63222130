"""The embedded study on Kubernetes: Snakemake's real executor, and a cluster whose pods are processes."""

import base64
import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from snakemake.common import get_container_image

from stepline.errors import SetupError
from tests import forked
from tests.conftest import ROOT
from tests.server import Reply, Request, Server
from tests.workflow.kubernetes_cluster import Cluster, checked
from tests.workflow.runs import DEMO_TABLE

kubernetes = pytest.importorskip("snakemake_executor_plugin_kubernetes")
pytestmark = pytest.mark.slow
PROFILE = ROOT / "workflow/profiles/kubernetes"
IMAGE = "registry.example.org/stepline:0.1.0"
KEY = "sk-of-nobody-0123456789"


def manifest(name: str) -> list[dict[str, Any]]:
    """Return the objects of a manifest."""
    return list(yaml.safe_load_all((PROFILE / name).read_text()))


def role() -> set[tuple[str, str]]:
    """Return the pairs of a resource and a verb that the account of access.yaml may use."""
    [found] = [each for each in manifest("access.yaml") if each["kind"] == "Role"]
    return {(resource, verb) for rule in found["rules"] for resource in rule["resources"] for verb in rule["verbs"]}


def head(folder: Path, cluster: Server, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command of run.yaml in ``folder``, which stands for the volume."""
    context = {"cluster": "test", "user": "test", "namespace": "tables"}
    kubeconfig = {
        "clusters": [{"name": "test", "cluster": {"server": cluster.url}}],
        "contexts": [{"name": "test", "context": context}],
        "current-context": "test",
        "users": [{"name": "test", "user": {"token": "none"}}],
    }
    (folder / "kubeconfig").write_text(json.dumps(kubeconfig))
    [job] = manifest("run.yaml")
    [container] = job["spec"]["template"]["spec"]["containers"]
    values = {"results/spacewalk/table2.csv": DEMO_TABLE, "/stepline": str(ROOT)}
    values |= {"$(NAMESPACE)": "tables", "$(IMAGE)": container["env"][1]["value"]}
    words = container["args"]
    for old, new in values.items():
        words = [word.replace(old, new) for word in words]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("STEPLINE_")}
    modules = os.pathsep.join([str(PROFILE), str(ROOT / "src")])
    return subprocess.run(
        [sys.executable, "-m", *container["command"], *words, "--seconds-between-status-checks", "1", *options],
        cwd=folder,
        env=kept | {"PYTHONPATH": modules, "KUBECONFIG": str(folder / "kubeconfig"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", ["volume.yaml", "access.yaml", "run.yaml", "shell.yaml"])
def test_manifests_are_what_the_api_takes(name: str) -> None:
    for content in manifest(name):
        checked(f"V1{content['kind']}", content)


def test_the_head_mounts_the_volume_of_the_profile_under_its_account() -> None:
    profile = yaml.safe_load((PROFILE / "config.yaml").read_text())
    [volume], [job] = manifest("volume.yaml"), manifest("run.yaml")
    spec = job["spec"]["template"]["spec"]
    [container], [mounted] = spec["containers"], spec["volumes"]
    claim, path = profile["kubernetes-volume-persistent-volumes"].split(":")
    assert claim == volume["metadata"]["name"] == mounted["persistentVolumeClaim"]["claimName"]
    assert container["volumeMounts"] == [{"name": mounted["name"], "mountPath": path}]
    assert container["workingDir"] == path
    assert spec["serviceAccountName"] in [each["metadata"]["name"] for each in manifest("access.yaml")]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(
        namespace="tables",
        claims={"stepline"},
        image=forked._server(traced=False),
        allowed=role(),
        fails=lambda job: True,
    )


def test_the_table_of_a_cluster_is_that_of_one_machine(
    demo_mirror: Path,
    histograms: Path,
    tmp_path: Path,
    cluster: Cluster,
    serve: Callable[[Callable[[Request], Reply]], Server],
) -> None:
    there = tmp_path / "there"
    there.mkdir()
    shutil.copy(histograms / "config.yaml", there)
    cluster.fails = lambda job: len(cluster.made) == 1
    options = ["--configfile", "config.yaml", "--kubernetes-volume-persistent-volumes", f"stepline:{there}"]
    options += ["--set-resources", "extract:gpu=1"]
    done = head(there, serve(cluster.reply), *options, STEPLINE_MIRROR=str(demo_mirror), OPENAI_API_KEY=KEY)
    logs = "".join(pod.log.read_text() for pod in cluster.pods.values())
    assert done.returncode == 0, done.stderr + logs
    assert (there / DEMO_TABLE).read_bytes() == (histograms / DEMO_TABLE).read_bytes()

    assert cluster.used == cluster.allowed
    assert cluster.secrets == {}
    assert cluster.gone == cluster.pods.keys()
    assert KEY not in done.stdout + done.stderr + logs + json.dumps(cluster.made)
    assert base64.b64encode(KEY.encode()).decode() not in json.dumps(cluster.made)
    with_gpu = []
    for pod in cluster.pods.values():
        container = pod.container
        names = {each["name"] for each in container["env"]}
        assert {"STEPLINE_RUN", "STEPLINE_MIRROR", "OPENAI_API_KEY"} <= names
        assert container["image"] == IMAGE
        assert {"name": "stepline", "mountPath": str(there)} in container["volumeMounts"]
        assert f"cd {there} && python -m snakemake" in " ".join(container["args"][1].split())
        limits, requests = container["resources"]["limits"], container["resources"]["requests"]
        assert limits.keys() == requests.keys()
        assert limits["memory"] == requests["memory"]
        assert {"memory", "cpu"} <= limits.keys() <= {"memory", "cpu", "nvidia.com/gpu"}
        with_gpu += ["extract" in container["args"][1]] if "nvidia.com/gpu" in limits else []
    assert with_gpu == [True]


def test_what_no_pod_could_use_is_said_before_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PROFILE)
    plugin = importlib.import_module("snakemake_executor_plugin_kubernetes_volume")

    def said(image: str, *volumes: str) -> str:
        settings = SimpleNamespace(
            persistent_volumes=kubernetes.parse_persistent_volumes([f"stepline:{each}" for each in volumes])
        )
        remote = SimpleNamespace(container_image=image)
        workflow = SimpleNamespace(remote_execution_settings=remote, executor_settings=settings)
        with pytest.raises(SetupError) as error:
            plugin.Executor.__post_init__(SimpleNamespace(workflow=workflow))
        return str(error.value)

    assert "--container-image is not set: name an image" in said(get_container_image(), str(tmp_path))
    assert f"no volume contains the work folder {tmp_path}; volumes are mounted at: /data" in said(IMAGE, "/data")
    assert f"{tmp_path}; volumes are mounted at: {tmp_path}/a, {tmp_path}b" in said(
        IMAGE, f"{tmp_path}/a", f"{tmp_path}b"
    )
