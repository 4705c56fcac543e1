"""Arrays as text: whatever is in them, PostgreSQL reads the same."""

from collections.abc import AsyncIterator

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from service.store.db import arrays
from service.store.db.connector import data_source_name

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
AWKWARD = st.sampled_from(['"', "\\", '","', "NULL", "", " ", "{}", "a,b", "\\x00"])


@pytest.fixture
async def operator(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(data_source_name(database_url))
    yield connection
    await connection.close()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(TEXTS | AWKWARD),
    st.lists(st.none() | TEXTS | AWKWARD),
    st.lists(st.none() | st.binary(max_size=4)),
    st.lists(st.booleans()),
    st.lists(st.integers(-(2**63), 2**63 - 1)),
)
async def test_arrays_are_read_as_they_were_written(
    operator: asyncpg.Connection, texts, texts_or_null, bytes_or_null, booleans, integers
):
    row = await operator.fetchrow(
        "SELECT $1::text::text[], $2::text::text[], $3::text::bytea[], $4::text::boolean[],"
        " $5::text::bigint[]",
        arrays.texts(texts),
        arrays.texts_or_null(texts_or_null),
        arrays.bytes_or_null(bytes_or_null),
        arrays.booleans(booleans),
        arrays.integers(integers),
    )
    assert [*row] == [texts, texts_or_null, bytes_or_null, booleans, integers]
