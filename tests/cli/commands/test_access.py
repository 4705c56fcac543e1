"""`moorage token` and `moorage grant` send what the API takes, and show what it tells."""

import httpx
import pytest

CI = {
    "name": "ci",
    "grants": [
        {"role": "reader"},
        {"role": "scheduler", "cluster": "default", "namespace": "shop"},
    ],
    "createdAt": "2026-01-31T08:00:00Z",
    "tokens": [
        {"id": "0123", "description": "nightly", "createdAt": "2026-01-31T08:00:00Z"},
    ],
}
NEW = {"id": "0123", "token": "mrg_0123_secret"}


def test_a_token_is_printed_alone_so_that_a_script_can_take_it(moorage, stub):
    stub.on("POST", "/v1/principals/ci/tokens", NEW)
    ended = moorage("token", "create", "ci", "--expires", "90d", "--description", "nightly")
    assert ended.code == 0
    assert ended.out == "mrg_0123_secret\n"
    assert stub.sent() == {"description": "nightly", "expiresInSeconds": 90 * 24 * 3600}


def test_a_token_for_somebody_new_comes_with_a_role(moorage, stub):
    stub.on("PUT", "/v1/principals/ci", CI)
    stub.on("POST", "/v1/principals/ci/tokens", NEW)
    role = ("--role", "scheduler", "--on", "default", "--in", "shop")
    assert moorage("token", "create", "ci", *role).code == 0
    assert [request.method for request in stub.requests] == ["GET", "PUT", "POST"]
    assert stub.sent(1) == {
        "grants": [{"role": "scheduler", "cluster": "default", "namespace": "shop"}]
    }


@pytest.mark.parametrize("expires", ["soon", "0d", "-1d", "90", "1.5h"])
def test_a_duration_has_a_number_and_a_unit(moorage, stub, expires):
    ended = moorage("token", "create", "ci", "--expires", expires)
    assert ended.code == 2
    assert not stub.requests


def test_a_place_without_a_role_makes_no_sense(moorage, stub):
    assert moorage("token", "create", "ci", "--in", "shop").code == 2
    assert not stub.requests


def test_tokens_are_listed_with_whose_they_are(moorage, stub):
    stub.on("GET", "/v1/principals", {"items": [CI]})
    ended = moorage("token", "list")
    assert all(word in ended.out for word in ("0123", "ci", "nightly", "never"))
    assert moorage("token", "list", "-o", "json").json == [{"principal": "ci", **CI["tokens"][0]}]


def test_tokens_are_revoked_by_their_ids(moorage, stub):
    for token in ("0123", "4567"):
        stub.on("DELETE", f"/v1/tokens/{token}", {"id": token})
    assert moorage("token", "revoke", "0123", "4567").code == 0
    assert [request.url.path for request in stub.requests] == ["/v1/tokens/0123", "/v1/tokens/4567"]


def test_a_grant_is_added_to_those_that_there_are(moorage, stub):
    stub.on("GET", "/v1/principals/ci", CI)
    stub.on("PUT", "/v1/principals/ci", CI)
    assert moorage("grant", "add", "ci", "observer", "--on", "default").code == 0
    assert stub.sent() == {"grants": [*CI["grants"], {"role": "observer", "cluster": "default"}]}


def test_a_grant_that_is_there_already_is_not_sent_again(moorage, stub):
    stub.on("GET", "/v1/principals/ci", CI)
    assert moorage("grant", "add", "ci", "reader").code == 0
    assert [request.method for request in stub.requests] == ["GET"]


TAGGED = httpx.Response(200, json=CI, headers={"etag": '"1"'})
CHANGED_MEANWHILE = httpx.Response(412, json={"code": "PreconditionFailed", "title": "Changed"})


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("add", [{"role": "reader"}, {"role": "admin"}, {"role": "editor"}]),
        ("remove", [{"role": "admin"}]),
    ],
)
def test_what_others_grant_at_the_same_time_stays(moorage, stub, command, wanted):
    theirs = {**CI, "grants": [{"role": "reader"}, {"role": "admin"}]}
    changed = httpx.Response(200, json=theirs, headers={"etag": '"2"'})
    stub.on("GET", "/v1/principals/ci", TAGGED, changed)
    stub.on("PUT", "/v1/principals/ci", CHANGED_MEANWHILE, CI)
    role = "editor" if command == "add" else "reader"
    assert moorage("grant", command, "ci", role).code == 0
    tags = [each.headers["if-match"] for each in stub.requests if each.method == "PUT"]
    assert tags == ['"1"', '"2"']
    assert stub.sent() == {"grants": wanted}


def test_whom_somebody_else_makes_at_the_same_time_keeps_their_grants(moorage, stub):
    missing = httpx.Response(404, json={"code": "NotFound", "title": "Not found"})
    stub.on("GET", "/v1/principals/ci", missing, TAGGED)
    stub.on("PUT", "/v1/principals/ci", CHANGED_MEANWHILE, CI)
    assert moorage("grant", "add", "ci", "admin").code == 0
    tags = [
        (request.headers.get("if-none-match"), request.headers.get("if-match"))
        for request in stub.requests
        if request.method == "PUT"
    ]
    assert tags == [("*", None), (None, '"1"')]
    assert stub.sent() == {"grants": [*CI["grants"], {"role": "admin"}]}


def test_a_change_that_always_comes_too_late_is_given_up(moorage, stub):
    stub.on("GET", "/v1/principals/ci", TAGGED)
    stub.on("PUT", "/v1/principals/ci", CHANGED_MEANWHILE)
    assert moorage("grant", "add", "ci", "admin").code == 1


def test_a_group_gets_a_grant_of_its_own(moorage, stub):
    stub.on("PUT", "/v1/groups/devs", {})
    assert moorage("grant", "add", "devs", "reader", "--group").code == 0
    assert stub.sent() == {"grants": [{"role": "reader"}]}


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("/devs/ops", "~1devs~1ops"),
        ("Platform Team", "Platform%20Team"),
        ("auth0|a", "auth0%7Ca"),
        ("a~1", "a~01"),
    ],
)
def test_any_name_that_a_provider_gives_can_be_granted_something(moorage, stub, name, path):
    assert moorage("grant", "add", name, "reader", "--group").code == 1
    assert [each.url.raw_path for each in stub.requests][-1] == f"/v1/groups/{path}".encode()


def test_exactly_the_grant_that_was_given_is_taken_away(moorage, stub):
    stub.on("GET", "/v1/principals/ci", CI)
    stub.on("PUT", "/v1/principals/ci", CI)
    assert moorage("grant", "remove", "ci", "scheduler").code == 2
    place = ("--on", "default", "--in", "shop")
    assert moorage("grant", "remove", "ci", "scheduler", *place).code == 0
    assert stub.sent() == {"grants": [{"role": "reader"}]}


def test_grants_are_listed_with_where_they_hold(moorage, stub):
    stub.on("GET", "/v1/principals", {"items": [CI]})
    stub.on("GET", "/v1/groups", {"items": [{"name": "devs", "grants": [{"role": "admin"}]}]})
    ended = moorage("grant", "list", "-o", "json")
    assert ended.json == [
        {"kind": "principal", "name": "ci", "role": "reader"},
        {
            "kind": "principal",
            "name": "ci",
            "role": "scheduler",
            "cluster": "default",
            "namespace": "shop",
        },
        {"kind": "group", "name": "devs", "role": "admin"},
    ]
    assert "devs" in moorage("grant", "list").out
