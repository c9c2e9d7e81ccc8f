"""A virtual kubelet's side of a server, for tests: both dialects, nothing hidden."""

import uuid
from typing import Any

import aiohttp

from interlink.testing.waiting import until_async

Document = dict[str, Any]


def pod(uid: str | None = None, *, node: str = "vk", job_id: str | None = None, **metadata: Any) -> Document:
    annotations = {"JobID": job_id} if job_id else {}
    meta = {"name": "p", "namespace": "ns", "uid": uid or str(uuid.uuid4()), "annotations": annotations, **metadata}
    secret = {"name": "PW", "value": "s3cr3t-in-the-environment"}
    return {
        "metadata": meta,
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "i", "command": ["true"], "env": [secret]}],
        },
        "status": {"phase": "Pending"},
    }


def uid_of(document: Document) -> str:
    uid: str = document["metadata"]["uid"]
    return uid


class ServerClient:
    def __init__(self, session: aiohttp.ClientSession, port: int, *, cluster: str | None = None) -> None:
        self._session = session
        self._url = f"http://127.0.0.1:{port}"
        self._headers = {"InterLink-Cluster": cluster} if cluster else {}
        self.cluster = cluster or "default"

    async def ask(
        self, path: str, body: Any = None, *, method: str = "POST", headers: dict[str, str] | None = None
    ) -> tuple[int, str]:
        data = {"data": body} if isinstance(body, bytes) else {"json": body} if body is not None else {}
        async with self._session.request(
            method, self._url + path, headers=self._headers | (headers or {}), **data
        ) as response:
            return response.status, await response.text()

    async def json(self, path: str, body: Any = None, *, method: str = "POST") -> Any:
        async with self._session.request(method, self._url + path, headers=self._headers, json=body) as response:
            return await response.json()

    async def create(self, document: Document, *, hold_s: int = 20) -> tuple[int, str]:
        return await self.ask("/create", {"pod": document}, headers={"InterLink-Hold": str(hold_s)})

    async def status(self, *documents: Document) -> list[Document]:
        answer: list[Document] = await self.json("/status", list(documents), method="GET")
        return answer

    async def changes(self, *, node: str = "vk", epoch: str = "", since: int = 0, wait_s: float = 0) -> Document:
        owner = {"cluster": self.cluster, "node": node}
        request = {"owner": owner, "epoch": epoch, "since": since, "wait_s": wait_s}
        answer: Document = await self.json("/interlink/v1/changes", request)
        return answer

    async def announce(self, *documents: Document, node: str = "vk") -> Document:
        """As a virtual kubelet does it: the complete list, after all changes have been read."""
        seen = await self.changes(node=node)
        known = [{"pod": d, "job_id": d["metadata"]["annotations"].get("JobID")} for d in documents]
        message = {"owner": {"cluster": self.cluster, "node": node}, "pods": known}
        answer: Document = await self.json(
            "/interlink/v1/announce", message | {"epoch": seen["epoch"], "revision": seen["revision"]}
        )
        return answer

    async def change(self, document: Document, *, node: str = "vk") -> Document | None:
        found = (await self.changes(node=node))["changes"]
        return next((c for c in found if c["status"]["UID"] == uid_of(document)), None)

    async def wait_ended(self, document: Document, *, deadline_s: float = 20) -> Document:
        async def has_ended() -> bool:
            change = await self.change(document)
            return change is not None and change["has_ended"]

        assert await until_async(has_ended, deadline_s=deadline_s), await self.change(document)
        change = await self.change(document)
        assert change is not None
        return change

    async def until_state(self, document: Document, state: str, *, deadline_s: float = 20) -> None:
        """Wait until the first container is `running`, `waiting` or `terminated`."""

        async def is_there() -> bool:
            found = await self.status(document)
            return bool(found) and state in (found[0]["containers"] or [{"state": {}}])[0]["state"]

        assert await until_async(is_there, deadline_s=deadline_s), await self.status(document)

    async def ready(self) -> str:
        return (await self.ask("/readyz", method="GET"))[1]

    async def metric(self, line: str) -> float:
        text = (await self.ask("/metrics", method="GET"))[1]
        return next(float(row.rpartition(" ")[2]) for row in text.splitlines() if row.startswith(line + " "))
