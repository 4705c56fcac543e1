"""Serve the documentation at `/docs`: the site that `make docs` builds, and the operations without scripts.

The site's files are part of a wheel; a checkout has them once they are built. They hold no secret and
are public. They are not cached in memory, since they are seldom read.
"""

import asyncio
import re
from base64 import b64encode
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from litestar import MediaType, Response, get
from litestar.di import NamedDependency
from litestar.response import Redirect

from service.api.http.context import ApiRequest
from service.api.http.permissions import Public, declared
from service.api.http.problems import NoSuchPath
from service.api.resources.server.routes import html_page
from service.api.resources.server.ui import SECURITY_HEADERS

FOLDER = Path(__file__).parents[2] / "site"
"""The site as `make docs` builds it."""
START = "index.html"

_TYPES = {
    ".css": "text/css",
    ".html": MediaType.HTML,
    ".js": "text/javascript",
    ".json": MediaType.JSON,
    ".md": "text/markdown; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_INLINE_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


@get("/docs", opt=declared(Public()))
async def docs() -> Redirect:
    """Redirect to the first page of the site, or to the operations if the site is not built."""
    built = await asyncio.to_thread((FOLDER / START).is_file)
    return Redirect(f"/docs/{START}" if built else "/docs/operations", status_code=307)


@get("/docs/operations", opt=declared(Public()))
async def operations(openapi_page: NamedDependency[str]) -> Response[str]:
    """Return the OpenAPI document as a page for people."""
    return html_page(openapi_page)


@get("/docs/{file:path}", opt=declared(Public()))
async def docs_file(request: ApiRequest) -> Response[bytes]:
    """Return a file of the site."""
    name = str(request.path_params["file"]).lstrip("/")
    content = await asyncio.to_thread(_content, name)
    headers = SECURITY_HEADERS | {"content-security-policy": content_policy(content, name)}
    return Response(content, media_type=_TYPES[Path(name).suffix], headers=headers)


def _content(name: str) -> bytes:
    """Return a file's content.

    Raises:
        NoSuchPath: the site has no such file, or is not built.
    """
    file = (FOLDER / name).resolve()
    if file.suffix in _TYPES and file.is_relative_to(FOLDER.resolve()):
        with suppress(OSError):
            return file.read_bytes()
    raise NoSuchPath(f"The documentation has no file {name[:100]}.")


def content_policy(content: bytes, name: str) -> str:
    """Return what a file of the site may load: only the site's own files.

    The generator puts a few lines of script into each page, which set the colors before anything is drawn.
    A page may run exactly those known lines and no others. The search runs in a worker, and its results
    bring their own styles.
    """
    own = _INLINE_SCRIPT.findall(content) if name.endswith(".html") else []
    hashes = (f" 'sha256-{b64encode(sha256(script).digest()).decode()}'" for script in own)
    return (
        f"default-src 'none'; script-src 'self'{''.join(hashes)}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; connect-src 'self'; worker-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )


DOCUMENTATION_HANDLERS = (docs, operations, docs_file)
