"""Mistakes in evicting pods whose rules are required during execution."""

from datetime import timedelta

from service.engine.questions import violations
from service.model.config import ClusterConfig
from service.scheduler import decide as decide_module
from service.scheduler.controllers import evictions
from service.scheduler.decide.evicting import evicting, victims
from service.scheduler.decide.evicting.evicting import _Sweep
from service.scheduler.decide.evicting.victims import Conflicts
from service.scheduler.protocol.intents import EvictViolating
from service.scheduler.replica.kinds import EvictionState
from service.scheduler.replica.replica import Replica, Stored
from tests.concurrency.planted.registry import bug


@bug("A14", "violations._node_rules")
def ignored_rules_evict(patch):
    """Node affinity that is ignored during execution has pods evicted, too."""
    rules_of = violations._node_rules

    def all_required(spec, rules):
        for rule, required in rules_of(spec, rules):
            yield rule._replace(execution="Required"), required

    patch.setattr(violations, "_node_rules", all_required)


@bug("P17, A14", "evicting.evict_violating")
def victims_not_chosen_again(patch):
    """After a lost race those are evicted who were to go before, whatever happened meanwhile."""
    run, chosen = _Sweep.run, {}

    def run_as_before(self):
        known = chosen.get(id(self._context.hints))
        if known is not None and self._context.attempts > 1:
            there = [each for each in known[1] if self._context.replica.pod(*each[0]) is not None]
            self._victims = lambda: iter(there)
        else:
            there = list(self._victims())
            self._victims = lambda: iter(there)
        chosen[id(self._context.hints)] = (self._context.hints, there)
        run(self)

    patch.setattr(_Sweep, "run", run_as_before)


@bug("A14", "evicting.evict_violating")
def the_marked_are_evicted_again(patch):
    """Who is being stopped already is told so once more."""
    endures = evicting.evict_violating

    def with_the_marked(context, intent):
        marked = [
            pod_class
            for pod_class in context.replica.cluster.enduring_classes()
            if pod_class.terminating
        ]
        for each in marked:
            each.terminating = False
        try:
            return (yield from endures(context, intent))
        finally:
            for each in marked:
                each.terminating = True

    patch.setitem(decide_module._DECIDE, EvictViolating, with_the_marked)


@bug("A14", "_Sweep._grace")
def no_grace(patch):
    """Affinity that does not hold has pods evicted at once."""
    patch.setattr(_Sweep, "_grace", timedelta(0))


@bug("A14", "_Sweep.__init__")
def budget_ignored(patch):
    """As many pods are evicted as there are."""
    made = _Sweep.__init__

    def without_limit(self, *arguments):
        made(self, *arguments)
        self._allowed = 500

    patch.setattr(_Sweep, "__init__", without_limit)


@bug("P17, A14", "_Sweep._remember")
def budget_of_each_look(patch):
    """What was evicted a moment ago is not counted."""
    remember = _Sweep._remember

    def forget(self):
        remember(self)
        self._recent.clear()

    made = _Sweep.__init__

    def without_past(self, *arguments):
        made(self, *arguments)
        self._recent.clear()
        self._allowed = self._config.evictions_per_minute

    patch.setattr(_Sweep, "_remember", forget)
    patch.setattr(_Sweep, "__init__", without_past)


@bug("A14", "Conflicts.leave")
def both_sides_evicted(patch):
    """Further victims are chosen as if nobody had gone."""
    patch.setattr(Conflicts, "leave", lambda self, key: None)


@bug("A14", "Conflicts._in_order")
def the_highest_goes(patch):
    """The highest priority goes first, and the oldest among equals."""
    in_order = Conflicts._in_order
    patch.setattr(Conflicts, "_in_order", lambda self, keys: in_order(self, keys)[::-1])


@bug("A14", "Conflicts.add")
def daemons_evicted(patch):
    """The rules of daemons have daemons evicted."""
    add = Conflicts.add

    def add_all(self, violation):
        config, self._config = self._config, ClusterConfig(daemon_namespaces=())
        add(self, violation)
        self._config = config

    patch.setattr(Conflicts, "add", add_all)


@bug("A14", "Conflicts.victims")
def the_wrong_side_goes(patch):
    """Where the owner of a rule has to go, the other pod goes."""
    chosen = Conflicts.victims

    def others(self):
        if self._config.anti_affinity_victim == "LowestPriority":
            yield from chosen(self)
            return
        for quarrel in list(self._quarrels.values()):
            for key in sorted(quarrel.members - quarrel.owners.keys()):
                owner = min(quarrel.owners, default=None)
                if owner is not None:
                    yield key, victims._cause(f"{quarrel.owners[owner]} does not hold.")
                    self.leave(key)

    patch.setattr(Conflicts, "victims", others)


@bug("A14", "violations._unmet")
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

    patch.setattr(violations, "_unmet", unmet)


@bug("A14", "Replica.load")
def timers_begin_anew(patch):
    """A replica that is loaded knows of no timers: grace begins anew with each restart."""
    load = Replica.load

    def load_without_timers(self, rows):
        load(self, rows)
        for row in rows:
            if row.kind == EvictionState.kind:
                objects = self._objects[row.kind]
                objects["", row.name] = Stored(EvictionState(), row.revision)

    patch.setattr(Replica, "load", load_without_timers)


@bug("A14", "evicting.evict_violating")
def nobody_evicted(patch):
    """What does not hold is only counted."""
    patch.setattr(_Sweep, "_victims", lambda self: iter(()))


@bug("P16, A14", "Evictions._sweep")
def time_of_asking(patch):
    """A rule counts as broken from when somebody asked, though it broke before he was answered."""

    def asked(clock):
        now = clock()
        return EvictViolating(clock=lambda: now)

    patch.setattr(evictions, "EvictViolating", asked)
