"""Content codings (RFC 9110, 8.4): negotiation, compression of answers, decompression of bodies.

zstd is imported on first use, so that a server starts without it.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Protocol

from service.api.http.problems import MalformedRequest, UnsupportedMediaType

SLICE_BYTES = 64 * 1024
"""The maximum number of bytes decompressed at once, whatever a client sends."""
ZSTD_WINDOW_LOG_MAX = 23
"""The 8 MiB window that every recipient must support, and no sender should exceed (RFC 9659)."""
_GZIP_WINDOW_BITS = 31
_GZIP_LEVEL, _ZSTD_LEVEL = 3, 3
_LONGEST_HEADER = 200


class Packer(Protocol):
    """Compresses one answer, piece by piece."""

    def pack(self, piece: bytes, *, last: bool) -> bytes:
        """Return compressed bytes; a recipient can decompress everything up to the piece's end."""
        ...


class _GzipPacker:
    def __init__(self) -> None:
        self._stream = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW_BITS)

    def pack(self, piece: bytes, *, last: bool) -> bytes:
        packed = self._stream.compress(piece)
        return packed + self._stream.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)


class _ZstdPacker:
    def __init__(self) -> None:
        from service.api.http.zstd import zstd  # noqa: PLC0415 - see the module

        self._stream = zstd.ZstdCompressor(level=_ZSTD_LEVEL)

    def pack(self, piece: bytes, *, last: bool) -> bytes:
        if last:
            return self._stream.compress(piece, self._stream.FLUSH_FRAME)
        return self._stream.compress(piece, self._stream.FLUSH_BLOCK)


PACKERS: Mapping[str, Callable[[], Packer]] = {"zstd": _ZstdPacker, "gzip": _GzipPacker}
"""The content codings of answers, by name; the first wins if a client has no preference."""


def wanted_coding(accept_encoding: bytes) -> str | None:
    """Return the coding that a client prefers (RFC 9110, 12.5.3), or None for no compression."""
    return _best(accept_encoding) if len(accept_encoding) <= _LONGEST_HEADER else None


@lru_cache(maxsize=256)
def _best(accept_encoding: bytes) -> str | None:
    given = dict(map(_weighed, accept_encoding.decode("latin-1").lower().split(",")))
    others = given.get("*", 0.0)
    best = max(PACKERS, key=lambda name: given.get(name, others))
    weight = given.get(best, others)
    return best if weight > 0 and weight >= given.get("identity", 0.0) else None


def _weighed(part: str) -> tuple[str, float]:
    """Return a coding and its weight, which is 0 if it cannot be parsed."""
    name, _, parameter = part.partition(";")
    key, _, text = parameter.partition("=")
    weight = 1.0
    if parameter:
        try:
            weight = float(text) if key.strip() == "q" else 0.0
        except ValueError:
            weight = 0.0
    name = name.strip()
    return ("gzip" if name == "x-gzip" else name), (weight if 0 <= weight <= 1 else 0.0)


class _Stream(Protocol):
    """A gzip member or zstd frame that is being decompressed."""

    error: type[Exception]
    """The exception raised for data that is not in this coding."""

    def unpack(self, packed: bytes) -> bytes:
        """Return the next bytes, at most `SLICE_BYTES`, and buffer the rest of `packed`."""
        ...

    @property
    def has_more(self) -> bool:
        """Whether more output may follow without further input."""
        ...

    @property
    def rest(self) -> bytes | None:
        """The input that follows the end of the stream, or None if the stream has not ended."""
        ...


class _GzipStream:
    def __init__(self) -> None:
        self.error: type[Exception] = zlib.error
        self._stream = zlib.decompressobj(_GZIP_WINDOW_BITS)
        self.has_more = False

    def unpack(self, packed: bytes) -> bytes:
        unpacked = self._stream.decompress(self._stream.unconsumed_tail + packed, SLICE_BYTES)
        self.has_more = len(unpacked) == SLICE_BYTES
        return unpacked

    @property
    def rest(self) -> bytes | None:
        return self._stream.unused_data if self._stream.eof else None


class _ZstdStream:
    def __init__(self) -> None:
        from service.api.http.zstd import zstd  # noqa: PLC0415 - see the module

        bounds: dict[int, int] = {zstd.DecompressionParameter.window_log_max: ZSTD_WINDOW_LOG_MAX}
        self.error: type[Exception] = zstd.ZstdError
        self._stream = zstd.ZstdDecompressor(options=bounds)

    def unpack(self, packed: bytes) -> bytes:
        return self._stream.decompress(packed, SLICE_BYTES)

    @property
    def has_more(self) -> bool:
        return not self._stream.needs_input

    @property
    def rest(self) -> bytes | None:
        return self._stream.unused_data if self._stream.eof else None


_STREAMS: Mapping[str, Callable[[], _Stream]] = {
    "gzip": _GzipStream,
    "x-gzip": _GzipStream,
    "zstd": _ZstdStream,
}


class Unpacker:
    """Decompresses a body as it arrives, in slices of bounded size."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._new = _STREAMS[coding]
        self._stream: _Stream | None = None
        """The current gzip member or zstd frame, or None between two."""

    def slices(self, packed: bytes) -> Iterator[bytes]:
        """Yield the decompressed piece in slices; it may span several members or frames.

        A slice may be empty. The caller should yield to other tasks after each, since there may be
        thousands of empty members.

        Raises:
            MalformedRequest: the body is not in this coding.
        """
        while packed or (self._stream is not None and self._stream.has_more):
            stream = self._stream = self._stream or self._new()
            try:
                unpacked = stream.unpack(packed)
            except stream.error as error:
                raise MalformedRequest(f"The body is not {self._coding}: {error}."[:200]) from None
            packed = b""
            if (rest := stream.rest) is not None:
                packed, self._stream = rest, None
            yield unpacked

    def end(self) -> None:
        """Raise MalformedRequest if the body is complete but its compressed data is not."""
        if self._stream is not None:
            raise MalformedRequest(f"The body ends in the middle of its {self._coding} data.")


def unpacker_of(content_encoding: str) -> Unpacker | None:
    """Return the decompressor for a Content-Encoding, or None for `identity`.

    Raises:
        UnsupportedMediaType: the coding is unknown, or there are several.
    """
    coding = content_encoding.strip().lower()
    if coding in ("", "identity"):
        return None
    if coding not in _STREAMS:
        raise UnsupportedMediaType(
            f"Send the body as it is, or with the Content-Encoding gzip or zstd, not {coding[:100]}."
        )
    return Unpacker(coding)
