from service.cli.commands import bench


def test_every_option_is_for_the_measurements(moorage):
    ended = moorage("bench", "http", "--help")
    assert ended.code == 0
    assert "--clients" in ended.out


def test_without_a_checkout_there_is_nothing_to_run(moorage, monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "CHECKOUT", tmp_path)
    ended = moorage("bench", "SchedulingBasic")
    assert ended.code == 2
    assert "checkout" in ended.err
