"""Links from each PUT to the other operations on the same path and on paths below it."""

import re
from collections.abc import Mapping

from service.api.openapi.schemas import Document


def link_operations(paths: Mapping[str, Document]) -> Document:
    """Add links to the answers of each PUT; return the links by operation id."""
    links: Document = {}
    for path, methods in paths.items():
        if "put" in methods:
            following = {
                operation["operationId"]: operation for operation in _following(paths, path)
            }
            links |= {name: _link(name, path) for name in following}
            references = {name: {"$ref": f"#/components/links/{name}"} for name in following}
            for status in {"200", "201"} & methods["put"]["responses"].keys():
                methods["put"]["responses"][status]["links"] = references
    return dict(sorted(links.items()))


def _following(paths: Mapping[str, Document], path: str) -> list[Document]:
    """Return the other operations at or below this path that need only its parameters."""
    return [
        operation
        for other, methods in paths.items()
        for method, operation in methods.items()
        if f"{other}/".startswith(f"{path}/") and _names(other) == _names(path)
        if (other, method) != (path, "put")
    ]


def _link(operation_id: str, path: str) -> Document:
    parameters = {name: f"$request.path.{name}" for name in _names(path)}
    return {"operationId": operation_id, "parameters": parameters}


def _names(path: str) -> list[str]:
    return re.findall(r"{(\w+)}", path)
