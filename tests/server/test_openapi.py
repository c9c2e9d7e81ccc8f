"""The published OpenAPI document, and the server held against it with generated requests."""

import asyncio
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

import interlink
from interlink.testing.programs import Programs
from interlink.wire import openapi

OPERATIONS = ["/create", "/delete", "/status", "/getLogs", "/interlink/v1/announce", "/interlink/v1/changes"]
EXPECTED = {200, 400, 404, 409, 413, 422, 429, 502, 503}


@pytest.mark.parametrize("path", OPERATIONS)
async def test_generated_requests_get_documented_answers(server: Programs, path: str) -> None:
    """Whatever fits the document, and what does not, is answered with a documented code; the process lives on."""
    pid = server.server.pid
    document = openapi.server(interlink.__version__)
    document["servers"] = [{"url": f"http://127.0.0.1:{server.server_port}"}]
    operation = schemathesis.openapi.from_dict(document)[path]["POST"]

    await asyncio.to_thread(_check, operation, f"http://127.0.0.1:{server.server_port}")

    assert server.server.pid == pid
    assert "Traceback" not in server.server.log.read_text()


def _check(operation: schemathesis.APIOperation[Any, Any, Any, Any], url: str) -> None:
    chosen = settings(max_examples=30, deadline=None, database=None, suppress_health_check=list(HealthCheck))

    @chosen
    @given(case=operation.as_strategy())
    def one(case: schemathesis.Case[Any]) -> None:
        if isinstance(case.body, dict):
            case.body.pop("wait_s", None)
        response = case.call(base_url=url, headers={"InterLink-Hold": "0"}, timeout=20)
        operation.validate_response(response)
        assert response.status_code in EXPECTED, response.text

    one()
