"""Contexts: where commands go if nobody says so, and who gets to see which token."""

import stat

import pytest

from moorage.cli.session.contexts import contexts_file
from tests.cli.conftest import CLUSTER

PODS = {"items": [], "metadata": {}}


@pytest.fixture
def contexts(moorage, stub, tmp_path):
    (tmp_path / "token").write_text("s3cret\n")
    lab = "/v1/clusters/lab"
    for path in (f"{CLUSTER}/pods", f"{CLUSTER}/namespaces/shop/pods", f"{lab}/pods"):
        stub.on("GET", path, PODS)
    stub.on("GET", f"{lab}/namespaces/shop/pods", PODS)
    token = str(tmp_path / "token")
    moorage("context", "set", "home", "--url", "http://home:1")
    moorage(
        *("context", "set", "lab", "--url", "http://lab:2", "-c", "lab", "-n", "shop"),
        *("--token-file", token),
    )
    return moorage


def asked(stub):
    request = stub.requests[-1]
    return str(request.url.copy_with(query=None)), request.headers.get("Authorization")


def test_the_first_context_is_in_use_until_another_is_chosen(contexts, stub):
    contexts("get", "pods")
    assert asked(stub) == ("http://home:1/v1/clusters/default/pods", None)

    assert contexts("context", "use", "lab").code == 0
    contexts("get", "pods")
    expected = "http://lab:2/v1/clusters/lab/namespaces/shop/pods"
    assert asked(stub) == (expected, "Bearer s3cret")

    contexts("get", "pods", "-A", "--context", "home")
    assert asked(stub) == ("http://home:1/v1/clusters/default/pods", None)


def test_options_go_before_the_context(contexts, stub):
    contexts("get", "pods", "--context", "lab", "-A", "-c", "default")
    assert asked(stub)[0] == "http://lab:2/v1/clusters/default/pods"

    contexts("get", "pods", "--context", "lab", "--token", "mine")
    assert asked(stub)[1] == "Bearer mine"


def test_the_token_of_a_context_is_sent_to_no_other_server(contexts, stub):
    contexts("get", "pods", "--context", "lab", "--url", "http://elsewhere")
    assert asked(stub) == ("http://elsewhere/v1/clusters/lab/namespaces/shop/pods", None)

    contexts("get", "pods", "--context", "lab", "--url", "http://lab:2")
    assert asked(stub)[1] == "Bearer s3cret"


def test_contexts_are_listed_changed_and_deleted(contexts):
    contexts("context", "set", "lab", "-n", "")

    rows = [line.split() for line in contexts("context", "list").out.splitlines()[1:]]
    assert rows[0] == ["*", "home", "http://home:1", "-", "-", "-"]
    assert rows[1][:5] == ["-", "lab", "http://lab:2", "lab", "-"]

    assert contexts("context", "delete", "home").code == 0
    assert "*" not in contexts("context", "list").out
    assert contexts("context", "use", "home").code == 2


def test_the_file_is_its_users_alone(contexts):
    assert stat.S_IMODE(contexts_file().stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["contexts: 7", "a: [", "contexts: {lab: {password: x}}"])
def test_a_file_that_is_not_valid_is_told_by_its_name(contexts, stub, content):
    contexts_file().write_text(content)
    before = len(stub.requests)

    ended = contexts("get", "pods")

    assert ended.code == 2
    assert str(contexts_file()) in ended.err.replace("\n", "")
    assert len(stub.requests) == before


def test_an_absent_context_or_token_is_wrong_usage(contexts, tmp_path):
    assert contexts("get", "pods", "--context", "none").code == 2

    (tmp_path / "token").unlink()
    assert contexts("get", "pods", "--context", "lab").code == 2


def test_shells_are_told_how_words_go_on(contexts, monkeypatch):
    def completed(words):
        monkeypatch.setenv("_MOORAGE_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        ended = contexts()
        monkeypatch.delenv("_MOORAGE_COMPLETE")
        return ended.out.split()

    assert completed("moorage get persistentvolumec") == ["persistentvolumeclaims"]
    assert completed("moorage context use la") == ["lab"]
