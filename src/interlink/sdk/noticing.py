"""The status question that may wait for news, from the plugin's side: standard HTTP around the existing contract.

The asker sends the tag of the answer that it has (`If-None-Match`) and how long it would wait for another one (`Prefer:
wait`, RFC 7240). An asker that sends neither is answered at once, and one that gets no `Preference-Applied` knows that
it was.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence

from aiohttp import hdrs, web

from interlink.model.pods import Pod
from interlink.sdk import hosting
from interlink.sdk.plugin import Noticing, Plugin
from interlink.wire import codec, messages

LONGEST_WAIT_S = 60.0
_WAIT = re.compile(r"(?:^|[,;])\s*wait\s*=\s*\"?(\d{1,9})\"?\s*(?=$|[,;])", re.IGNORECASE)


async def status(plugin: Plugin, request: web.Request, pods: Sequence[Pod]) -> web.Response:
    """One look at the jobs, whatever happens: at once, or when there are news, or when the time is over."""
    if not isinstance(plugin, Noticing):
        return _answer(await _look(plugin, pods))
    mark, digest = _parts(request.headers.get(hdrs.IF_NONE_MATCH, ""))
    wait_s = wait_asked_s(request.headers.getall(messages.PREFER_HEADER, ())) if mark else 0.0
    with hosting.waiting_for_news(request):
        mark = await plugin.news(mark, wait_s)
    body = await _look(plugin, pods)
    current = hashlib.blake2b(body, digest_size=8).hexdigest()
    headers: dict[str, str] = {hdrs.ETAG: f'"{mark}.{current}"'}
    if wait_s:
        headers[messages.PREFERENCE_APPLIED_HEADER] = "wait"
    return web.Response(status=304, headers=headers) if current == digest else _answer(body, headers)


def wait_asked_s(preferences: Iterable[str]) -> float:
    """The seconds of `wait=N` among the values of the header; 0 without one, LONGEST_WAIT_S at most."""
    found = next(filter(None, map(_WAIT.search, preferences)), None)
    return min(float(found[1]), LONGEST_WAIT_S) if found else 0.0


def _parts(tag: str) -> tuple[str, str]:
    """The mark and the digest of a tag of ours; of any other one nothing."""
    found = re.fullmatch(r'"([^"]+)\.([0-9a-f]{16})"', tag.strip())
    return (found[1], found[2]) if found else ("", "")


async def _look(plugin: Plugin, pods: Sequence[Pod]) -> bytes:
    return codec.encode(list(await plugin.status(pods)))


def _answer(body: bytes, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(body=body, content_type="application/json", headers=headers)
