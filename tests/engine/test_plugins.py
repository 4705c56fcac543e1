"""Every plugin in the list against the laws of plugins; a new one is tested by being in the list."""

import pytest

from service.engine.plugins import PLUGINS
from service.extensions.suite import PluginSuite


@pytest.fixture(params=PLUGINS, ids=lambda plugin: plugin.name)
def listed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request.cls, "plugin", request.param, raising=False)


@pytest.mark.usefixtures("listed")
class TestListedPlugins(PluginSuite):
    pods = ({"nodeSelector": {"rack": "r1"}}, {"nodeName": "n1"})

    def node(self, number):
        return {"metadata": {"labels": {"rack": f"r{number % 2}"}}}
