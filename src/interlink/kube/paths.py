"""Paths of the API objects that we use."""

PODS = "/api/v1/pods"
NODES = "/api/v1/nodes"
NODE_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 -- a path
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
SIGNING_REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


def namespace(name: str) -> str:
    return f"/api/v1/namespaces/{name}"


def pod(namespace_: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace_}/pods/{name}"


def config_map(namespace_: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace_}/configmaps/{name}"


def secret(namespace_: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace_}/secrets/{name}"


def service_account_token(namespace_: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace_}/serviceaccounts/{name}/token"


def node(name: str) -> str:
    return f"{NODES}/{name}"


def node_status(name: str) -> str:
    return f"{NODES}/{name}/status"


def node_lease(name: str) -> str:
    return f"{NODE_LEASES}/{name}"


def signing_request(name: str) -> str:
    return f"{SIGNING_REQUESTS}/{name}"


def events(namespace_: str) -> str:
    return f"/api/v1/namespaces/{namespace_}/events"


def event(namespace_: str, name: str) -> str:
    return f"{events(namespace_)}/{name}"


def services(namespace_: str) -> str:
    return f"/api/v1/namespaces/{namespace_}/services"
