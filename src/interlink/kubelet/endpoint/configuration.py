"""`/configz`: what the node runs with, in the form of a kubelet's configuration; no secrets; pure."""

from typing import Any

from interlink.kubelet.settings import KubeletSettings


def document(settings: KubeletSettings) -> dict[str, Any]:
    authority = {"clientCAFile": str(settings.client_authority)} if settings.client_authority else {}
    is_checking = settings.is_authenticating
    return {
        "kind": "KubeletConfiguration",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "address": settings.listen_host,
        "port": settings.listen_port,
        "providerID": f"external:///{settings.node_name}",
        "authentication": {
            "anonymous": {"enabled": not is_checking},
            "webhook": {"enabled": is_checking},
            "x509": authority,
        },
        "authorization": {"mode": "Webhook" if is_checking else "AlwaysAllow"},
        "serverTLSBootstrap": settings.certificate is None and settings.csr_signer is not None,
        "nodeLeaseDurationSeconds": 40,
        "registerNode": True,
    }
