"""Compressed answers and bodies, as they are on the wire."""

import gzip
import zlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import msgspec
import pytest

from service.api.http.compression import SLICE_BYTES, Unpacker, wanted_coding
from service.api.http.problems import MalformedRequest
from service.api.http.zstd import zstd
from tests.api.conftest import MakeHarness
from tests.api.following import stream
from tests.api.harness import AS_JSON, CLUSTER, Harness, node, pod, problem

NODES = f"{CLUSTER}/nodes"
UNPACK: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.decompress, "zstd": zstd.decompress}
PACK: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstd.compress}
CODINGS = tuple(PACK)


async def raw(
    harness: Harness, path: str, coding: str = "identity", method: str = "GET", **options: Any
) -> tuple[httpx.Response, bytes]:
    """An answer with its body as it was sent."""
    headers = {"accept-encoding": coding, **options.pop("headers", {})}
    async with harness.client.stream(method, path, headers=headers, **options) as answer:
        return answer, b"".join([piece async for piece in answer.aiter_raw()])


async def many_nodes(harness: Harness, count: int = 60) -> None:
    items = [node(f"n{number}", zone="a") for number in range(count)]
    body = {"kind": "List", "items": items}
    assert (await harness.client.post(f"{CLUSTER}/apply", json=body)).status_code == 200


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize(
    "path", ["/nodes", "/nodes?limit=50", "/export", "/nodes?labelSelector=zone%3Da"]
)
async def test_answers_are_compressed_for_those_who_ask(harness: Harness, path: str, coding: str):
    await many_nodes(harness)
    plain, whole = await raw(harness, CLUSTER + path)
    packed, body = await raw(harness, CLUSTER + path, coding)

    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == coding
    assert packed.headers["vary"] == "accept-encoding"
    assert UNPACK[coding](body) == whole
    assert len(body) < len(whole) / 5
    assert packed.headers.get("content-length", str(len(body))) == str(len(body))
    kept = {"moorage-revision", "content-type", "etag"}
    assert {k: v for k, v in packed.headers.items() if k in kept} == {
        k: v for k, v in plain.headers.items() if k in kept
    }


@pytest.mark.parametrize("coding", CODINGS)
async def test_a_long_answer_in_pieces_comes_out_whole(make_harness: MakeHarness, coding: str):
    harness = await make_harness(apply_objects_max=5_000)
    await many_nodes(harness, 2_500)
    _, whole = await raw(harness, f"{CLUSTER}/nodes")
    assert len(whole) > 4 * SLICE_BYTES
    packed, body = await raw(harness, f"{CLUSTER}/nodes", coding)
    assert "content-length" not in packed.headers
    assert UNPACK[coding](body) == whole


async def test_what_is_small_or_has_a_strong_tag_or_never_ends_is_sent_as_it_is(harness: Harness):
    await many_nodes(harness)
    await harness.put(
        "nodes/n0", node("n0", long="x" * 60, **{f"l{n}": "y" * 60 for n in range(90)})
    )
    for path in ("/nodes?fieldSelector=metadata.name%3Dn1&limit=5", "/nodes/n0"):
        answer, _ = await raw(harness, CLUSTER + path, "gzip, zstd")
        assert "content-encoding" not in answer.headers
    assert answer.headers["etag"].startswith('"')
    assert int(answer.headers["content-length"]) > 4_096
    async with stream(harness, headers={"accept-encoding": "gzip"}) as watch:
        await watch.until(1)
        assert b"content-encoding" not in watch.headers


async def test_how_long_an_answer_has_to_be_can_be_set(make_harness: MakeHarness):
    harness = await make_harness(compressed_bytes_min=100)
    await harness.put_node("n1")
    answer, body = await raw(harness, f"{CLUSTER}/nodes?limit=1", "gzip")
    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(body) == (await raw(harness, f"{CLUSTER}/nodes?limit=1"))[1]


async def test_a_head_and_an_unchanged_list_have_no_coding(harness: Harness):
    await many_nodes(harness)
    answer, body = await raw(harness, NODES, "gzip", method="HEAD")
    assert (answer.status_code, body) == (200, b"")
    assert "content-encoding" not in answer.headers
    unchanged = {"if-none-match": answer.headers["etag"]}
    answer, body = await raw(harness, NODES, "gzip", headers=unchanged)
    assert (answer.status_code, body) == (304, b"")
    assert "content-encoding" not in answer.headers


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip", "gzip"),
        ("x-gzip", "gzip"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("zstd;q=0.5, gzip;q=0.8", "gzip"),
        ("zstd ; q=0.5 , gzip; q=0.2", "zstd"),
        ("*", "zstd"),
        ("*;q=0.1, zstd;q=0", "gzip"),
        ("gzip;q=0.5, identity", None),
        ("gzip;q=0", None),
        ("*;q=0", None),
        ("identity", None),
        ("br, deflate", None),
        ("", None),
        ("gzip;q=2", None),
        ("gzip;q=nan", None),
        ("gzip;v=1", None),
        (";;,=,q=;", None),
        ("\xff" * 300, None),
    ],
)
def test_the_coding_that_a_client_likes_best_is_taken(accepted: str, coding: str | None):
    assert wanted_coding(accepted.encode("latin-1")) == coding


# Bodies


@pytest.mark.parametrize("coding", [*CODINGS, "x-gzip", "GZIP"])
async def test_bodies_may_be_compressed(harness: Harness, coding: str):
    pack = PACK.get(coding, gzip.compress)
    headers = {"content-encoding": coding, **AS_JSON}
    body = {"pods": [pod(f"p{number}") for number in range(3)], "onUnschedulable": "Queue"}
    answer = await harness.client.post(
        f"{CLUSTER}/placements", content=pack(msgspec.json.encode(body)), headers=headers
    )
    assert [each["outcome"] for each in answer.json()["results"]] == ["Queued"] * 3
    answer = await harness.client.put(
        f"{NODES}/n1", content=pack(msgspec.json.encode(node("n1"))), headers=headers
    )
    assert answer.status_code == 201, answer.text


@pytest.mark.parametrize("coding", CODINGS)
async def test_a_stream_of_lines_may_be_compressed_and_cut_anywhere(harness: Harness, coding: str):
    lines = [msgspec.json.encode({"kind": "Node", **node(f"n{number}")}) for number in range(300)]
    half = PACK[coding](b"\n".join(lines[:100]) + b"\n"), PACK[coding](b"\n".join(lines[100:]))
    packed = b"".join(half)  # members and frames may follow one another

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(packed), 97):
            yield packed[start : start + 97]

    headers = {"content-encoding": coding, "content-type": "application/x-ndjson"}
    answer = await harness.client.post(f"{CLUSTER}/apply", content=pieces(), headers=headers)
    results = [msgspec.json.decode(line)["result"] for line in answer.content.splitlines()]
    assert results == ["Created"] * 300


@pytest.mark.parametrize("coding", CODINGS)
async def test_a_bomb_is_refused_before_it_takes_room(make_harness: MakeHarness, coding: str):
    harness = await make_harness(body_bytes_max=100_000, bytes_in_flight_max=1_000_000)
    bomb = PACK[coding](b" " * 50_000_000)
    assert len(bomb) < 100_000
    headers = {"content-encoding": coding, **AS_JSON}
    answer = await harness.client.put(f"{NODES}/n1", content=bomb, headers=headers)
    assert problem(answer, 413) == "BodyTooLarge"
    assert "100000 bytes when unpacked" in answer.json()["detail"]
    assert harness.budget.in_flight == 0


@pytest.mark.parametrize("coding", CODINGS)
def test_what_a_bomb_unpacks_to_comes_in_slices(coding: str):
    slices = Unpacker(coding).slices(PACK[coding](b"\0" * 20_000_000))
    sizes = [len(next(slices)) for _ in range(5)]
    assert max(sizes) <= SLICE_BYTES


@pytest.mark.parametrize("coding", CODINGS)
def test_every_cut_and_every_size_unpacks_to_what_was_packed(coding: str):
    for size in (0, 1, SLICE_BYTES - 1, SLICE_BYTES, SLICE_BYTES + 1, 3 * SLICE_BYTES):
        content = bytes(number * 7919 % 251 for number in range(size))
        packed = PACK[coding](content)
        for length in (1, 1000, len(packed)) if size < 9 else (1000, len(packed)):
            unpacker, found = Unpacker(coding), bytearray()
            for start in range(0, len(packed), length):
                for each in unpacker.slices(packed[start : start + length]):
                    found += each
            unpacker.end()
            assert bytes(found) == content


@pytest.mark.parametrize("coding", CODINGS)
def test_members_without_content_are_told_one_by_one(coding: str):
    """So that others have a turn in between, however many there are."""
    packed = PACK[coding](b"") * 50 + PACK[coding](b"x")
    unpacker = Unpacker(coding)
    slices = list(unpacker.slices(packed))
    unpacker.end()
    assert b"".join(slices) == b"x"
    assert len(slices) >= 51


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("break_it", ["cut", "no such data", "trailing"])
async def test_a_broken_body_is_malformed(harness: Harness, coding: str, break_it: str):
    packed = PACK[coding](msgspec.json.encode(node("n1")))
    broken = {"cut": packed[:-3], "no such data": b"{}", "trailing": packed + b"{}"}[break_it]
    headers = {"content-encoding": coding, **AS_JSON}
    answer = await harness.client.put(f"{NODES}/n1", content=broken, headers=headers)
    assert problem(answer, 400) == "MalformedRequest"
    assert coding in answer.json()["detail"]
    assert (await harness.client.get(f"{NODES}/n1")).status_code == 404


async def test_a_zstd_window_beyond_what_all_have_to_support_is_refused(harness: Harness):
    options = {
        zstd.CompressionParameter.window_log: 27,
        zstd.CompressionParameter.content_size_flag: 0,
    }
    compressor = zstd.ZstdCompressor(options=options)
    packed = compressor.compress(msgspec.json.encode(node("n1"))) + compressor.flush()
    headers = {"content-encoding": "zstd", **AS_JSON}
    answer = await harness.client.put(f"{NODES}/n1", content=packed, headers=headers)
    assert problem(answer, 400) == "MalformedRequest"


def test_deflate_is_no_gzip():
    with pytest.raises(MalformedRequest, match="not gzip"):
        list(Unpacker("gzip").slices(zlib.compress(b"x")))
