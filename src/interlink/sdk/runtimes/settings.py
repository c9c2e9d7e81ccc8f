"""How a site starts containers, as its configuration file says it."""

from collections.abc import Mapping

import msgspec

from interlink.sdk.runtimes import images
from interlink.sdk.runtimes.images import ImageSettings

RUNTIMES = ("singularity", "apptainer", "charliecloud", "podman", "enroot", "none")


class RuntimeSettings(msgspec.Struct, frozen=True):
    """program, options: those of the runtime's own when empty. passed: variables of the job that containers get."""

    kind: str
    program: str = ""
    options: list[str] = []
    passed: list[str] = []
    images: ImageSettings = ImageSettings()

    @property
    def program_name(self) -> str:
        return self.program or ("ch-run" if self.kind == "charliecloud" else self.kind)


def read(
    *,
    kind: str,
    program: str,
    options: str | list[str],
    passed: list[str],
    prefix: str,
    table: Mapping[str, str],
    folder: str,
    max_age_s: float,
) -> RuntimeSettings:
    """Raises ValueError, whose text names the key, for what cannot be."""
    if kind not in RUNTIMES:
        raise ValueError(f"ContainerRuntime: {kind!r} is unknown; use one of {', '.join(RUNTIMES)}")
    if row := images.wrong_row(table):
        raise ValueError(f"Images: {row}")
    if not folder.startswith(("/", "~/")):
        raise ValueError(f"ImageFolder: {folder!r} must be an absolute path, or one in the home (~/) of the job's user")
    if not max_age_s >= 0:
        raise ValueError(f"ImageMaxAge: must not be negative, as {max_age_s} is")
    return RuntimeSettings(
        kind=kind,
        program=program,
        options=options.split() if isinstance(options, str) else options,
        passed=passed,
        images=ImageSettings(prefix=prefix, table=table, folder=folder, max_age_s=max_age_s),
    )
