"""What a site says of itself, however it says it (T22)."""

import msgspec
import pytest

from interlink.kubelet.node import site
from interlink.kubelet.node.site import Site
from interlink.wire.messages import Taint

KNOWN = Site(
    resources={"cpu": "64", "memory": "1Gi", "pods": "10", "nvidia.com/gpu": "4"},
    taints=[Taint(key="k", effect="NoSchedule")],
    has_spoken=True,
)


def answer(**members: object) -> bytes:
    return msgspec.json.encode({"status": "ok", **members})


@pytest.mark.parametrize(
    ("body", "nonsense"),
    [
        (
            answer(resources={"accelerators": [{"resourceType": "nvidia.com/gpu", "available": "1.5"}]}),
            ["nvidia.com/gpu: '1.5'"],
        ),
        (answer(resources={"pods": "1.5"}), ["pods: '1.5'"]),
        (
            answer(
                resources={
                    "accelerators": [
                        {"resourceType": "nvidia.com/gpu", "available": "4"},
                        {"resourceType": "gpu", "available": "4"},
                    ]
                }
            ),
            ["accelerator 'gpu': no name of a resource, as nvidia.com/gpu is"],
        ),
        (answer(taints=[{"key": "no key", "effect": "NoSchedule"}]), ["taint 'no key'='':'NoSchedule'"]),
        (answer(resources={"cpu": "0"}), ["cpu: '0'"]),
        (answer(resources={"cpu": 0}), ["cpu: 0"]),
        (answer(resources={"cpu": "-4"}), ["cpu: '-4'"]),
        (answer(resources={"memory": "-1Gi"}), ["memory: '-1Gi'"]),
        (answer(resources={"cpu": "many"}), ["cpu: 'many'"]),
        (answer(resources={"cpu": True}), ["cpu: True"]),
        (answer(resources={"cpu": 1.5}), ["cpu: 1.5"]),
        (answer(resources={"cpu": ["8"]}), ["cpu: ['8']"]),
        (answer(resources=[]), ["resources is no object"]),
        (answer(resources={"accelerators": [{"resourceType": "nvidia.com/gpu", "available": "x"}]}),
         ["nvidia.com/gpu: 'x'"]),
        (answer(resources={"accelerators": [{"resourceType": "nvidia.com/gpu", "available": "4"}, 7]}),
         ["an accelerator without resourceType"]),
        (answer(taints=["maintenance"]), ["a taint: Expected `object`, got `str`"]),
        (answer(), []),
        (answer(resources=None), []),
        (answer(resources={"cpu": ""}), []),
        (b"[]", ["the answer is no JSON object"]),
        (b"pong", ["the answer is no JSON object"]),
        (b"", ["the answer is no JSON object"]),
        (b"\xff", ["the answer is no JSON object"]),
    ],
)  # fmt: skip
def test_nonsense_leaves_the_resources_that_were_known(body: bytes, nonsense: list[str]) -> None:
    """And is named."""
    found = site.heard(KNOWN, body)

    assert found.resources == KNOWN.resources
    assert found.nonsense == nonsense
    assert found.trouble == ""


def test_one_bad_amount_does_not_hide_the_others() -> None:
    """Each is looked at by itself."""
    found = site.heard(KNOWN, answer(resources={"cpu": 0, "memory": "2Gi"}))

    assert found.resources == {**KNOWN.resources, "memory": "2Gi"}


def test_accelerators_of_any_name_are_taken() -> None:
    """And may be at zero."""
    offered = [
        {"resourceType": "nvidia.com/gpu", "available": "0"},
        {"resourceType": "example.org/qpu", "available": 2},
    ]

    found = site.heard(KNOWN, answer(resources={"accelerators": offered}))

    assert found.resources == {**KNOWN.resources, "nvidia.com/gpu": "0", "example.org/qpu": "2"}


def test_an_accelerator_that_is_no_longer_listed_is_at_zero() -> None:
    """The list is complete."""
    found = site.heard(KNOWN, answer(resources={"accelerators": []}))

    assert found.resources["nvidia.com/gpu"] == "0"


@pytest.mark.parametrize(("members", "expected"), [({}, KNOWN.taints), ({"taints": None}, []), ({"taints": []}, [])])
def test_taints_stay_unless_they_are_named(members: dict[str, object], expected: list[Taint]) -> None:
    """An empty list clears them."""
    assert site.heard(KNOWN, answer(**members)).taints == expected


def test_a_site_cannot_have_pods_evicted() -> None:
    """NoExecute becomes NoSchedule."""
    found = site.heard(KNOWN, answer(taints=[{"key": "maintenance", "value": "true", "effect": "NoExecute"}]))

    assert found.taints == [Taint(key="maintenance", value="true", effect="NoSchedule")]


def test_a_silent_site_keeps_what_it_offered() -> None:
    """With the reason of its silence."""
    found = site.silent(KNOWN, "no route")

    assert (found.trouble, found.resources, found.taints) == ("no route", KNOWN.resources, KNOWN.taints)
