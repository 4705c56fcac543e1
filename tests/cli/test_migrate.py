"""`moorage migrate` on a database that the first version made, as somebody who upgrades runs it."""

import asyncio

from service.store.migrate import is_current
from tests.store.releases import DUMPS, contents, of_columns_of, restore


def test_migrate_upgrades_a_database_of_the_first_version(moorage, empty_database_url):
    asyncio.run(restore(empty_database_url, DUMPS[0].read_text()))
    before = asyncio.run(contents(empty_database_url))

    ended = moorage("migrate", "--database-url", empty_database_url)

    assert (ended.code, ended.out) == (0, "The database is up to date.\n")
    assert asyncio.run(is_current(empty_database_url))
    assert of_columns_of(before, asyncio.run(contents(empty_database_url))) == before
