"""What the demo adds to the examples, and what it knows of them."""

from pathlib import Path

from tools.demo import expectations, manifests
from tools.demo.manifests import Document, Placement, Workload

EXAMPLES = Path(__file__).parents[3] / "examples"
PLACEMENT = Placement(namespace="here", node_name="node-1", ledger=Path("/somewhere/ledger/starts"))


def prepared(completions: int | None = None) -> list[Document]:
    return manifests.prepared(manifests.load(EXAMPLES), PLACEMENT, completions=completions)


def test_every_example_has_an_expectation() -> None:
    names = {workload.name for workload in manifests.workloads(manifests.load(EXAMPLES))}

    assert names == {expectations.JOB, expectations.DELETED, *expectations.PODS}


def test_every_object_goes_into_the_namespace_and_every_pod_to_the_node() -> None:
    documents = prepared()

    assert {document["metadata"]["namespace"] for document in documents} == {"here"}
    pods = [document["spec"] for document in documents if document["kind"] == "Pod"]
    assert {pod["nodeSelector"]["kubernetes.io/hostname"] for pod in pods} == {"node-1"}


def test_the_examples_themselves_stay_as_they_are() -> None:
    documents = manifests.load(EXAMPLES)

    manifests.prepared(documents, PLACEMENT, completions=3)

    assert documents == manifests.load(EXAMPLES)


def test_the_completions_can_be_chosen() -> None:
    job = next(document for document in prepared(200) if document["kind"] == "Job")

    assert (job["spec"]["completions"], job["spec"]["parallelism"]) == (200, 200)


def test_a_container_writes_the_ledger_and_then_becomes_its_command() -> None:
    document = next(document for document in prepared() if document["metadata"]["name"] == "failing")
    original = next(d for d in manifests.load(EXAMPLES) if d["metadata"]["name"] == "failing")

    container = document["spec"]["containers"][0]

    assert container["command"][:2] == ["sh", "-c"]
    assert container["command"][4:] == original["spec"]["containers"][0]["command"]
    assert {"name": "DEMO_LEDGER", "value": "/somewhere/ledger/starts"} in container["env"]


def test_workloads_count_pods_and_containers() -> None:
    found = {workload.name: workload for workload in manifests.workloads(prepared(7))}

    assert found["tasks"] == Workload(name="tasks", is_job=True, pods=7, containers=["main"])
    assert found["containers"].containers == ["prepare", "multiply", "report"]


def test_a_job_owns_the_pods_that_carry_its_name() -> None:
    job = Workload(name="tasks", is_job=True, pods=1, containers=["main"])

    assert job.owns("tasks-0-x7f2k")
    assert not job.owns("tasksmith")


def test_secret_values_are_those_that_are_long_enough_to_be_looked_for() -> None:
    assert manifests.secret_values(manifests.load(EXAMPLES)) == ["correct-horse-battery-staple"]
