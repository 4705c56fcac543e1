"""Mistakes in replicas: loading, following the log, undoing."""

from msgspec.structs import replace

from service.engine import Cluster, cluster
from service.engine.state.pods.classes import MatchIndex, Role
from service.model.cluster.cluster_config import ClusterConfig
from service.model.log.commit import Head, LogPage
from service.scheduler.replica.follower import Follower
from service.scheduler.replica.loading import Loader
from service.scheduler.replica.replica import Replica
from service.scheduler.replica.stored_kinds import ConfigManifest
from tests.concurrency.planted.registry import bug, made_with


@bug("P7, A2", "Replica.undo")
def undo_forgets_the_engine(patch):
    """Undoing puts the objects back, but not the engine's counters."""
    undo = Replica.undo

    def undo_objects(self, mark):
        undo(self, replace(mark, engine=self.cluster.mark()))

    patch.setattr(Replica, "undo", undo_objects)


@bug("P7", "Replica.put_back")
def undo_forgets_the_objects(patch):
    """Undoing puts the engine's counters back, but not the objects."""
    patch.setattr(Replica, "put_back", lambda self, entry: None)


@bug("A13", "cluster.add_to_counters")
def weights_of_pods_that_go_stay(patch):
    """What preferred terms of pods weigh goes on counting when these go."""

    def add_to_counters(pod_class, slot, pods):
        for entry in pod_class.matched:
            for counter in entry.counters.values():
                counter.add(slot, pods)
        for term in pod_class.template.owned:
            if pods > 0 or term.role in (Role.FORBIDS, Role.ATTRACTS_HARD):
                term.counter.add(slot, pods)

    patch.setattr(cluster, "add_to_counters", add_to_counters)


@bug("P12", "Follower.apply")
def last_change_of_a_page_skipped(patch):
    """A page of several changes is applied without its last one."""

    def apply(self, page):
        for change in page.changes[:-1] if len(page.changes) > 1 else page.changes:
            self.replica.apply(change)
        self.replica.revision = page.revision
        self.replica.settle_all()
        if page.tip is not None:
            self.head = Head(page.revision, page.tip, page.head.at)

    patch.setattr(Follower, "apply", apply)


@bug("P12", "Replica.apply")
def changes_applied_twice(patch):
    """What the log says is applied a second time where it follows directly."""
    apply = Replica.apply

    def apply_twice(self, change):
        apply(self, change)
        if change.verb == "Put" and change.created and change.kind == "Pod":
            self.cluster.nodes.use(0, (("cpu", 200),), (200, 0), 1)

    patch.setattr(Replica, "apply", apply_twice)


@bug("A13", "Replica.apply")
def deletes_of_others_not_applied(patch):
    """Pods that others deleted stay in the replica."""
    apply = Replica.apply

    def apply_puts(self, change):
        if change.verb == "Delete" and change.kind == "Pod":
            self.revision = change.revision
        else:
            apply(self, change)

    patch.setattr(Replica, "apply", apply_puts)


@bug("A2", "Replica.enter")
def configuration_of_others_ignored(patch):
    """Replicas keep the configuration that they were loaded with."""
    enter = Replica.enter

    def enter_objects(self, manifest):
        if isinstance(manifest, ConfigManifest) and self.keys("Cluster"):
            return manifest.namespace, manifest.name
        return enter(self, manifest)

    patch.setattr(Replica, "enter", enter_objects)


@bug("A2", "MatchIndex.relabel_namespace")
def namespace_relabels_ignored(patch):
    """A namespace's labels count as they were when it came."""
    relabel = MatchIndex.relabel_namespace

    def label_once(self, name, labels):
        if labels is None or name not in self.namespace_labels:
            relabel(self, name, labels)

    patch.setattr(MatchIndex, "relabel_namespace", label_once)


@bug("A2", "Cluster.recount")
def node_relabels_do_not_move_pods(patch):
    """Pods stay counted in the domain that their node has left."""
    patch.setattr(Cluster, "recount", lambda self, slot, sign: None)


@bug("A2", "Cluster.detach_pods")
def deleted_nodes_keep_their_pods(patch):
    """The pods of a deleted node go on counting in its domains."""
    patch.setattr(Cluster, "detach_pods", lambda self, name, slot: None)


@bug("P13", "Replica.load")
def namespaces_not_loaded(patch):
    """A replica that is loaded anew knows no namespace labels."""
    load = Replica.load

    def load_others(self, rows):
        load(self, [row for row in rows if row.kind != "Namespace"])

    patch.setattr(Replica, "load", load_others)


@bug("P13", "Replica.load")
def configuration_not_loaded(patch):
    """A replica that is loaded anew has the default configuration."""
    load = Replica.load

    def load_all(self, rows):
        load(self, rows)
        if any(row.kind == "Cluster" for row in rows):
            self.cluster.configure(ClusterConfig())
            self.settle_all()

    patch.setattr(Replica, "load", load_all)


@bug("P13", "Loader.is_loaded")
def ranges_of_different_states(patch):
    """What was loaded first stays as it was then, while later ranges are newer."""
    patch.setattr(Loader, "is_loaded", lambda self, key: False)


@bug("P13", "Loader.is_loaded")
def changes_beyond_a_range_applied(patch):
    """Objects that are still to be loaded come from the log as well, and count twice."""
    patch.setattr(Loader, "is_loaded", lambda self, key: True)


@bug("P13", "Loader.has_come_to")
def ranges_overshoot(patch):
    """The log is followed to the end of its page, and a range added that is older."""
    made = made_with(patch, Loader)

    async def has_come_to(self, head):
        source, cluster_id = made[self]["source"], made[self]["cluster_id"]
        while self.head is not None and self.head.revision < head.revision:
            page = await source.log.read(cluster_id, self.head.revision, self.head.tip, 2_000)
            if not isinstance(page, LogPage):
                return False
            self.follow(page.changes, page.revision)
            self.come_to(page.head)
        return True

    patch.setattr(Loader, "has_come_to", has_come_to)
