"""A cluster for the Kubernetes executor: its API on this machine, whose pods are processes of this machine.

What the API is sent is checked by the client's own models and by rules that a real API server has too. A pod runs its
container's command with the environment that its specification gives, and with the image's ``python`` first on PATH.
Volumes are folders that stand where they are mounted. There are no nodes: nothing is scheduled, limited or isolated.
"""

import base64
import json
import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kubernetes.client import ApiClient
from kubernetes.utils.quantity import parse_quantity

from tests.server import Reply, Request

Object = dict[str, Any]
ROUTES = (
    ("POST", "/api/v1/namespaces/{ns}/secrets", "secrets", "create"),
    ("DELETE", "/api/v1/namespaces/{ns}/secrets/{name}", "secrets", "delete"),
    ("POST", "/apis/batch/v1/namespaces/{ns}/jobs", "jobs", "create"),
    ("GET", "/apis/batch/v1/namespaces/{ns}/jobs/{name}/status", "jobs/status", "get"),
    ("DELETE", "/apis/batch/v1/namespaces/{ns}/jobs/{name}", "jobs", "delete"),
    ("GET", "/api/v1/namespaces/{ns}/pods", "pods", "list"),
    ("DELETE", "/api/v1/namespaces/{ns}/pods/{name}", "pods", "delete"),
    ("GET", "/api/v1/namespaces/{ns}/pods/{name}/log", "pods/log", "get"),
)


class RefusedError(Exception):
    """What a real API server would refuse, with the status and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status, reason)
        self.status, self.reason = status, reason


def checked(kind: str, content: Object) -> Any:
    """Return an object as its model; raise RefusedError where a field is unknown, of another type, or lacks."""
    client = ApiClient()
    try:
        model = client.deserialize(SimpleNamespace(data=json.dumps(content)), kind)
    except (ValueError, TypeError) as error:
        raise RefusedError(422, str(error)) from None
    known = client.sanitize_for_serialization(model)
    if known != _without_null(content):
        raise RefusedError(422, f"{kind}: unknown or mistyped fields: {_without_null(content)} is not {known}")
    return model


@dataclass
class Pod:
    """A container of a job. job: as it was sent."""

    job: Object
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def container(self) -> Object:
        """What its specification says."""
        [container] = self.job["spec"]["template"]["spec"]["containers"]
        return dict(container)


@dataclass
class Cluster:
    """The API of one namespace. claims: names of its volume claims. image: the folder with the image's ``python``.

    allowed: pairs of a resource and a verb that the account may use. fails: whether a job's first attempt is killed as
    it starts. pods: all that were started, by the name of the job. secrets: those that are there. made: all there were.
    """

    namespace: str
    claims: set[str]
    image: Path
    allowed: set[tuple[str, str]]
    fails: Callable[[Object], bool] = lambda job: False
    pods: dict[str, Pod] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    secrets: dict[str, Object] = field(default_factory=dict)
    made: list[Object] = field(default_factory=list)
    used: set[tuple[str, str]] = field(default_factory=set)
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp()))

    def reply(self, request: Request) -> Reply:
        """Answer one request."""
        try:
            return Reply(200, json.dumps(self._answer(request)).encode(), {"Content-Type": "application/json"})
        except RefusedError as error:
            status = {"kind": "Status", "apiVersion": "v1", "code": error.status, "message": error.reason}
            return Reply(error.status, json.dumps(status).encode(), {"Content-Type": "application/json"})

    def _answer(self, request: Request) -> Any:
        for method, pattern, resource, verb in ROUTES:  # noqa: B007 - the one that matches
            place = re.escape(pattern).replace(r"\{ns\}", "(?P<ns>[^/]+)").replace(r"\{name\}", "(?P<name>[^/]+)")
            if request.method == method and (match := re.fullmatch(place, request.path)):
                break
        else:
            raise RefusedError(404, f"{request.method} {request.path} is not served")
        self.used.add((resource, verb))
        if match["ns"] != self.namespace or (resource, verb) not in self.allowed:
            raise RefusedError(403, f"the account may not {verb} {resource} in {match['ns']}")
        name = match.groupdict().get("name", "")
        answer: Callable[[str, Request], Any] = getattr(self, f"_{verb}_{resource.replace('/', '_')}")
        return answer(name, request)

    def _create_secrets(self, _: str, request: Request) -> Object:
        secret = checked("V1Secret", request.json)
        self.secrets[secret.metadata.name] = request.json
        return dict(request.json)

    def _delete_secrets(self, name: str, _: Request) -> Object:
        self.secrets.pop(name)
        return {"kind": "Status", "apiVersion": "v1"}

    def _create_jobs(self, _: str, request: Request) -> Object:
        job = checked("V1Job", request.json)
        name, spec = job.metadata.name, job.spec.template.spec
        self._check(name, spec)
        self.made.append(request.json)
        [container] = spec.containers
        killed = self.fails(request.json)
        log = self.folder / f"{name}.log"
        scratch = Path(tempfile.mkdtemp(dir=self.folder))
        with open(log, "wb") as file:
            process = subprocess.Popen(
                ["/bin/false"] if killed else [*container.command, *container.args],
                cwd=scratch,
                env={"PATH": f"{self.image}:/usr/bin:/bin", "HOME": str(scratch), **self._environment(container)},
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        self.pods[name] = Pod(request.json, process, log)
        return dict(request.json)

    def _check(self, name: str, spec: Any) -> None:
        """Raise RefusedError where an API server or a node would."""
        [container] = spec.containers
        if name in self.pods or not re.fullmatch("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name):
            raise RefusedError(409, f"a job cannot be named {name}")
        volumes = {volume.name: volume for volume in spec.volumes}
        claims = {v.persistent_volume_claim.claim_name for v in spec.volumes if v.persistent_volume_claim}
        if not claims <= self.claims or not {each.name for each in container.volume_mounts} <= volumes.keys():
            raise RefusedError(422, f"volumes {claims} are not all there")
        asked, limits = (container.resources.requests or {}), (container.resources.limits or {})
        for resource, quantity in asked.items():
            limit = parse_quantity(limits.get(resource, "1E"))
            extended = "/" in resource
            if parse_quantity(quantity) > limit or (extended and parse_quantity(quantity) != limit):
                raise RefusedError(422, f"{resource}: {quantity} is asked for, and the limit is {limit}")
            if extended and parse_quantity(quantity) < Decimal(1):
                raise RefusedError(422, f"{resource}: {quantity} of it would keep the pod from other nodes")

    def _environment(self, container: Any) -> dict[str, str]:
        found = {}
        for each in container.env or ():
            key = each.value_from.secret_key_ref
            found[each.name] = base64.b64decode(self.secrets[key.name]["data"][key.key]).decode()
        return found

    def _get_jobs_status(self, name: str, _: Request) -> Object:
        pod = self._pod(name)
        code = pod.process.poll()
        status = {"active": 1} if code is None else {"failed": 1} if code else {"succeeded": 1}
        return pod.job | {"status": status}

    def _list_pods(self, _: str, request: Request) -> Object:
        name = request.query["labelSelector"].removeprefix("job-name=")
        code = self._pod(name).process.poll()
        state = {"running": {}} if code is None else {"terminated": {"exitCode": code}}
        container = {"name": "snakemake", "image": "-", "imageID": "-", "ready": False, "restartCount": 0}
        pod = {"metadata": {"name": f"{name}-0"}, "status": {"containerStatuses": [container | {"state": state}]}}
        return {"kind": "PodList", "apiVersion": "v1", "items": [pod]}

    def _get_pods_log(self, name: str, request: Request) -> str:
        if request.query.get("previous") in ("true", "True"):
            raise RefusedError(400, f"previous terminated container in pod {name} not found")
        return self._pod(name.removesuffix("-0")).log.read_text()

    def _delete_pods(self, name: str, _: Request) -> Object:
        self._pod(name.removesuffix("-0"))
        return {"kind": "Pod", "apiVersion": "v1"}

    def _delete_jobs(self, name: str, _: Request) -> Object:
        pod = self._pod(name)
        pod.process.kill()
        self.gone.add(name)
        return {"kind": "Status", "apiVersion": "v1"}

    def _pod(self, name: str) -> Pod:
        if name not in self.pods or name in self.gone:
            raise RefusedError(404, f"{name} is not there")
        return self.pods[name]


def _without_null(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _without_null(value) for key, value in content.items() if value is not None}
    return [_without_null(each) for each in content] if isinstance(content, list) else content
