"""Mistakes in evicting pods whose rules are required during execution."""

from datetime import timedelta

from msgspec.structs import replace

from service.engine.rules import violations
from service.scheduler import dispatch as decide_module
from service.scheduler.controllers import rule_evictions
from service.scheduler.decide.evicting import (
    minimal_evictions,
    violation_sweep,
)
from service.scheduler.decide.evicting.minimal_evictions import Cause, MinimalEvictions
from service.scheduler.decide.evicting.violation_sweep import Sweep
from service.scheduler.protocol.intents import EvictViolating
from service.scheduler.replica.replica import Replica
from service.scheduler.replica.stored_kinds import EvictionState
from tests.concurrency.planted.registry import bug, made_with


@bug("A14", "violations.node_rules")
def ignored_rules_evict(patch):
    """Node affinity that is ignored during execution has pods evicted, too."""
    rules_of = violations.node_rules

    def all_required(spec, rules):
        for rule, required in rules_of(spec, rules):
            yield rule._replace(execution="Required"), required

    patch.setattr(violations, "node_rules", all_required)


@bug("P17, A14", "Sweep.run")
def victims_not_chosen_again(patch):
    """After a lost race those are evicted who were to go before, whatever happened meanwhile."""
    run, made, chosen = Sweep.run, made_with(patch, Sweep), {}

    def run_as_before(self):
        context = made[self]["context"]
        known = chosen.get(id(context.hints))
        if known is not None and context.attempts > 1:
            there = [each for each in known[1] if context.replica.pod(*each[0]) is not None]
        else:
            there = list(self.victims())
        self.victims = lambda: iter(there)
        chosen[id(context.hints)] = (context.hints, there)
        run(self)

    patch.setattr(Sweep, "run", run_as_before)


@bug("A14", "violation_sweep.evict_violating")
def the_marked_are_evicted_again(patch):
    """Who is being stopped already is told so once more."""
    endures = violation_sweep.evict_violating

    def with_the_marked(context, intent):
        marked = [
            pod_class
            for pod_class in context.replica.cluster.execution_classes()
            if pod_class.terminating
        ]
        for each in marked:
            each.terminating = False
        try:
            return (yield from endures(context, intent))
        finally:
            for each in marked:
                each.terminating = True

    patch.setitem(decide_module.DECISIONS, EvictViolating, with_the_marked)


@bug("A14", "Sweep.grace")
def no_grace(patch):
    """Affinity that does not hold has pods evicted at once."""
    patch.setattr(Sweep, "grace", lambda self, timer: timedelta(0))


@bug("A14", "violation_sweep.budget_left")
def budget_ignored(patch):
    """As many pods are evicted as there are."""
    patch.setattr(
        violation_sweep,
        "budget_left",
        lambda config, recent: violation_sweep.EVICTIONS_MAX,
    )


@bug("P17, A14", "Sweep.remember")
def budget_of_each_look(patch):
    """What was evicted a moment ago is not counted."""
    remember = Sweep.remember

    def forget(self):
        remember(self)
        self.recent.clear()

    patch.setattr(Sweep, "remember", forget)
    patch.setattr(violation_sweep, "recent_evictions", lambda state, now: [])


@bug("A14", "minimal_evictions.choose_evictions")
def both_sides_evicted(patch):
    """Further victims are chosen as if nobody had gone."""

    def everybody(ordered, priorities, by_pod):
        broken = {key for key in ordered if any(q.is_broken_with(key) for q in by_pod.get(key, ()))}
        for key in broken:
            for conflict in by_pod[key]:
                conflict.leave(key)
        return broken

    patch.setattr(minimal_evictions, "choose_evictions", everybody)


@bug("A14", "MinimalEvictions.in_order")
def the_highest_goes(patch):
    """The highest priority goes first, and the oldest among equals."""
    in_order = MinimalEvictions.in_order
    patch.setattr(MinimalEvictions, "in_order", lambda self, keys: in_order(self, keys)[::-1])


@bug("A14", "MinimalEvictions.victims")
def the_wrong_side_goes(patch):
    """Where the owner of a rule has to go, the other pod goes."""
    chosen, made = MinimalEvictions.victims, made_with(patch, MinimalEvictions)

    def others(self):
        if made[self]["config"].anti_affinity_victim == "LowestPriority":
            yield from chosen(self)
            return
        for conflict in list(self.conflicts.values()):
            for key in sorted(conflict.members - conflict.owners.keys()):
                owner = min(conflict.owners, default=None)
                if owner is not None:
                    told = f"{conflict.owners[owner]} does not hold."
                    yield key, Cause("PodAntiAffinity", told)
                    self.leave(key)

    patch.setattr(MinimalEvictions, "victims", others)


@bug("A14", "violations.unmet_terms")
def the_last_of_a_group_evicted(patch):
    """A pod that matches itself is not enough for its own affinity, though it was to begin with."""

    def unmet(pod_class, terms, slot):
        found = []
        for term in terms:
            domain = term.counter.key.domain_of[slot]
            itself = pod_class in term.matcher.classes
            if domain < 0 or term.counter.counts[domain] <= itself:
                found.append(term)
        return found

    patch.setattr(violations, "unmet_terms", unmet)


@bug("A14", "Replica.load")
def timers_begin_anew(patch):
    """A replica that is loaded knows of no timers: grace begins anew with each restart."""
    load = Replica.load

    nothing = EvictionState().render()

    def load_without_timers(self, rows):
        timers = EvictionState.kind
        load(self, [replace(row, body=nothing) if row.kind == timers else row for row in rows])

    patch.setattr(Replica, "load", load_without_timers)


@bug("A14", "Sweep.victims")
def nobody_evicted(patch):
    """What does not hold is only counted."""
    patch.setattr(Sweep, "victims", lambda self: iter(()))


@bug("P16, A14", "rule_evictions.EvictViolating")
def time_of_asking(patch):
    """A rule counts as broken from when somebody asked, though it broke before he was answered."""

    def asked(clock):
        now = clock()
        return EvictViolating(clock=lambda: now)

    patch.setattr(rule_evictions, "EvictViolating", asked)
