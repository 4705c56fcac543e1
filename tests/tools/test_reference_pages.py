"""The pages that are made from the code are what the code says."""

import re

import pytest

from moorage.cli.command_table import COMMANDS
from service.api.http.problems import PROBLEMS
from service.model.cluster.cluster_config import ClusterConfig
from service.model.core.field_warnings import WARNINGS
from tools.reference_pages import DOCS, PAGES, SHARED, cluster_configuration, commands, problems


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_says(name):
    written = (DOCS / name).read_text("utf-8")
    assert written == PAGES[name](), "python -m tools.reference_pages writes it"


def test_each_setting_of_clusters_has_a_row_with_its_meaning():
    rows = re.findall(r"^\| `(\w+)` \| .* \| (\S.*) \|$", cluster_configuration(), re.MULTILINE)
    assert [name for name, _ in rows] == [*ClusterConfig.__struct_encode_fields__]
    assert "One of `Never`, `Evict`." in dict(rows)["queuePreemption"]


def test_each_code_has_a_section():
    assert re.findall(r"^### (\w+)$", problems(), re.MULTILINE) == [*PROBLEMS, *WARNINGS]


def test_each_command_has_a_section_with_its_own_options():
    page = commands()
    told = set(re.findall(r"^## moorage ([\w-]+)", page, re.MULTILINE))
    assert {*COMMANDS} <= told
    place = page.partition("\n## moorage place\n")[2].partition("\n## ")[0]
    assert "| `--all-or-nothing` |" in place
    assert "(#options-of-all-clients)" in place
    assert all(page.count(f"| `{option}`") == 1 for option in SHARED if option != "--output")
