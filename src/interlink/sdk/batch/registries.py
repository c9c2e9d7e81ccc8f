"""The registry logins of a pod, read from the Secrets that it names as imagePullSecrets; pure."""

import base64
import binascii
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Raw

from interlink.sdk.batch.runtime import Login
from interlink.sdk.errors import Rejected
from interlink.wire import codec

_KEYS = (".dockerconfigjson", ".dockercfg")


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""


class _Secret(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    data: dict[str, str] | None = None


class _Entry(msgspec.Struct, frozen=True):
    username: str = ""
    password: str = ""
    auth: str = ""


class _DockerConfig(msgspec.Struct, frozen=True):
    auths: dict[str, _Entry] = {}


def logins(secrets: Iterable[Raw]) -> list[Login]:
    """Each registry once, of the first Secret that has it. Raises Rejected, naming the Secret, for what is none."""
    found: dict[str, Login] = {}
    for raw in secrets:
        secret = codec.decode(bytes(raw), _Secret)
        for registry, entry in _entries(secret).items():
            host = registry.split("://", 1)[-1].rstrip("/")
            username, password = _login(entry, secret.metadata.name)
            found.setdefault(host, Login(registry=host, username=username, password=password))
    return list(found.values())


def _entries(secret: _Secret) -> dict[str, _Entry]:
    data = secret.data or {}
    try:
        if _KEYS[0] in data:
            return msgspec.json.decode(base64.b64decode(data[_KEYS[0]], validate=True), type=_DockerConfig).auths
        if _KEYS[1] in data:
            return msgspec.json.decode(base64.b64decode(data[_KEYS[1]], validate=True), type=dict[str, _Entry])
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise Rejected(f"imagePullSecrets: {secret.metadata.name!r} cannot be read") from error
    return {}


def _login(entry: _Entry, name: str) -> tuple[str, str]:
    if entry.username or not entry.auth:
        return entry.username, entry.password
    try:
        username, _, password = base64.b64decode(entry.auth, validate=True).decode().partition(":")
    except (binascii.Error, ValueError) as error:
        raise Rejected(f"imagePullSecrets: {name!r} cannot be read") from error
    return username, password


def docker_config(found: Sequence[Login]) -> bytes:
    """The logins as a file that Apptainer and Podman read."""
    auths = {
        login.registry: {"auth": base64.b64encode(f"{login.username}:{login.password}".encode()).decode()}
        for login in found
    }
    return msgspec.json.encode({"auths": auths})


def of_image(found: Sequence[Login], location: str) -> list[Login]:
    """The logins for the registry of an image, the most specific one first."""
    name = location.split("://", 1)[-1]
    host = name.split("/", 1)[0]
    is_hub = "/" not in name or host == "docker.io" or (not any(mark in host for mark in ".:") and host != "localhost")
    hosts = ("index.docker.io", "docker.io", "registry-1.docker.io") if is_hub else (host,)
    fitting = [
        login
        for login in found
        if login.registry.split("/", 1)[0] in hosts
        and (is_hub or name.startswith(login.registry + "/") or login.registry in (host, f"{host}/v1", f"{host}/v2"))
    ]
    return sorted(fitting, key=lambda login: -len(login.registry))
