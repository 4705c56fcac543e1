"""Serve the page at `/`: a browser application that uses the public API.

Its files are built from `ui/` and shipped with the package. They are public and contain no secrets:
the page itself asks for a token, and requests everything that it shows with that token.
"""

from functools import cache
from pathlib import Path

from litestar import Response, get

from service.api.http.context import ApiRequest
from service.api.http.permissions import Public, declared
from service.api.http.problems import NoSuchPath

FOLDER = Path(__file__).parents[2] / "static"
"""The directory of the files that `make page` builds."""

_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""A content security policy that runs only the page's own files, and no inline code."""
SECURITY_HEADERS = {
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Headers that isolate the page's windows and files from other sites."""


@cache
def page_files() -> dict[str, bytes]:
    """Return the files of the page by name."""
    return {path.name: path.read_bytes() for path in sorted(FOLDER.iterdir())}


@get("/", opt=declared(Public()))
async def page() -> Response[bytes]:
    """Return the HTML file of the page."""
    return _sent("index.html")


@get("/page/{file:str}", opt=declared(Public()))
async def page_file(request: ApiRequest) -> Response[bytes]:
    """Return a file that the page needs."""
    name = request.path_params["file"]
    if name not in page_files():
        raise NoSuchPath(f"The page has no file {name[:100]}.")
    return _sent(name)


def _sent(name: str) -> Response[bytes]:
    media_type = _TYPES[Path(name).suffix]
    headers = SECURITY_HEADERS | {"content-security-policy": _POLICY}
    return Response(page_files()[name], media_type=media_type, headers=headers)


PAGE_HANDLERS = (page, page_file)
