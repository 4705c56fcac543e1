"""Serves the page at `/`: a program for browsers, which shows what anybody may ask the API for.

Its files are part of the package, made from `ui/`. They hold no secret and are public, as the page
that asks for a token has to be; everything that they show is asked for with the caller's own token.
"""

from functools import cache
from hashlib import blake2b
from pathlib import Path

import msgspec
from litestar import Response, get

from service.api.bodies.requests import AnyRequest
from service.api.openapi.access import Public, declared
from service.api.problems import NoSuchPath

FOLDER = Path(__file__).parents[1] / "static"
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
"""Only the page's own files run, nothing inline and nothing that was put together from text."""
_HEADERS = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}


class PageFile(msgspec.Struct, frozen=True):
    """One file as it is sent."""

    content: bytes
    media_type: str
    etag: str


@cache
def page_files() -> dict[str, PageFile]:
    """The files of the page by name."""
    return {
        path.name: PageFile(path.read_bytes(), _TYPES[path.suffix], _etag(path.read_bytes()))
        for path in sorted(FOLDER.iterdir())
    }


def _etag(content: bytes) -> str:
    return f'"{blake2b(content, digest_size=12).hexdigest()}"'


@get("/", opt=declared(Public()))
async def page(request: AnyRequest) -> Response[bytes]:
    """The page itself."""
    return _sent(request, page_files()["index.html"])


@get("/page/{file:str}", opt=declared(Public()))
async def page_file(request: AnyRequest) -> Response[bytes]:
    """A file that the page needs."""
    name = request.path_params["file"]
    if name not in page_files():
        raise NoSuchPath(f"The page has no file {name[:100]}.")
    return _sent(request, page_files()[name])


def _sent(request: AnyRequest, file: PageFile) -> Response[bytes]:
    """A file, or only that the browser's copy is still right."""
    headers = {**_HEADERS, "etag": file.etag}
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(b"", status_code=304, media_type=file.media_type, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)


PAGE_HANDLERS = (page, page_file)
