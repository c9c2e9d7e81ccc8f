"""`interlink virtual-kubelet`"""

import os
from pathlib import Path

import click

from interlink.apps import kubelet as app
from interlink.cli import programs
from interlink.kubelet import settings


@click.command("virtual-kubelet")
@programs.config_option
@click.option("--node-name", envvar="NODENAME", default="", help="The node to be.  [env: NODENAME]")
def virtual_kubelet(config: Path | None, node_name: str) -> None:
    """Be a node of Kubernetes whose pods run at a site.

    Without --config the file that CONFIGPATH names is read, else /etc/interlink/InterLinkConfig.yaml. KUBECONFIG says
    where Kubernetes is (else the service account of the pod); KUBELET_URL and KUBELET_PORT where to listen; POD_IP is
    the node's address.

    \b
    Example:
      KUBECONFIG=~/.kube/config POD_IP=127.0.0.1 interlink virtual-kubelet --node-name site-a --config vk.yaml
    \b
    vk.yaml:
      InterlinkURL: http://127.0.0.1
      InterlinkPort: 3000
    """
    file = config or programs.default_config(os.environ, "CONFIGPATH", "/etc/interlink/InterLinkConfig.yaml")
    programs.run(
        file,
        lambda text, env, source: settings.load(text, env, source=source, node_name=node_name),
        app.run,
        service="VK-InterLink",
    )
