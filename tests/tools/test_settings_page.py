"""The page of all settings is what the code says."""

import re

from service.settings import Settings
from tools.settings_page import PAGE, found, page


def test_the_page_is_what_the_code_says():
    assert PAGE.read_text("utf-8") == page(), "python -m tools.settings_page writes it"


def test_every_setting_has_a_row_with_its_meaning():
    rows = dict(re.findall(r"^\| `MOORAGE_(\w+)`.* \| (\S.*) \|$", page(), re.MULTILINE))
    assert [each.name.upper() for each in found()] == [
        name.upper() for name in Settings.__struct_fields__
    ]
    assert rows.keys() == {each.name.upper() for each in found()}
    assert "One of `text`, `json`." in rows["LOG_FORMAT"]


def test_a_row_has_the_option_the_default_and_the_file_of_a_secret():
    text = page()
    assert "| `MOORAGE_FORWARDING` | `--forwarding`, `--no-forwarding` | `true` |" in text
    assert "| `MOORAGE_LOG_FORMAT` | `--log-format` | `text` |" in text
    assert "| `MOORAGE_TOKEN`, `MOORAGE_TOKEN_FILE` |  |  |" in text
