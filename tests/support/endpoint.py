"""Calls of the node's HTTPS endpoint, as whoever a test likes to be."""

import contextlib
import http.client
import json
import ssl
from pathlib import Path
from typing import Any, NamedTuple

from interlink.testing import Cluster, ControlPlane
from interlink.testing.certificates import Pair
from interlink.testing.waiting import until


class Answer(NamedTuple):
    status: int
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Caller:
    """`ca`: the authority that the endpoint's certificate must come from; None trusts anybody."""

    def __init__(self, port: int, *, ca: Path | None) -> None:
        self._port = port
        self._ca = ca

    def get(self, path: str, *, client: Pair | None = None, token: str = "", method: str = "GET") -> Answer:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=30, context=self._context(client))
        with contextlib.closing(connection):
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            return Answer(response.status, response.read().decode())

    def wait(self, path: str, status: int, *, client: Pair | None = None, token: str = "") -> Answer:
        """Ask until the answer has this status: what the endpoint knows of clients it learns after its start."""
        answers: list[Answer] = []

        def is_there() -> bool:
            answers.append(self.get(path, client=client, token=token))
            return answers[-1].status == status

        assert until(is_there, deadline_s=20, interval_s=0.2), answers[-1]
        return answers[-1]

    def _context(self, client: Pair | None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self._ca)
        if self._ca is None:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if client is not None:
            context.load_cert_chain(*client)
        return context


def caller(plane: ControlPlane, port: int) -> Caller:
    return Caller(port, ca=plane.ca)


def token_of(cluster: Cluster, namespace: str, account: str, *rights: str) -> str:
    """A token of a new service account that may `get` the given subresources of nodes."""
    cluster.kubectl("-n", namespace, "create", "serviceaccount", account)
    if rights:
        name = f"{namespace}-{account}"
        resources = ",".join(f"nodes/{right}" for right in rights)
        cluster.kubectl("create", "clusterrole", name, "--verb=get", f"--resource={resources}")
        subject = f"--serviceaccount={namespace}:{account}"
        cluster.kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", subject)
    return cluster.kubectl("-n", namespace, "create", "token", account).strip()
