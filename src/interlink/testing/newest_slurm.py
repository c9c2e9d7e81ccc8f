"""A site whose machines are not this one: the newest Slurm with Apptainer, and jobs of an ordinary user.

Slurm's programs run in a root directory of their own, which shares one folder with this host. Its commands are called
through programs in that folder, as a site's wrappers would be.
"""

from collections.abc import Sequence
from pathlib import Path

from interlink.testing import slurm
from interlink.testing.apptainer import PATH, ApptainerRoot
from interlink.testing.daemons import Daemon
from interlink.testing.slurm import SlurmSite

COMMANDS = ("sbatch", "scancel", "squeue", "sinfo", "scontrol", "sacct")


class NewestSlurmSite(SlurmSite):
    """folder: of the host, shared with the root at the same path."""

    def __init__(self, root: ApptainerRoot, folder: Path) -> None:
        self._root = root
        super().__init__(nodes=1, folder=folder)
        self.programs = {name: str(self._wrapper(name)) for name in COMMANDS}

    def _wrapper(self, name: str) -> Path:
        return self._root.program(
            self.folder / name, "env", f"SLURM_CONF={self.conf}", f"PATH={PATH}", f"/usr/bin/{name}"
        )

    def _check_available(self, *, has_accounting: bool) -> None:
        """The root has them all."""

    def _write_configuration(self) -> None:
        super()._write_configuration()
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=disabled\n")

    def _launch(self, name: str, argv: Sequence[str]) -> None:
        program = Path(argv[0]).name
        inside = self._root.inside("env", f"SLURM_CONF={self.conf}", f"PATH={PATH}", program, *argv[1:])
        if name not in self._daemons:
            self._daemons[name] = Daemon(inside, log=self.folder / f"{name}.log", environ=self.environ)
        self._daemons[name].start()

    def run(self, *argv: str, timeout_s: float = slurm.COMMAND_TIMEOUT_S) -> str:
        return super().run(self.programs[argv[0]], *argv[1:], timeout_s=timeout_s)
