"""Serve the page at `/`: a program for browsers, which uses the public API.

Its files are part of the package, made from `ui/`. They hold no secret and are public, since the page
itself asks for a token; everything that they show is requested with the caller's own token.
"""

from functools import cache
from pathlib import Path

from litestar import Response, get

from service.api.http.context import ApiRequest
from service.api.http.permissions import Public, declared
from service.api.http.problems import NoSuchPath

FOLDER = Path(__file__).parents[2] / "static"
"""The files as `make page` builds them."""

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
"""Only the page's own files run; nothing inline, and nothing assembled from text."""
SECURITY_HEADERS = {
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Headers that keep windows and pages of other sites away from the files."""


@cache
def page_files() -> dict[str, bytes]:
    """Return the files of the page by name."""
    return {path.name: path.read_bytes() for path in sorted(FOLDER.iterdir())}


@get("/", opt=declared(Public()))
async def page() -> Response[bytes]:
    """Return the page itself."""
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
