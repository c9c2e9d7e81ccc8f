"""A configuration file as a struct: unknown keys are reported by path, wrong values refused by path."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import yaml

from interlink.model.errors import ConfigurationError

T = TypeVar("T", bound=msgspec.Struct)

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse(text: str, kind: type[T], *, source: str) -> tuple[T, list[str]]:
    """The settings, and the paths of keys that mean nothing here.

    Raises ConfigurationError with `source`, the key's path and the problem.
    """
    document = _without_empty(_document(text, source))
    try:
        settings = msgspec.convert(document, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{source}: {_readable(str(error))}") from error
    return settings, list(_unknown(document, kind, ""))


def _document(text: str, source: str) -> Mapping[str, Any]:
    try:
        document = yaml.load(text, Loader=_Loader)  # noqa: S506 -- a safe loader, in C where there is one
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigurationError(f"{source}: not valid YAML: {' '.join(str(error).split())}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigurationError(f"{source}: expected keys and values, found a {type(document).__name__}")
    return document


def _without_empty(value: Any) -> Any:
    """A key without a value is not set, as in a block whose lines are all commented out; keys are texts."""
    if isinstance(value, dict):
        return {str(key): _without_empty(item) for key, item in value.items() if item is not None}
    return [_without_empty(item) for item in value] if isinstance(value, list) else value


def _readable(message: str) -> str:
    """`Expected `int`, got `str` - at `$.TLS.Port`` -> `TLS.Port: expected `int`, got `str``."""
    problem, _, path = message.partition(" - at `$.")
    return f"{path.rstrip('`')}: {problem[0].lower()}{problem[1:]}" if path else message


def _unknown(value: Any, kind: Any, path: str) -> Iterator[str]:
    struct = _struct_in(kind)
    if isinstance(value, list):
        for item_kind in _item_kinds(kind):
            for index, item in enumerate(value):
                yield from _unknown(item, item_kind, f"{path}[{index}]")
    if struct is None or not isinstance(value, dict):
        return
    hints = get_type_hints(struct)
    kinds = {field.encode_name: hints[field.name] for field in msgspec.structs.fields(struct)}
    for key, item in value.items():
        place = f"{path}.{key}" if path else str(key)
        if key not in kinds:
            yield place
        else:
            yield from _unknown(item, kinds[key], place)


def _item_kinds(kind: Any) -> list[Any]:
    """What a list type holds, also one that may be None."""
    candidates = (kind, *get_args(kind))
    return [item for found in candidates if get_origin(found) is list for item in get_args(found)]


def _struct_in(kind: Any) -> type[msgspec.Struct] | None:
    """The struct that a type is, or that a union with None holds."""
    candidates = (kind, *get_args(kind)) if get_args(kind) and type(None) in get_args(kind) else (kind,)
    return next((c for c in candidates if isinstance(c, type) and issubclass(c, msgspec.Struct)), None)
