"""The example orchestrator is killed at its worst moments, and loses nothing."""

from examples.orchestrator import Journal, read_journal
from examples.orchestrator_trial import trial
from service.server.local_server import LocalServer, temporary_folder

JOBS, NODES, CPUS, KILLS = 300, 40, 4, 3


def test_an_orchestrator_that_is_killed_loses_nothing(module_database_url):
    """There are more jobs than there is room, one node dies, and so does the server in the end."""
    environment = {"MOORAGE_DATABASE_URL": module_database_url}
    with (
        temporary_folder() as folder,
        LocalServer(folder / "data", environment=environment, quiet=True) as server,
    ):
        report = trial(server, folder, jobs=JOBS, nodes=NODES, cpus=CPUS, kills=KILLS, grace=2)

    assert (report.lost, report.made_up, report.left) == ([], [], [])
    assert (report.orchestrators_killed, report.nodes_lost) == (KILLS, 1)


def test_a_line_of_a_journal_that_was_cut_off_counts_for_nothing(tmp_path):
    path = tmp_path / "names"
    path.write_text("job-1\njob-2\njob-")
    journal = Journal(path)
    journal.add(["job-2", "job-3"])
    assert read_journal(path) == ({"job-1", "job-2", "job-3"}, len(path.read_text()))
