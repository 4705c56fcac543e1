"""`moorage webhooks` sends what the API takes, and shows how far each webhook is."""

import httpx
import pytest

HOOKS = "/v1/clusters/default/webhooks"
HOOK = f"{HOOKS}/orders"
STATUS = {"revision": 1042, "behind": 3, "failures": 0, "stopped": False}
WEBHOOK = {
    "name": "orders",
    "url": "https://a.example/",
    "events": "Bindings",
    "disabled": False,
    "createdAt": "2026-01-31T08:00:00Z",
    "status": STATUS,
}
FAILING = STATUS | {
    "failures": 2,
    "lastError": "The receiver answered 503.",
    "nextAttemptAt": "2026-01-31T09:00:00Z",
    "lastDeliveredAt": "2026-01-31T08:00:00Z",
}


def test_the_list_says_how_far_each_is_and_what_went_wrong(moorage, stub):
    failing = WEBHOOK | {"name": "failing", "status": FAILING}
    stopped = WEBHOOK | {"name": "stopped", "status": FAILING | {"stopped": True}}
    paused = WEBHOOK | {"name": "paused", "disabled": True}
    listed = {"kind": "WebhookList", "items": [WEBHOOK, failing, stopped, paused]}
    stub.on("GET", HOOKS, listed)
    rows = [line.split() for line in moorage("webhooks", "list").out.splitlines()]
    assert [row[:4] for row in rows[1:]] == [
        ["orders", "active", "1042", "3"],
        ["failing", "failing", "1042", "3"],
        ["stopped", "stopped", "1042", "3"],
        ["paused", "paused", "1042", "3"],
    ]
    assert rows[1][4:] == ["never", "0", "-", "https://a.example/", "-"]
    assert " ".join(rows[2][5:]).endswith(
        "ago 2 2026-01-31T09:00:00Z https://a.example/ The receiver answered 503."
    )
    assert "2026-01-31T09:00:00Z" not in rows[3]
    assert moorage("webhooks", "list", "-o", "json").json == listed


def test_the_secret_of_a_new_one_is_printed_alone(moorage, stub):
    stub.on("PUT", HOOK, WEBHOOK | {"secret": "whsec_1"})
    options = ("--to", "https://a.example/", "--in", "shop", "--after", "7", "--paused")
    ended = moorage("webhooks", "create", "orders", *options)
    assert (ended.code, ended.out, ended.err) == (0, "whsec_1\n", "orders is made\n")
    assert stub.requests[0].headers["if-none-match"] == "*"
    assert stub.sent() == {
        "url": "https://a.example/", "events": "Bindings", "namespace": "shop", "disabled": True, "afterRevision": 7,
    }  # fmt: skip


def test_one_that_is_there_stays_as_it_is(moorage, stub):
    stub.on("PUT", HOOK, httpx.Response(412, json={"code": "PreconditionFailed", "title": "No"}))
    ended = moorage("webhooks", "create", "orders", "--to", "https://a.example/")
    assert ended.code == 1
    assert "There is a webhook orders already" in ended.err


@pytest.mark.parametrize(
    ("words", "sent", "told"),
    [
        (("pause", "orders"), {"disabled": True}, "orders is paused\n"),
        (("resume", "orders", "--dry-run"), {"disabled": False}, "orders goes on (dry run)\n"),
        (("change", "orders", "--to", "https://b.example/"), {"url": "https://b.example/"}, "orders is changed\n"),
        (("change", "orders", "-A", "--after", "0"), {"namespace": None, "afterRevision": 0}, "orders is changed\n"),
    ],
)  # fmt: skip
def test_a_change_names_only_what_changes(moorage, stub, words, sent, told):
    stub.on("PATCH", HOOK, WEBHOOK)
    ended = moorage("webhooks", *words)
    assert (ended.code, ended.out, stub.sent()) == (0, told, sent)
    assert ("dryRun" in stub.requests[0].url.params) == ("--dry-run" in words)


@pytest.mark.parametrize("options", [(), ("-A", "--in", "shop")])
def test_a_change_says_what_changes(moorage, stub, options):
    assert moorage("webhooks", "change", "orders", *options).code == 2
    assert not stub.requests


def test_a_ping_that_fails_ends_with_1(moorage, stub):
    lost = {"acknowledged": False, "status": 500, "error": "The receiver answered 500."}
    stub.on("POST", f"{HOOK}/ping", {"acknowledged": True, "status": 204}, lost)
    assert moorage("webhooks", "ping", "orders").out == "orders answered 204\n"
    ended = moorage("webhooks", "ping", "orders")
    assert (ended.code, ended.err) == (1, "error: The receiver answered 500.\n")


def test_a_secret_is_never_changed_twice_by_one_command(moorage, stub):
    """The first of two new secrets would be the earlier one, and nobody would know it."""
    changed = WEBHOOK | {"secret": "whsec_2", "previousSecretUntil": "2026-02-01T08:00:00Z"}
    unknown = httpx.Response(503, json={"code": "OutcomeUnknown", "title": "Unknown"})
    stub.on("POST", f"{HOOK}/secret", changed, unknown)
    ended = moorage("webhooks", "rotate-secret", "orders")
    assert (ended.code, ended.out) == (0, "whsec_2\n")
    assert "2026-02-01T08:00:00Z" in ended.err
    assert moorage("webhooks", "rotate-secret", "orders").code == 3
    assert len(stub.requests) == 2


def test_one_is_deleted(moorage, stub):
    stub.on("DELETE", HOOK, WEBHOOK)
    assert moorage("webhooks", "delete", "orders").out == "orders is deleted\n"
