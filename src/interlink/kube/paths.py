"""Paths of the API objects that we use."""

PODS = "/api/v1/pods"
NODES = "/api/v1/nodes"
NODE_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


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


def services(namespace_: str) -> str:
    return f"/api/v1/namespaces/{namespace_}/services"
