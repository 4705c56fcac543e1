"""List pods and nodes in an order other than by name, page by page."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from litestar import Response

from service.api.auth.redaction import Lists, redact_rows, visibility_of, visible_parts
from service.api.http.context import ApiRequest
from service.api.http.pagination import Continue
from service.api.http.request import wrong_parameter
from service.api.http.responses import items, json_response, list_end, list_head
from service.api.http.sparse_fields import ChosenFields
from service.api.reads.sorted import SORTED_LIMIT_MAX, Placed, SortedReads
from service.api.reads.stored import Wanted
from service.api.resources.services import Services
from service.model.log.commit import ObjectRow
from service.model.log.pages import PAGE_BYTES_MAX
from service.model.selection.object_filters import ObjectFilter
from service.model.selection.object_order import ORDER_FIELDS, Order, OrderKey


class SortedList(NamedTuple):
    """A request for a sorted list."""

    kind: str
    order: Order
    filter: ObjectFilter
    wanted: Wanted
    lists: Lists
    """Reads objects that are not in memory, and those of past revisions."""
    start: Continue | None
    """The position at which the previous page ended."""
    own: str
    """The list's name in continuation tokens."""
    past: int | None
    limit: int
    left_out: Sequence[ObjectRow]
    """The unreadable objects in the part of the list that was read."""


def parse_order(kind: str, parameters: Mapping[str, str]) -> Order | None:
    """Return the order requested for a list, or None for the order by name.

    Raises:
        MalformedRequest: objects of the kind cannot be sorted by that field, or `limit` is missing.
    """
    text = parameters.get("sort")
    if text is None:
        return None
    field = text.removeprefix("-")
    if field not in ORDER_FIELDS or kind not in ORDER_FIELDS[field].kinds:
        known = ", ".join(name for name, entry in ORDER_FIELDS.items() if kind in entry.kinds)
        raise wrong_parameter("sort", f"knows only {known} here, perhaps after a hyphen", text)
    if not parameters.get("limit", "").strip("0"):
        raise wrong_parameter("sort", f"needs `limit`, of at most {SORTED_LIMIT_MAX}", text)
    return Order(field, text.startswith("-"))


def named_with_order(own: str, parameters: Mapping[str, str]) -> str:
    """Return the list's name in continuation tokens, which includes the order."""
    order = parameters.get("sort")
    return own if order is None else f"{own}?sort={order[:100]}"


async def sorted_list(
    request: ApiRequest,
    services: Services,
    asked: SortedList,
    tag_of: Callable[[int], str],
    chosen: ChosenFields | None,
) -> Response[Any]:
    """Return one page of a sorted list."""
    cluster, visibility = request.path_params["cluster"], visibility_of(request)
    reads = SortedReads(
        services.reads, services.scheduler, services.turns, asked.filter, asked.order
    )
    page = await reads.page(
        cluster,
        asked.kind,
        visible_parts(asked.kind, asked.wanted, visibility),
        after=_after(asked.order, asked.start),
        limit=min(asked.limit, SORTED_LIMIT_MAX),
        batches=lambda part: asked.lists.batches(cluster, asked.kind, part),
        present=asked.past is None,
    )
    placed, more = _within_bytes(page.placed), page.more
    head = page.head.revision
    revision = asked.start.revision if asked.start else head if asked.past is None else asked.past
    token = None
    if placed and (more or len(placed) < len(page.placed)):
        (value, namespace, name), _ = placed[-1]
        token = Continue(
            asked.own, revision, namespace, name, is_past=asked.past is not None, value=value
        ).token()
    rows = redact_rows(visibility, [row for _, row in placed])
    body = list_head(f"{asked.kind}List", revision, token) + items(rows, chosen)
    body += list_end(asked.left_out)
    return json_response(body, head, etag=tag_of(head if asked.past is None else asked.past))


def _after(order: Order, start: Continue | None) -> OrderKey | None:
    if start is None:
        return None
    if start.value is None or not order.may_be(start.value):
        raise wrong_parameter("continue", "is not one that a list gave out", str(start.value))
    return start.value, start.namespace, start.name


def _within_bytes(placed: list[Placed]) -> list[Placed]:
    """Return the rows up to the one that reaches the byte limit of a page."""
    size = 0
    for number, (_, row) in enumerate(placed, start=1):
        size += len(row.body)
        if size >= PAGE_BYTES_MAX:
            return placed[:number]
    return placed
