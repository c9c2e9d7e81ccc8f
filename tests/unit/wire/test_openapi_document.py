"""The OpenAPI documents: complete, and every reference in them leads somewhere."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from interlink.sdk import serving
from interlink.server import routes
from interlink.wire import openapi
from interlink.wire.openapi import Document

DOCUMENTS = [openapi.server("1.0"), openapi.plugin("1.0")]
both = pytest.mark.parametrize("document", DOCUMENTS, ids=["server", "plugin"])
OWN = {"/healthz", "/readyz", "/metrics"}


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def served(app: web.Application) -> set[str]:
    return {resource.canonical for resource in app.router.resources()} - OWN


@both
def test_every_reference_leads_to_a_schema(document: Document) -> None:
    """No schema is named that the document does not hold."""
    schemas = document["components"]["schemas"]
    names = {reference.removeprefix("#/components/schemas/") for reference in references(document)}

    assert names <= set(schemas)


@both
def test_every_call_has_an_answer_and_every_error_a_body(document: Document) -> None:
    """Each operation tells what comes back when it worked, and the shape of what comes back when it did not."""
    for path in document["paths"].values():
        responses = path["post"]["responses"]
        assert responses["200"]["content"]
        assert all("application/json" in answer["content"] for code, answer in responses.items() if code >= "400")


class Whole:
    """A plugin that also knows what containers use and can replace their files has two routes more."""

    async def usage(self) -> None: ...

    async def refresh(self) -> None: ...


def test_the_plugins_document_mentions_every_route_of_a_plugin() -> None:
    """Nothing is served that is not written down, and nothing is written down that is not served."""
    app = serving.application(Whole())  # type: ignore[arg-type]  # only its routes are looked at

    assert set(openapi.plugin("1.0")["paths"]) == served(app)


def test_the_servers_document_mentions_every_route_of_the_server() -> None:
    """Nothing is served that is not written down, and nothing is written down that is not served."""
    app = routes.application(SimpleNamespace(problems=list), create_hold_s=1, body_limit_bytes=1)  # type: ignore[arg-type]

    assert set(openapi.server("1.0")["paths"]) == served(app)


@both
def test_the_document_carries_the_version(document: Document) -> None:
    """It is OpenAPI 3.1 and says of which version of the program it is."""
    assert (document["openapi"], document["info"]["version"]) == ("3.1.0", "1.0")
