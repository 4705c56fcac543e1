"""Generated name suffixes that stay the same no matter how often a request is decided."""

from uuid import UUID

from service.scheduler.protocol.ports import Ids


class RepeatableIds:
    """Ids that repeat their name suffixes whenever the same request is decided again.

    A decision that needs the values of expressions about an object is repeated once they are known.
    Under a new name, it would be a different object with unknown values.
    """

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._drawn: list[str] = []
        self._next = 0

    def again(self) -> "RepeatableIds":
        """Restart at the first suffix, for another decision."""
        self._next = 0
        return self

    def uid(self) -> str:
        return self._ids.uid()

    def suffix(self) -> str:
        """Return the next suffix, generating one only if no earlier decision did."""
        if self._next == len(self._drawn):
            self._drawn.append(self._ids.suffix())
        self._next += 1
        return self._drawn[self._next - 1]

    def commit_id(self) -> UUID:
        return self._ids.commit_id()
