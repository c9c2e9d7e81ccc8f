"""What a container is given: its environment, its arguments, its files, byte for byte."""

import hashlib

from interlink.sdk.conformance.check import expect, must, should
from interlink.sdk.conformance.subject import Subject

_ODD = {
    "QUOTES": 'it\'s "quoted" `back` $HOME $(date)',
    "BREAKS": "one\ntwo",
    "ESCAPES": "a\\nb\\",
    "BLANKS": "  both ends  ",
    "SIGNS": "x(y) 100% & | ; < > * ?",
    "EMPTY": "",
    "UTF8": "grün ✓",
}
_FILES = {
    "plain": b"text\n",
    "no-newline": b"no newline at the end",
    "a.conf": b"[section]\nkey = 'value' \\\n",
    "binary": bytes(range(256)),
}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@must
async def the_environment_is_exact(subject: Subject) -> None:
    """Nothing in a value is evaluated, cut off or added."""
    script = "; ".join(f'printf %s "${name}" | sha256sum | cut -c1-64' for name in _ODD)
    job = subject.job(script)
    env = [{"name": name, "value": value} for name, value in _ODD.items()]
    job = subject.job(script, containers=[{**job.document["spec"]["containers"][0], "env": env}])
    await subject.create(job)
    await subject.until(job, lambda told: told.has_ended)
    found = (await subject.log(job)).decode().split()
    wrong = [name for (name, value), got in zip(_ODD.items(), found, strict=False) if digest(value.encode()) != got]
    expect(len(found) == len(_ODD) and not wrong, f"wrong values: {wrong or 'too few'}")


@must
async def arguments_are_exact(subject: Subject) -> None:
    """Each arrives as one argument."""
    arguments = ["$HOME", "a b", "it's", '"', "*", "", "a\nb"]
    job = subject.job("exit 0")
    container = {
        **job.document["spec"]["containers"][0],
        "command": ["sh", "-c", 'for a in "$@"; do printf %s "$a" | sha256sum | cut -c1-64; done', "sh"],
        "args": arguments,
    }
    job = subject.job("", containers=[container])
    await subject.create(job)
    await subject.until(job, lambda told: told.has_ended)
    found = (await subject.log(job)).decode().split()
    expect(found == [digest(a.encode()) for a in arguments], f"of {len(arguments)} arguments {len(found)} came")


@should
async def files_are_exact(subject: Subject) -> None:
    """ConfigMaps and Secrets, all 256 byte values, with and without a newline at the end."""
    names = " ".join(_FILES)
    job = subject.job(
        f"for k in config secret; do for f in {names}; do sha256sum < /$k/data/$f | cut -c1-64; done; done",
        data={"config": {"data": _FILES}, "secret": {"data": _FILES}},
    )
    await subject.create(job)
    await subject.until(job, lambda told: told.has_ended)
    found = (await subject.log(job)).decode().split()
    wanted = [digest(content) for content in _FILES.values()] * 2
    expect(
        found == wanted, f"{sum(a == b for a, b in zip(found, wanted, strict=False))} of {len(wanted)} files are exact"
    )
