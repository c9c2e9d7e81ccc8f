"""Where the Kubernetes API is and as whom we speak to it; kubeconfig files are read by lightkube.

Inside a cluster the service account's token file is read anew when it may have been rotated; outside, a kubeconfig
with client certificates, a token or an exec plug-in, which is run again shortly before what it gave expires.
"""

import asyncio
import base64
import binascii
import ssl
import tempfile
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import msgspec
import yaml
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.config.models import Cluster, User, UserExec
from lightkube.core.exceptions import ConfigError

from interlink.aio import clock, processes
from interlink.kube.errors import Unavailable
from interlink.model.errors import ConfigurationError

_TOKEN_LIFE_S = 60.0
_PLUG_IN_LIFE_S = 3600.0
_BEFORE_EXPIRY_S = 30.0
# What reading the file, and what it refers to, may end in.
_WRONG = (
    ConfigError,
    KeyError,
    TypeError,
    AttributeError,
    ValueError,
    OSError,
    binascii.Error,
    msgspec.MsgspecError,
    yaml.YAMLError,
)


class Credentials:
    """`server` and `tls` for the connection, `headers` for each request."""

    def __init__(self, server: str, tls: ssl.SSLContext | None, user: User | None) -> None:
        self.server = server.rstrip("/")
        self.tls = tls
        self._user = user or User()
        self._token = ""
        self._read_again_at = 0.0
        self._has_worked = False
        self._lock = asyncio.Lock()

    async def headers(self) -> Mapping[str, str]:
        """Raises ConfigurationError for an exec plug-in that has never worked, Unavailable for one that has."""
        if self._user.username and self._user.password:
            pair = base64.b64encode(f"{self._user.username}:{self._user.password}".encode()).decode()
            return {"Authorization": f"Basic {pair}"}
        token = await self._current_token()
        return {"Authorization": f"Bearer {token}"} if token else {}

    def forget_token(self) -> None:
        """After a 401: the next request reads it anew."""
        self._read_again_at = 0.0

    async def _current_token(self) -> str:
        async with self._lock:
            if time.monotonic() >= self._read_again_at:
                self._token, life_s = await self._read_token()
                self._read_again_at = time.monotonic() + life_s
        return self._token

    async def _read_token(self) -> tuple[str, float]:
        """And for how many seconds it is good."""
        if self._user.token_file:
            return Path(self._user.token_file).read_text().strip(), _TOKEN_LIFE_S
        if self._user.token:
            return self._user.token, _TOKEN_LIFE_S
        return await self._ask_plug_in(self._user.exec) if self._user.exec else ("", _TOKEN_LIFE_S)

    async def _ask_plug_in(self, command: UserExec) -> tuple[str, float]:
        """A client certificate that it gives is shown on new connections."""
        try:
            given = await _run_exec(command)
            if given.client_certificate_data and given.client_key_data and self.tls is not None:
                _show(self.tls, given.client_certificate_data.encode(), given.client_key_data.encode())
        except (ConfigurationError, ssl.SSLError) as error:
            if self._has_worked:
                raise Unavailable(str(error)) from error
            raise ConfigurationError(f"kubeconfig: the exec plug-in {command.command}: {error}") from error
        self._has_worked = True
        return given.token, given.life_s


class _ExecStatus(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None

    @property
    def life_s(self) -> float:
        if self.expiration_timestamp is None:
            return _PLUG_IN_LIFE_S
        left_s = (self.expiration_timestamp - clock.now()).total_seconds()
        return max(left_s - _BEFORE_EXPIRY_S, 1.0)


class _ExecCredential(msgspec.Struct):
    status: _ExecStatus


async def _run_exec(command: UserExec) -> _ExecStatus:
    """Raises ConfigurationError with the last of the plug-in's own complaints, never its answer."""
    question = {"apiVersion": command.apiVersion, "kind": "ExecCredential", "spec": {"interactive": False}}
    variables = {variable.name: variable.value for variable in command.env or []}
    variables["KUBERNETES_EXEC_INFO"] = msgspec.json.encode(question).decode()
    try:
        done = await processes.run([command.command, *(command.args or [])], env=variables, timeout_s=60)
    except (OSError, TimeoutError) as error:
        raise ConfigurationError(f"it cannot be run: {str(error) or 'it took too long'}") from error
    if done.exit_code != 0:
        complaint = done.stderr.decode(errors="replace").strip().rpartition("\n")[2][:200]
        raise ConfigurationError(f"it ended with {done.exit_code}" + (f": {complaint}" if complaint else ""))
    try:
        return msgspec.json.decode(done.stdout, type=_ExecCredential).status
    except msgspec.MsgspecError as error:
        raise ConfigurationError("it gave no ExecCredential") from error


def load(kubeconfig: Path | None) -> Credentials:
    """From a kubeconfig file, else from the pod's service account. Raises ConfigurationError."""
    where = f"kubeconfig {kubeconfig}" if kubeconfig else "in-cluster configuration (set KUBECONFIG outside)"
    try:
        config = KubeConfig.from_file(kubeconfig) if kubeconfig else KubeConfig.from_service_account()
        single = config.get()
        if single is None or not single.cluster.server:
            raise ConfigurationError(f"{where}: no current-context, or no server")
        return Credentials(single.cluster.server, _tls(single), single.user)
    except _WRONG as error:
        raise ConfigurationError(f"{where}: {' '.join(str(error).split()) or type(error).__name__}") from error


def _tls(config: SingleConfig) -> ssl.SSLContext | None:
    if not config.cluster.server.startswith("https:"):
        return None
    context = _trusting(config.cluster, config)
    if config.user is not None:
        _load_client_certificate(context, config.user, config)
    return context


def _trusting(cluster: Cluster, config: SingleConfig) -> ssl.SSLContext:
    if cluster.insecure:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    if cluster.certificate_auth_data:
        return ssl.create_default_context(cadata=_decoded(cluster.certificate_auth_data).decode())
    authority = cluster.certificate_auth
    return ssl.create_default_context(cafile=str(config.abs_file(authority)) if authority else None)


def _load_client_certificate(context: ssl.SSLContext, user: User, config: SingleConfig) -> None:
    if user.client_cert_data and user.client_key_data:
        _show(context, _decoded(user.client_cert_data), _decoded(user.client_key_data))
    elif user.client_cert and user.client_key:
        context.load_cert_chain(config.abs_file(user.client_cert), config.abs_file(user.client_key))


def _show(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """The ssl module reads certificates from files only, so these pass through private temporary files."""
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder) / "cert", Path(folder) / "key"
        for path, data in zip(paths, (certificate, key), strict=True):
            path.touch(mode=0o600)
            path.write_bytes(data)
        context.load_cert_chain(*paths)


def _decoded(text: str) -> bytes:
    """Raises ValueError for what is no base64, or nothing: an empty authority would mean to trust the system's."""
    data = base64.b64decode("".join(text.split()), validate=True)
    if not data:
        raise ValueError("embedded certificate data is empty")
    return data
