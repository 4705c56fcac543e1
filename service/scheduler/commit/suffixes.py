"""Names that are drawn once for a request, however often it is decided."""

from uuid import UUID

from service.scheduler.protocol.ports import Ids


class DrawnOnce:
    """Ids whose suffixes of names are the same in each decision of one request.

    A decision that asks expressions about an object is made again when the answers are known. With
    another name the object would be another one, about which nothing is known.
    """

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._drawn: list[str] = []
        self._next = 0

    def again(self) -> "DrawnOnce":
        """Begin with the first suffix for another decision."""
        self._next = 0
        return self

    def uid(self) -> str:
        """Return a new object's `metadata.uid`."""
        return self._ids.uid()

    def suffix(self) -> str:
        """Return the next suffix, which is only drawn if no decision before had it."""
        if self._next == len(self._drawn):
            self._drawn.append(self._ids.suffix())
        self._next += 1
        return self._drawn[self._next - 1]

    def commit_id(self) -> UUID:
        """Return a new attempt's id."""
        return self._ids.commit_id()
