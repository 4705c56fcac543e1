"""Tables: aligned while rows come in, cut to the screen, and never cut in a pipe."""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest
from rich.cells import cell_len

from moorage.cli.render.tables import TableWriter
from tests.cli.conftest import CLUSTER
from tests.paths import ROOT
from tests.terminals import Terminal

SENTENCE = "0/9 nodes are available: 4 Insufficient cpu, 5 node(s) had untolerated taint(s)."
LONG = "a-pod-with-a-rather-long-name-that-nobody-would-ever-type-by-hand-7d9f8b6c5d-abcde"


def table(columns, *pieces, **options):
    lines = []
    writer = TableWriter(
        columns, write=lambda text: lines.extend(text.splitlines()), head=lines.append, **options
    )
    for piece in pieces:
        writer.add(piece)
    writer.end()
    return lines


def test_pieces_are_aligned_with_those_before():
    lines = table(("name", "state"), [("longer", 1)], [("a", 2)], [("the-longest", 3)], [("b", 4)])

    assert lines == [
        "NAME    STATE",
        "longer  1",
        "a       2",
        "the-longest  3",
        "b            4",
    ]


def test_rows_are_printed_before_the_next_ones_are_asked_for():
    printed = []
    writer = TableWriter(("name",), write=printed.append, head=printed.append)

    writer.add([("a",)])

    assert printed == ["NAME", "a\n"]


def test_without_a_width_nothing_is_cut_and_headings_can_be_left_out():
    assert table(("name", "why"), [(LONG, SENTENCE)], headed=False) == [f"{LONG}  {SENTENCE}"]


@pytest.mark.parametrize("width", [1, 5, 17, 40, 80, 200])
@pytest.mark.parametrize("wraps", [False, True])
def test_no_line_is_wider_than_the_screen_as_far_as_columns_can_give_way(width, wraps):
    rows = [("shop", LONG, "Pending", SENTENCE), ("部署", "日本語の名前" * 9, "Placed", None)]

    lines = table(("namespace", "name", "state", "waits for"), rows, width=width, wraps=wraps)

    least = 4 * 3 + 3 * 2
    assert max(map(cell_len, lines)) <= max(width, least)


def test_what_is_cut_says_so_and_gives_way_at_the_end_first():
    [_, line] = table(("name", "why"), [("web-0", SENTENCE)], width=40)

    assert line == "web-0  0/9 nodes are available: 4 Insuf…"


def test_a_wrapped_text_goes_on_below_and_splits_no_word():
    lines = table(("name", "why"), [("web-0", SENTENCE)], width=40, wraps=True)

    assert [line[7:] for line in lines[1:]] == [
        "0/9 nodes are available: 4",
        "Insufficient cpu, 5 node(s) had",
        "untolerated taint(s).",
    ]
    assert {line[:7].strip() for line in lines[2:]} == {""}


def test_no_text_can_steer_the_terminal_or_break_a_line():
    [_, line] = table(("note",), [("red\x1b[31m and\nbelow",)])

    assert line == "red\\x1b[31m and below"


class _OnePod(BaseHTTPRequestHandler):
    def do_GET(self):
        pod = {"metadata": {"namespace": "shop", "name": LONG}, "spec": {"nodeName": "node-1"}}
        answer = msgspec.json.encode({"items": [pod], "metadata": {}})
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


@pytest.fixture
def url():
    with ThreadingHTTPServer(("127.0.0.1", 0), _OnePod) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("columns", "output", "whole"), [(60, [], False), (60, ["-o", "wide"], True)]
)
def test_a_terminal_gets_lines_of_its_width_but_for_wide_ones(url, columns, output, whole):
    command = [sys.executable, "-m", "service.cli", "get", "pods", "--url", url, *output]

    with Terminal(command, environment={"COLUMNS": str(columns)}, cwd=str(ROOT)) as terminal:
        assert terminal.exit_code() == 0

    line = next(each for each in terminal.shown.splitlines() if "a-pod" in each)
    assert (LONG in line) is whole
    assert whole or (len(line) <= columns and "…" in line)


def test_a_pipe_gets_whole_lines_page_by_page(moorage, stub):
    pods = [
        {"metadata": {"namespace": "shop", "name": name}, "spec": {"nodeName": "node-1"}}
        for name in (LONG, "b")
    ]
    stub.on(
        "GET",
        f"{CLUSTER}/pods",
        {"items": pods[:1], "metadata": {"continue": "more"}},
        {"items": pods[1:], "metadata": {}},
    )

    lines = moorage("get", "pods", "--no-headers").out.splitlines()

    assert [line.split()[1] for line in lines] == [LONG, "b"]
    assert lines[0].index("Placed") == lines[1].index("Placed")
