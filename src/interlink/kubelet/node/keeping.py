"""Keeping the node said: its object, its status, its heartbeat."""

import time
from typing import Any

import msgspec
import structlog

from interlink.aio import clock
from interlink.kube import paths
from interlink.kube.client import MERGE, KubeClient
from interlink.kube.errors import Conflict, NotFound, Refused
from interlink.kubelet.node import nodes
from interlink.kubelet.node.site import Site
from interlink.kubelet.settings import KubeletSettings

log = structlog.get_logger(__name__)

LEASE_RENEWAL_S = 10.0
_LEASE_DURATION_S = 40
_REPORT_S = 300.0


class NodeKeeper:
    """Registers the node, again when it was deleted; reports its status when it changed and every five minutes."""

    def __init__(self, client: KubeClient, settings: KubeletSettings) -> None:
        self._client = client
        self._settings = settings
        self._reported: dict[str, Any] = {}
        self._reported_at = 0.0
        self._uid = ""
        self._refusal = ""
        self.is_draining = False

    async def report(self, site: Site) -> None:
        """One round. Raises KubeError; repeat it."""
        node = await self._node(site)
        self._uid = node["metadata"]["uid"]
        await self._report_status(node, site)
        await self._mark(node, site)

    async def _report_status(self, node: dict[str, Any], site: Site) -> None:
        status = nodes.node_status(self._settings, site, node.get("status") or {}, clock.now())
        is_due = time.monotonic() - self._reported_at > _REPORT_S
        if not is_due and nodes.without_heartbeats(status) == nodes.without_heartbeats(self._reported):
            return
        path = paths.node_status(self._settings.node_name)
        await self._client.patch(path, msgspec.json.encode({"status": status}))
        self._reported, self._reported_at = status, time.monotonic()

    async def _mark(self, node: dict[str, Any], site: Site) -> None:
        """Labels and taints; a cluster that lets us not patch the node keeps those that it was registered with."""
        patch = nodes.node_patch(self._settings, site, node, is_draining=self.is_draining)
        if patch is None:
            return
        try:
            await self._client.patch(paths.node(self._settings.node_name), patch, kind=MERGE)
        except Conflict:
            log.debug("node.changed-meanwhile", node=self._settings.node_name)
        except Refused as error:
            if str(error) != self._refusal:
                log.warning("node.not-marked", node=self._settings.node_name, error=str(error))
            self._refusal = str(error)

    async def _node(self, site: Site) -> dict[str, Any]:
        try:
            answer = await self._client.get(paths.node(self._settings.node_name))
        except NotFound:
            self._reported = {}
            body = msgspec.json.encode(nodes.node_object(self._settings, site))
            answer = await self._client.create(paths.NODES, body)
            log.info("node.registered", node=self._settings.node_name)
        document: dict[str, Any] = msgspec.json.decode(answer)
        return document

    async def renew_lease(self) -> None:
        """One heartbeat. Raises KubeError; repeat it."""
        if not self._uid:
            return
        body = msgspec.json.encode(self._lease())
        try:
            await self._client.patch(paths.node_lease(self._settings.node_name), body)
        except NotFound:
            try:
                await self._client.create(paths.NODE_LEASES, body)
            except Conflict:
                log.info("lease.created-by-another", node=self._settings.node_name)

    def _lease(self) -> dict[str, Any]:
        name = self._settings.node_name
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": self._uid}
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-node-lease", "ownerReferences": [owner]},
            "spec": {
                "holderIdentity": name,
                "leaseDurationSeconds": _LEASE_DURATION_S,
                "renewTime": clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            },
        }
