"""resourceFieldRef: a container's own limits and requests as whole numbers of a divisor; pure."""

from collections.abc import Mapping

from interlink.kubelet.errors import Unsupported
from interlink.model import quantities
from interlink.model.errors import InvalidQuantity
from interlink.model.pods import Container, ResourceFieldSelector


def value(selector: ResourceFieldSelector, container: Container, allocatable: Mapping[str, str]) -> str:
    """Rounded up. A limit that is not set is what the node has, a request that is not set is zero.

    Raises Unsupported for a resource that no container can have.
    """
    side, _, name = selector.resource.partition(".")
    given = container.resources
    match side:
        case "limits":
            amount = (given.limits or {}).get(name) or allocatable.get(name)
        case "requests":
            amount = (given.requests or {}).get(name, "0")
        case _:
            amount = None
    if amount is None or not name:
        raise Unsupported(f"resourceFieldRef {selector.resource!r} is not supported")
    divisor = selector.divisor if selector.divisor not in (None, "0", 0) else "1"
    try:
        return str(quantities.ceiling(amount, unit=divisor))
    except (InvalidQuantity, ZeroDivisionError) as error:
        raise Unsupported(f"resourceFieldRef {selector.resource!r}: divisor {divisor!r}: {error}") from error
