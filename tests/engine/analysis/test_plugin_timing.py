"""Timing plugins for a pod: each one that the pod concerns is asked, and nothing is changed."""

from itertools import count

from service.engine import Cluster, place, time_plugins
from service.model.registry.manifests import TemplateCache, parse_node, parse_pod
from tests.builders import matching, node, pod
from tests.scheduler.world import encoded

TEMPLATES = TemplateCache()


def parsed(manifest, **options):
    return parse_pod(encoded(manifest), TEMPLATES, **options).pod


def cluster():
    made = Cluster()
    for name, zone in (("n1", "a"), ("n2", "b")):
        made.put_node(parse_node(encoded(node(name).label(zone=zone).taint("t", "v"))).node)
    return made


def ticks():
    """Every look at the clock is a second later."""
    return count().__next__


def test_each_plugin_that_concerns_a_pod_is_timed_once_at_each_extension_point():
    """O02: Filter and Score."""
    tolerant = pod("p").label(app="x").spread(1, "zone", matching(app="x")).tolerate("t", "v")
    timed = time_plugins(cluster(), parsed(tolerant), ticks())
    filters = [each.plugin for each in timed if each.extension_point == "Filter"]
    assert filters == [
        *("NodeName", "NodeUnschedulable", "TaintToleration", "NodeAffinity"),
        *("NodePorts", "NodeResourcesFit", "PodTopologySpread", "NodeDeclaredFeatures"),
    ]
    scores = [each.plugin for each in timed if each.extension_point == "Score"]
    assert {"NodeResourcesFit", "TaintToleration", "ImageLocality", "InterPodAffinity"} <= {*scores}
    assert len({*scores}) == len(scores)
    assert {(each.status, each.seconds) for each in timed} == {("Success", 1)}


def test_a_filter_that_leaves_no_node_is_told_as_unschedulable():
    timed = time_plugins(
        cluster(), parsed(pod("p").require_affinity("zone", matching(app="no"))), ticks()
    )
    refusing = {each.plugin for each in timed if each.status == "Unschedulable"}
    assert refusing == {"TaintToleration", "InterPodAffinity"}


def test_timing_changes_nothing():
    made, asked = cluster(), parsed(pod("p").label(app="x").tolerate("t", "v"))
    before = place(made, asked)
    mark = made.mark()
    time_plugins(made, asked, ticks())
    assert made.mark() == mark
    assert place(made, asked) == before
