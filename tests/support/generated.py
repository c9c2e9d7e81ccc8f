"""Requests that are generated from an OpenAPI document, and answers held against it."""

from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlink.wire.openapi import Document

DOCUMENTED = {200, 400, 404, 409, 413, 422, 429, 502, 503}
_EXAMPLES = 30


def hold_against(document: Document, path: str, url: str, known: dict[str, Any]) -> set[int]:
    """Whatever fits the document, and what does not, is answered as it says; returns the codes that came. Blocking.

    Half of the requests have what is `known` in their bodies, and so are about something that is there.
    """
    operation = schemathesis.openapi.from_dict(document | {"servers": [{"url": url}]})[path]["POST"]
    seen: set[int] = set()
    chosen = settings(max_examples=_EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))

    @chosen
    @given(case=operation.as_strategy(), is_known=st.booleans())
    def one(case: schemathesis.Case[Any], is_known: bool) -> None:
        if is_known and isinstance(case.body, dict):
            case.body |= known
        response = case.call(base_url=url, headers={"InterLink-Hold": "0"}, timeout=20)
        operation.validate_response(response)
        assert response.status_code in DOCUMENTED, response.text
        seen.add(response.status_code)

    one()
    return seen
