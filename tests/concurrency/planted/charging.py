"""Mistakes in what quotas are charged."""

import msgspec

from service.scheduler.decide.placing import pod_placement as one_pod
from service.scheduler.replica.quotas import refusals
from service.scheduler.replica.quotas.charges import Charges
from service.scheduler.replica.quotas.ledger import Account
from service.scheduler.replica.replica import Replica
from tests.concurrency.planted.registry import bug, made_with


@bug("A2", "Account.charge")
def nothing_charged(patch):
    """What is used is what was used when somebody looked first."""
    patch.setattr(Account, "charge", lambda self, charges, pod, sign: None)


@bug("A13", "Account.charge")
def nothing_given_back(patch):
    """Pods that are gone are still charged."""
    charge = Account.charge

    def only_charge(self, charges, pod, sign):
        if sign > 0:
            charge(self, charges, pod, sign)

    patch.setattr(Account, "charge", only_charge)


@bug("A2", "Replica.account")
def charged_late(patch):
    """Pods are charged when the log has them: who comes at the same time sees room."""
    account = Replica.account

    def only_settled(self, before, after):
        new = before is None and after is not None and after.manifest.kind == "Pod"
        if not new:
            account(self, before, after)

    settle = Replica.settle

    def settle_and_charge(self, mark):
        for entry in self.until(mark):
            if entry.kind == "Pod" and entry.before is None and entry.after is not None:
                self.ledger.change(None, entry.after.manifest)
        settle(self, mark)

    patch.setattr(Replica, "account", only_settled)
    patch.setattr(Replica, "settle", settle_and_charge)


@bug("P7, A13", "Replica.undo")
def charge_not_undone(patch):
    """What was undone is still charged."""
    undo, account = Replica.undo, Replica.account

    def undo_but_charges(self, mark):
        patch.setattr(Replica, "account", lambda self, before, after: None)
        undo(self, mark)
        patch.setattr(Replica, "account", account)

    patch.setattr(Replica, "undo", undo_but_charges)


@bug("P9, A2", "pod_placement.refusal_of")
def quota_not_asked_again(patch):
    """After a lost race quotas are not looked at again."""
    refusal_of = one_pod.refusal_of

    def only_at_first(context, candidate):
        refused = refusal_of(context, candidate)
        late = context.attempts > 1 and refused is not None and refused.reason == "QuotaExceeded"
        return None if late else refused

    patch.setattr(one_pod, "refusal_of", only_at_first)


@bug("A2", "Charges.covers")
def scopes_ignored(patch):
    """A quota is for all pods of its namespace."""
    patch.setattr(Charges, "covers", lambda self, quota, pod: True)


@bug("A13", "Account.__init__")
def new_quotas_begin_at_nothing(patch):
    """What was there before a quota is not charged to it."""
    made = Account.__init__

    def made_empty(self, quota):
        made(self, quota)
        self.used = {}

    patch.setattr(Account, "__init__", made_empty)


@bug("A2", "QuotaRequest.exceeded")
def one_too_many(patch):
    """A quota that is full takes one more."""
    exceeded, made = refusals.QuotaRequest.exceeded, made_with(patch, refusals.QuotaRequest)

    def exceeded_by_far(self, quota):
        used = made[self]["ledger"].usage(quota.namespace, quota.name).used
        full = all(used[each] < limit for each, limit in quota.hard.items())
        return None if full else exceeded(self, quota)

    patch.setattr(refusals.QuotaRequest, "exceeded", exceeded_by_far)


@bug("A13", "Charges.forget_costs")
def costs_of_old_nodes(patch):
    """Opportunity costs stay what they were when nodes come, go or change."""
    patch.setattr(Charges, "forget_costs", lambda self: None)


@bug("A13", "Charges.opportunity")
def costs_as_before_placement(patch):
    """A placed pod goes on costing what it could have taken."""
    opportunity = Charges.opportunity

    def wherever_it_may_be(self, quota, pod):
        return opportunity(self, quota, msgspec.structs.replace(pod, node_name=None))

    patch.setattr(Charges, "opportunity", wherever_it_may_be)


@bug("A2", "QuotaRequest.added")
def costs_only_shown(patch):
    """Opportunity cost is told in the status of quotas, but keeps nobody out."""
    added = refusals.QuotaRequest.added

    def without_costs(self, quota):
        grown = added(self, quota)
        return {name: more for name, more in grown.items() if "opportunity." not in name}

    patch.setattr(refusals.QuotaRequest, "added", without_costs)
