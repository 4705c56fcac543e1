"""The pages of the API reference: every operation is on one of them, with what its form needs."""

import html
import json
import re

import pytest

from tools.api_pages import METHODS, START, api_pages, load

FORM = re.compile(r'<div class="try" data-operation="([^"]+)"></div>')


@pytest.fixture(scope="module")
def document():
    return load()


@pytest.fixture(scope="module")
def pages(document):
    return dict(api_pages(document))


def test_every_operation_has_one_form_and_the_first_page_leads_to_it(document, pages):
    wanted = {
        (method.upper(), path)
        for path, item in document["paths"].items()
        for method in METHODS
        if method in item
    }
    forms = [
        json.loads(html.unescape(each)) for page in pages.values() for each in FORM.findall(page)
    ]
    shown = [(form["method"], form["path"]) for form in forms]

    assert len(shown) == len(set(shown))
    assert set(shown) == wanted
    for place, section in re.findall(r"\]\((\w+\.md)#(\w+)\)", pages[START]):
        assert f"{{ #{section} }}" in pages[f"api/{place}"]
    assert {f"`{method} {path}`" in pages[START] for method, path in wanted} == {True}


def test_a_form_knows_each_place_of_its_path_and_an_example_of_each_body(pages):
    for page in pages.values():
        for each in FORM.findall(page):
            form = json.loads(html.unescape(each))
            named = {field["name"] for field in form["parameters"] if field["in"] == "path"}
            assert set(re.findall(r"{(\w+)}", form["path"])) == named
            assert all(example and example != "null" for example in form["bodies"].values())


def test_references_are_followed_and_words_between_angle_brackets_are_no_tags():
    name = {"name": "name", "in": "path", "required": True, "description": "A <b> | `<c>`."}
    operation = {
        "operationId": "readIt",
        "summary": "Read it",
        "tags": ["things"],
        "parameters": [{"$ref": "#/components/parameters/Name"}],
        "responses": {"200": {"description": "It."}},
    }
    document = {
        "tags": [],
        "paths": {"/things/{name}": {"get": operation}},
        "components": {"parameters": {"Name": name}},
    }
    page = dict(api_pages(document))["api/things.md"]

    assert "## Read it { #readIt }" in page
    assert "| `name` | path, required | A &lt;b> \\| `<c>`. |" in page
    assert "| 200 | It. |" in page
