"""A plugin as authors write it with the existing Python SDK, faults of that SDK included.

A create is a list of one; an empty status question is an index error; of many pods the first is answered; there is no
list of all jobs; logs are the whole text. Each pod is one process group of this host, known in memory only.
"""

import asyncio
import contextlib
import os
import signal
from pathlib import Path
from typing import Any

from aiohttp import web

Document = dict[str, Any]


class Provider:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self.submissions: list[str] = []

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/create", self.create_pod)
        app.router.add_post("/delete", self.delete_pod)
        app.router.add_get("/status", self.get_status)
        app.router.add_get("/getLogs", self.get_logs)
        return app

    async def create_pod(self, request: web.Request) -> web.Response:
        pods = await request.json()
        if not isinstance(pods, list):
            return web.json_response({"detail": [{"msg": "Input should be a valid list"}]}, status=422)
        pod = pods[0]["pod"]
        uid, container = pod["metadata"]["uid"], pod["spec"]["containers"][0]
        environment = {variable["name"]: variable.get("value", "") for variable in container.get("env") or []}
        with (self._folder / uid).open("wb") as output:
            self._processes[uid] = await asyncio.create_subprocess_exec(
                *container["command"], stdout=output, env={**os.environ, **environment}, start_new_session=True
            )
        self.submissions.append(uid)
        return web.json_response({"PodUID": uid, "PodJID": str(self._processes[uid].pid)})

    async def delete_pod(self, request: web.Request) -> web.Response:
        uid = (await request.json())["metadata"]["uid"]
        self.kill(self._processes[uid])
        return web.json_response(f"Pod '{uid}' deleted")

    async def get_status(self, request: web.Request) -> web.Response:
        pod = (await request.json())[0]
        uid, name = pod["metadata"]["uid"], pod["spec"]["containers"][0]["name"]
        process = self._processes[uid]
        state: Document = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
        if process.returncode is not None:
            state = {"terminated": {"exitCode": process.returncode % 256, "reason": "Completed"}}
        containers = [{"name": name, "state": state}]
        answer = {"name": pod["metadata"]["name"], "UID": uid, "namespace": "default", "containers": containers}
        return web.json_response([answer])

    async def get_logs(self, request: web.Request) -> web.Response:
        return web.Response(body=(self._folder / (await request.json())["PodUID"]).read_bytes())

    def kill(self, process: asyncio.subprocess.Process) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    async def end(self) -> None:
        for process in self._processes.values():
            self.kill(process)
            await process.wait()
