from tests.seeds import VARIABLE, seed


def test_a_name_has_the_same_seed_in_each_run_and_each_number_in_the_environment_another(
    monkeypatch,
):
    monkeypatch.delenv(VARIABLE, raising=False)
    usual = seed("a")
    assert usual == 1947945454 != seed("b")

    monkeypatch.setenv(VARIABLE, "0")
    assert seed("a") == usual

    monkeypatch.setenv(VARIABLE, "1")
    assert seed("a") != usual
