"""Programs that failed, as the bytes they were drawn from, kept from run to run in one of Hypothesis' databases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hypothesis.database import ExampleDatabase

SERVERS: Final = ("redis://", "rediss://", "unix://")
"""How a place begins that is a Redis server, which several machines can share. Any other place is a folder."""

_PATIENCE: Final = 10
"""Seconds until a server that does not answer counts as missing."""


class DatabaseUnavailable(RuntimeError):
    """The database cannot be used; the message says what is missing and how to get it."""


class Remembered:
    """The failing bytes of one exploration, for one subject over one driver; with no ``place`` nothing is kept.

    Raises `DatabaseUnavailable` where the place cannot be used.
    """

    def __init__(self, place: str, name: str) -> None:
        self._database = open_database(place) if place else None
        self._key = f"vmm-conformance/{name}".encode()

    def all(self) -> list[bytes]:
        """What failed in earlier runs, wherever those were, in an order that is always the same."""
        return sorted(self._database.fetch(self._key)) if self._database else []

    def keep(self, data: bytes) -> None:
        """This failed."""
        if self._database:
            self._database.save(self._key, data)

    def forget(self, data: bytes) -> None:
        """This does not fail any more, or only as others do."""
        if self._database:
            self._database.delete(self._key, data)


def open_database(place: str) -> ExampleDatabase:
    """The database at a folder, or on a server that answers. Raises `DatabaseUnavailable`."""
    if not place.startswith(SERVERS):
        from hypothesis.database import DirectoryBasedExampleDatabase

        return DirectoryBasedExampleDatabase(place)
    try:
        import redis
        from hypothesis.extra.redis import RedisExampleDatabase
    except ImportError:
        raise DatabaseUnavailable(
            f"database {place!r} needs the package redis, which is not installed; pip install 'vmm-conformance[redis]'"
        ) from None
    try:
        client: Any = redis.Redis.from_url(place, socket_timeout=_PATIENCE, socket_connect_timeout=_PATIENCE)
        client.ping()
    except (redis.RedisError, ValueError) as error:
        raise DatabaseUnavailable(
            f"database {place!r}: no Redis server answers there ({error}); start one, as in redis-server --port 6379, "
            "or name a folder"
        ) from None
    return RedisExampleDatabase(client)
