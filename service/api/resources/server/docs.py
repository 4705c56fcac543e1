"""Serve the documentation at `/docs`: the site built by `make docs`, and the API reference.

The site's files are part of a wheel; a checkout has them once they are built. They are public and
contain no secrets. They are not cached in memory, since they are rarely read.
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
"""The directory where `make docs` builds the site."""
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
    """Redirect to the site's first page, or to the API reference if the site is not built."""
    built = await asyncio.to_thread((FOLDER / START).is_file)
    return Redirect(f"/docs/{START}" if built else "/docs/operations", status_code=307)


@get("/docs/operations", opt=declared(Public()))
async def operations(openapi_page: NamedDependency[str]) -> Response[str]:
    """Return the API reference as an HTML page."""
    return html_page(openapi_page)


@get("/docs/{file:path}", opt=declared(Public()))
async def docs_file(request: ApiRequest) -> Response[bytes]:
    """Return a file of the site."""
    name = str(request.path_params["file"]).lstrip("/")
    content = await asyncio.to_thread(_content, name)
    headers = SECURITY_HEADERS | {"content-security-policy": content_policy(content, name)}
    return Response(content, media_type=_TYPES[Path(name).suffix], headers=headers)


def _content(name: str) -> bytes:
    """Return the content of a file of the site.

    Raises:
        NoSuchPath: the site has no such file, or is not built.
    """
    file = (FOLDER / name).resolve()
    if file.suffix in _TYPES and file.is_relative_to(FOLDER.resolve()):
        with suppress(OSError):
            return file.read_bytes()
    raise NoSuchPath(f"The documentation has no file {name[:100]}.")


def content_policy(content: bytes, name: str) -> str:
    """Return the content security policy of a file, which may only load the site's own files.

    The site generator puts a short inline script into each page, which sets the colors before
    anything is drawn. A page may run only its own inline scripts, identified by their hashes. The
    search runs in a worker, and its results have inline styles.
    """
    own = _INLINE_SCRIPT.findall(content) if name.endswith(".html") else []
    hashes = (f" 'sha256-{b64encode(sha256(script).digest()).decode()}'" for script in own)
    return (
        f"default-src 'none'; script-src 'self'{''.join(hashes)}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; connect-src 'self'; worker-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )


DOCUMENTATION_HANDLERS = (docs, operations, docs_file)
