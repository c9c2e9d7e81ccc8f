"""Nobody reaches a route without being known (401) and allowed (403), as at a kubelet."""

import prometheus_client
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from interlink.kube.errors import KubeError
from interlink.kubelet.endpoint import authenticating, authorising
from interlink.kubelet.endpoint.authenticating import User
from interlink.kubelet.endpoint.reviewing import Reviewer

log = structlog.get_logger(__name__)

REFUSED = prometheus_client.Counter(
    "interlink_kubelet_refused_requests", "Requests refused at the node's endpoint, by answer.", ["code"]
)


def guard(reviewer: Reviewer) -> Middleware:
    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            await _check(request, reviewer)
        except web.HTTPException as refusal:
            REFUSED.labels(str(refusal.status)).inc()
            raise
        return await handler(request)

    return check


async def _check(request: web.Request, reviewer: Reviewer) -> None:
    user = await _user(request, reviewer)
    if user is None:
        raise web.HTTPUnauthorized(text="Unauthorized", headers={"WWW-Authenticate": "Bearer"})
    demand = authorising.demand(request.method, request.path)
    what = f"user={user.name}, verb={demand.verb}, resource=nodes, subresource={'|'.join(demand.subresources)}"
    try:
        is_allowed = await reviewer.may(user, demand)
    except KubeError as error:
        log.warning("endpoint.rights-unknown", user=user.name, error=str(error))
        raise web.HTTPInternalServerError(text=f"Authorization error ({what})") from error
    if not is_allowed:
        raise web.HTTPForbidden(text=f"Forbidden ({what})")


async def _user(request: web.Request, reviewer: Reviewer) -> User | None:
    """A verified certificate wins over a token. A token that cannot be checked is as good as none."""
    user = authenticating.user_of_certificate(request.get_extra_info("peercert"))
    token = authenticating.bearer_token(request.headers.get("Authorization", ""))
    if user is not None or not token:
        return user
    try:
        return await reviewer.user_of(token)
    except KubeError as error:
        log.warning("endpoint.token-unchecked", error=str(error))
        return None
