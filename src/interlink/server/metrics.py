"""What an operator can count; names and labels are part of the interface."""

from prometheus_client import Counter, Gauge, Histogram

PLUGIN_CALLS = Histogram(
    "interlink_plugin_call_seconds",
    "Time of a call to the plugin.",
    ["call", "outcome"],
    buckets=(0.005, 0.05, 0.5, 5, 50, 150),
)
BREAKER = Gauge("interlink_plugin_breaker_open", "1 while the plugin is not asked because it failed too often.")
RECORDS = Gauge("interlink_records", "Records by state.", ["state"])
DAMAGED = Gauge("interlink_damaged_records", "Records that were set aside at the start.")
WAITING_CREATES = Gauge("interlink_waiting_creates", "Creates that the plugin has not answered yet.")
DOUBT = Gauge("interlink_status_doubted", "1 while the plugin's answers are doubted and not obeyed.")
RECONCILED = Counter("interlink_reconciled", "Pods and jobs that were settled by reconciliation.", ["result"])
