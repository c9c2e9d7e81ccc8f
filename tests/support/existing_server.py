"""A server as the existing one behaves, as far as a virtual kubelet can tell: it passes calls on to the plugin, keeps
nothing on disk, asks the plugin only when it is asked, and turns every error of the plugin into a bare 500.

A process of its own (`python -m tests.support.existing_server PORT PLUGIN_PORT`), so that a test can kill it.
"""

import sys

import aiohttp
import msgspec
from aiohttp import web

from interlink.model.pods import Pod
from interlink.server import matching
from interlink.wire import codec
from interlink.wire.messages import Origin, PodCreateRequest

_SESSION = web.AppKey("session", aiohttp.ClientSession)


def app(plugin_port: int) -> web.Application:
    plugin = f"http://127.0.0.1:{plugin_port}"

    async def passed_on(request: web.Request, path: str, body: bytes) -> web.Response:
        async with request.app[_SESSION].get(plugin + path, data=body) as answer:
            content = await answer.read()
        if answer.status != 200:
            return web.Response(status=500, text=f"call exit status: 500. Body: {content.decode()}")
        return web.Response(body=content, content_type="application/json")

    async def create(request: web.Request) -> web.Response:
        message = codec.decode(await request.read(), PodCreateRequest)
        pod = codec.decode(bytes(message.pod), Pod)
        data = matching.retrieved(message, pod, Origin())
        return await passed_on(request, "/create", codec.encode(msgspec.structs.replace(data, interlink=msgspec.UNSET)))

    async def status(request: web.Request) -> web.Response:
        return await passed_on(request, "/status", await request.read())

    async def delete(request: web.Request) -> web.Response:
        return await passed_on(request, "/delete", await request.read())

    async def logs(request: web.Request) -> web.StreamResponse:
        return await passed_on(request, "/getLogs", await request.read())

    async def ping(request: web.Request) -> web.Response:
        return await passed_on(request, "/status", b"[]")

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def session(app_: web.Application) -> None:
        app_[_SESSION] = aiohttp.ClientSession()

    found = web.Application()
    found.on_startup.append(session)
    routes = {"/create": create, "/status": status, "/delete": delete, "/getLogs": logs, "/pinglink": ping}
    found.add_routes([web.route("*", path, handler) for path, handler in routes.items()])
    found.add_routes([web.get("/healthz", healthz)])
    return found


if __name__ == "__main__":
    web.run_app(app(int(sys.argv[2])), host="127.0.0.1", port=int(sys.argv[1]), print=None)
