"""Templates and paths as kubectl's users write them."""

import pytest

from moorage.cli.exceptions import WrongUsage
from moorage.cli.render.jsonpath import Template, read_path

POD = {
    "metadata": {"name": "web-0", "labels": {"app.io/name-x": "web", "n": 1}},
    "spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2"}]},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True"},
            {"type": "PodScheduled", "status": "False"},
        ]
    },
}
LIST = {"kind": "List", "items": [POD, {"metadata": {"name": "web-1"}}]}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{.metadata.name}", "web-0"),
        (".metadata.name", "web-0"),
        ("{$.metadata.name}", "web-0"),
        ("{@.metadata['name']}", "web-0"),
        (r"{.metadata.labels.app\.io/name-x}", "web"),
        ("{.metadata.labels['app.io/name-x']}", "web"),
        ("{.spec.containers[*].name}", "a b"),
        ("{.spec.containers[0].name} {.spec.containers[-1].name}", "a b"),
        ("{.spec.containers[0:1].image}", "a:1"),
        ("{..image}", "a:1 b:2"),
        ('{.status.conditions[?(@.type=="PodScheduled")].status}', "False"),
        ("{.metadata.labels}", '{"app.io/name-x":"web","n":1}'),
        ("{.metadata.labels.n}", "1"),
        ("{.metadata.absent.name}", ""),
        ("{.metadata['name', 'absent']}", "web-0"),
        ("pod {.metadata.name}!", "pod web-0!"),
        (
            '{range .spec.containers[*]}{.name}{"\\t"}{@.image}{"\\n"}{end}done',
            "a\ta:1\nb\tb:2\ndone",
        ),
        ("{range .spec.containers[*].name}<{@}>{end}", "<a><b>"),
        ("{range .spec.containers[*]}{range .name}{.}{end},{end}", "a,b,"),
        ("{'}'}", "}"),
    ],
)
def test_templates_are_filled(template, text):
    assert Template(template).fill(POD) == text


def test_a_list_is_a_document_too():
    assert Template('{range .items[*]}{.metadata.name}{"\\n"}{end}').fill(LIST) == "web-0\nweb-1\n"


@pytest.mark.parametrize(
    "wrong",
    ["{.a", "{range .a}", "{end}", "{.a[}", "{.a[?(]}", '{"a}', "{.a b}", "}", "{.a[?(@.b=)]}"],
)
def test_what_is_no_template_is_wrong_usage(wrong):
    with pytest.raises(WrongUsage):
        Template(wrong)


@pytest.mark.parametrize("path", [".metadata.name", "metadata.name", "{.metadata.name}"])
def test_a_path_of_a_column_may_be_written_in_three_ways(path):
    assert read_path(path)(POD) == ["web-0"]
