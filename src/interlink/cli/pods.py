"""`interlink pods`: look at a server's pods, or give it pods without Kubernetes."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import click
import msgspec
import stamina

from interlink.apps import submitting
from interlink.cli import connecting, tables
from interlink.cli.connecting import Credentials
from interlink.cli.programs import Mistake
from interlink.kubelet.dialects.own import Remote
from interlink.kubelet.errors import KubeletError
from interlink.model import ids, statuses
from interlink.model.errors import ConfigurationError, ModelError
from interlink.model.ids import Owner
from interlink.model.pods import ObjectMeta, Pod, PodSpec
from interlink.sdk.errors import SDKError
from interlink.wire import messages
from interlink.wire.messages import Change, LogOptions, LogRequest

_COLUMNS = {
    "namespace": "NAMESPACE",
    "name": "POD",
    "uid": "UID",
    "job_id": "JOB",
    "state": "STATE",
    "exit_codes": "EXIT CODES",
}


class Target:
    """The server and the owner whose pods are meant."""

    def __init__(self, server: str, owner: Owner, credentials: Credentials) -> None:
        self.server = server
        self.owner = owner
        self._credentials = credentials

    @contextlib.asynccontextmanager
    async def remote(self) -> AsyncIterator[Remote]:
        headers = {messages.CLUSTER_HEADER: self.owner.cluster}
        if self.owner != submitting.OWNER:  # whose pods nobody announces: the server would wait for that
            headers[messages.NODE_HEADER] = self.owner.node
        link = connecting.link(self.server, self._credentials, key="--server", peer="interLink server", headers=headers)
        try:
            yield Remote(link, self.owner, may_act=lambda: None)
        finally:
            await link.close()


def _owner(_: click.Context, __: click.Parameter, value: str) -> Owner:
    cluster, slash, node = value.partition("/")
    if not slash:
        raise click.BadParameter("expected CLUSTER/NODE, as in cli/submit")
    try:
        return ids.owner(cluster, node)
    except ModelError as error:
        raise click.BadParameter(str(error)) from error


@click.group()
@click.option("--server", envvar="INTERLINK_SERVER", default="http://127.0.0.1:3000", show_default=True, metavar="URL")
@click.option(
    "--owner",
    default=str(submitting.OWNER),
    show_default=True,
    callback=_owner,
    help="CLUSTER/NODE whose pods are meant.",
)
@connecting.options
@click.pass_context
def pods(context: click.Context, server: str, owner: Owner, credentials: Credentials) -> None:
    """Look at a server's pods, or give it pods without Kubernetes.

    \b
    Example:
      interlink pods --server http://127.0.0.1:3000 submit -f pod.yaml
      interlink pods list
    """
    context.obj = Target(server, owner, credentials)


@pods.command()
@click.option(
    "-f",
    "manifest",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    required=True,
    metavar="FILE",
    help="The manifest (YAML).",
)
@tables.output_option
@click.pass_obj
def submit(target: Target, manifest: Path, output: str) -> None:
    """Submit every pod of a manifest.

    The pods of its Jobs too; its ConfigMaps and Secrets are their inputs. While the server or the plugin cannot be
    reached it is tried again, for a minute.
    """

    rows: list[dict[str, Any]] = []

    async def work() -> None:
        async with target.remote() as remote, contextlib.aclosing(submitting.submit(manifest, remote)) as submitted:
            async for pod in submitted:
                rows.append(msgspec.to_builtins(pod))  # noqa: PERF401 -- what is there counts, also after an error

    stamina.instrumentation.set_on_retry_hooks([_Waiting().tell])
    try:
        _run(work())
    finally:
        _show_submitted(rows, output)


def _show_submitted(rows: list[dict[str, Any]], output: str) -> None:
    """Also when a later pod failed: these are submitted."""
    if not rows and output == "table":
        return
    tables.show(rows, {"namespace": "NAMESPACE", "name": "POD", "uid": "UID", "job_id": "JOB"}, output=output)


class _Waiting:
    """Why a submission waits, each reason once, on stderr."""

    def __init__(self) -> None:
        self._told = ""

    def tell(self, details: stamina.instrumentation.RetryDetails) -> None:
        text = str(details.caused_by)
        if text != self._told:
            click.echo(f"Trying again: {text}", err=True)
        self._told = text


@pods.command("list")
@tables.output_option
@click.pass_obj
def list_(target: Target, output: str) -> None:
    """The owner's pods and their jobs."""
    rows = [_row(change) for change in _run(_changes(target))]
    tables.show(rows, _COLUMNS, output=output)


@pods.command()
@click.argument("uid")
@click.pass_obj
def show(target: Target, uid: str) -> None:
    """Everything the server knows of one pod's job, as JSON."""
    change = _one(_run(_changes(target)), uid)
    click.echo(msgspec.json.format(msgspec.json.encode(change), indent=2))


@pods.command()
@click.argument("uid")
@click.argument("container")
@click.option("--follow", is_flag=True, help="Go on until the container has ended.")
@click.option("--tail", type=click.IntRange(min=0), default=0, metavar="LINES", help="Only the last lines.")
@click.pass_obj
def logs(target: Target, uid: str, container: str, follow: bool, tail: int) -> None:
    """The log of a container."""
    question = LogRequest(pod_uid=uid, container=container, options=LogOptions(follow=follow, tail=tail))

    async def work() -> None:
        async with target.remote() as remote, remote.logs(question) as chunks:
            async for chunk in chunks:
                sys.stdout.buffer.write(chunk)
                sys.stdout.buffer.flush()

    _run(work())


@pods.command()
@click.argument("uid")
@click.option("--grace-period", type=click.IntRange(min=0), default=30, show_default=True, metavar="SECONDS")
@click.pass_obj
def delete(target: Target, uid: str, grace_period: int) -> None:
    """End a pod's job: TERM, the grace period, KILL. Returns before the job has ended."""

    async def work() -> None:
        async with target.remote() as remote:
            status = _one(await _changes(target), uid).status
            meta = ObjectMeta(
                name=status.name, namespace=status.namespace, uid=uid, deletion_grace_period_seconds=grace_period
            )
            await remote.delete(Pod(metadata=meta, spec=PodSpec(node_name=target.owner.node)))

    _run(work())
    click.echo(f"pod {uid}: the job is being ended")


async def _changes(target: Target) -> list[Change]:
    async with target.remote() as remote:
        return (await remote.changes("", 0, pods=(), wait_s=0)).changes


def _one(changes: list[Change], uid: str) -> Change:
    for change in changes:
        if change.status.uid == uid:
            return change
    raise click.ClickException(f"the server knows no pod {uid} of this owner; see `interlink pods list`")


def _row(change: Change) -> dict[str, Any]:
    status = change.status
    containers = [statuses.read(raw) for raw in status.containers or []]
    return {
        "namespace": status.namespace,
        "name": status.name,
        "uid": status.uid,
        "job_id": status.job_id,
        "state": _state(change, containers),
        "exit_codes": statuses.exit_codes(containers),
    }


def _state(change: Change, containers: list[statuses.ContainerStatus]) -> str:
    if change.rejected is not None:
        return "rejected"
    if change.has_ended:
        return "deleted" if change.is_deleting else "succeeded" if statuses.is_success(containers) else "failed"
    if change.is_deleting:
        return "deleting"
    return "running" if any(status.running for status in containers) else "waiting"


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    """Errors of the other side end in one line."""
    try:
        return asyncio.run(work)
    except ConfigurationError as error:
        raise Mistake(str(error)) from error
    except (SDKError, KubeletError, ModelError) as error:
        raise click.ClickException(str(error)) from error
