"""What the node's heartbeat tells of the site."""

from typing import cast

from structlog.testing import capture_logs

from interlink.kube.events import Events, Note
from interlink.kubelet.dialects.server import Server
from interlink.kubelet.node.heart import Heart
from interlink.kubelet.node.keeping import NodeKeeper
from interlink.kubelet.node.site import Site
from interlink.sdk.errors import Unreachable


class Around:
    """The server that is asked, the node that is kept and the events that are told, in one."""

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.reported: list[Site] = []
        self.told: list[str] = []
        self.renewals = 0

    async def ping(self) -> bytes:
        answer = self._answers.pop(0)
        if not answer:
            raise Unreachable("the plugin is away")
        return answer.encode()

    async def report(self, site: Site) -> None:
        self.reported.append(site)

    async def renew_lease(self) -> None:
        self.renewals += 1

    def tell(self, note: Note) -> None:
        self.told.append(note.reason)


async def beats(*answers: str) -> tuple[Around, list[list[str]]]:
    """What the site answers, beat by beat; what was warned of."""
    around = Around(*answers)
    heart = Heart(cast("NodeKeeper", around), cast("Server", around), cast("Events", around), "vk")
    with capture_logs() as lines:
        for _ in answers:
            await heart.beat()
    return around, [line["ignored"] for line in lines if line["event"] == "site.nonsense"]


NONSENSE = '{"resources": {"cpu": "0", "memory": "64Gi"}}'


async def test_t22_nonsense_is_warned_of_once() -> None:
    """However often the site repeats it; other nonsense, and the same after a good answer, are news."""
    other = '{"resources": {"cpu": "-1", "memory": "64Gi"}}'
    good = '{"resources": {"cpu": "4", "memory": "64Gi"}}'

    assert await warned(NONSENSE, NONSENSE, NONSENSE) == [["cpu: '0'"]]
    assert await warned(NONSENSE, other, other) == [["cpu: '0'"], ["cpu: '-1'"]]
    assert await warned(NONSENSE, good, NONSENSE) == [["cpu: '0'"], ["cpu: '0'"]]
    assert await warned(good, good) == []


async def warned(*answers: str) -> list[list[str]]:
    return (await beats(*answers))[1]


async def test_what_makes_sense_beside_nonsense_counts() -> None:
    """The node is reported with each beat, and its Lease is begun once."""
    around, _ = await beats(NONSENSE, NONSENSE)

    assert [site.resources for site in around.reported] == [{"memory": "64Gi"}] * 2
    assert around.renewals == 1


async def test_a_site_that_goes_and_comes_is_an_event_each() -> None:
    """Not while it stays away."""
    around, _ = await beats("{}", "", "", "{}")

    assert around.told == ["InterlinkConnectivityLost", "InterlinkConnectivityRestored"]
    assert [bool(site.trouble) for site in around.reported] == [False, True, True, False]
