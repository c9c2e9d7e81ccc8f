"""Names as the Kubernetes API accepts them in keys and values of labels, taints and resources."""

import re

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_DOMAIN = 253


def is_qualified(text: str) -> bool:
    """A name, with or without a domain before it: `maintenance`, `nvidia.com/gpu`."""
    domain, slash, name = text.rpartition("/")
    is_domain = bool(_DOMAIN.fullmatch(domain)) and len(domain) <= _LONGEST_DOMAIN
    return bool(_NAME.fullmatch(name)) and (is_domain or not slash)


def is_label_value(text: str) -> bool:
    """May be empty."""
    return not text or bool(_NAME.fullmatch(text))
