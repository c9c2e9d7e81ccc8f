from pathlib import Path

import pytest

from interlink.testing import HarnessError, assets


@pytest.fixture(autouse=True)
def _no_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assets, "script", lambda: None)


def folder_with(folder: Path, *names: str) -> str:
    folder.mkdir()
    for name in names:
        (folder / name).touch(mode=0o755)
    return str(folder)


def test_the_folder_the_user_names_is_used(tmp_path: Path) -> None:
    named = folder_with(tmp_path / "a", "etcd", "kube-apiserver")

    assert assets.find({"KUBEBUILDER_ASSETS": named}) == Path(named)


def test_an_incomplete_folder_is_passed_over(tmp_path: Path) -> None:
    half = folder_with(tmp_path / "half", "etcd")
    whole = folder_with(tmp_path / "whole", "etcd", "kube-apiserver")

    assert assets.find({"KUBEBUILDER_ASSETS": half, "INTERLINK_KUBE_ASSETS": whole}) == Path(whole)


def test_without_any_folder_there_is_nothing(tmp_path: Path) -> None:
    assert assets.find({}) is None
    assert assets.find({"KUBEBUILDER_ASSETS": str(tmp_path / "absent")}) is None


def test_a_program_that_cannot_be_run_does_not_count(tmp_path: Path) -> None:
    named = folder_with(tmp_path / "a", "etcd", "kube-apiserver")
    (Path(named) / "etcd").chmod(0o644)

    assert assets.find({"KUBEBUILDER_ASSETS": named}) is None


def test_optional_programs_that_are_absent_are_named(tmp_path: Path) -> None:
    named = folder_with(tmp_path / "a", "etcd", "kube-apiserver", "kube-scheduler")

    assert assets.missing(Path(named)) == ("kube-controller-manager",)


def test_the_folder_that_the_build_prints_is_used(tmp_path: Path) -> None:
    builder = tmp_path / "build.py"
    builder.write_text("print('/built')\n")

    assert assets.build(builder) == Path("/built")


def test_a_failed_build_is_an_error_not_an_absence(tmp_path: Path) -> None:
    builder = tmp_path / "build.py"
    builder.write_text("raise SystemExit(1)\n")

    with pytest.raises(HarnessError, match=r"build\.py failed with exit code 1"):
        assets.build(builder)
