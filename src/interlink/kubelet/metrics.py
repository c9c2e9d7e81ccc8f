"""What an operator can count of a virtual kubelet; names and labels are part of the interface."""

from prometheus_client import Gauge, Histogram

PODS = Gauge("interlink_kubelet_pods", "Pods of the node by phase.", ["phase"])
QUEUE = Gauge("interlink_kubelet_queue_length", "Pods that wait for a worker.", ["queue"])
RETRIES = Gauge("interlink_kubelet_retries", "Pods that failed and are tried again later.", ["queue"])
CREATE = Histogram(
    "interlink_kubelet_create_seconds",
    "From a pod being seen first to its job id being written.",
    buckets=(0.05, 0.2, 1, 5, 20, 60, 300),
)
STATUS_LAG = Histogram(
    "interlink_kubelet_status_lag_seconds",
    "From the server telling a change to its being written.",
    buckets=(0.01, 0.05, 0.2, 1, 5, 20, 60),
)
PHASES = ("Pending", "Running", "Succeeded", "Failed")
