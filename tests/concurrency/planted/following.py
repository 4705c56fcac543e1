"""Mistakes in replicas: loading, following the log, undoing."""

from msgspec.structs import replace

from service.engine import Cluster
from service.engine.state.classes import PodClass, Role
from service.model.config import ClusterConfig
from service.model.log import Head, LogPage
from service.scheduler.replica.follower import Follower
from service.scheduler.replica.kinds import ConfigManifest
from service.scheduler.replica.loading import Loading
from service.scheduler.replica.replica import Replica
from tests.concurrency.planted.registry import bug


@bug("P7, A2", "Replica.undo")
def undo_forgets_the_engine(patch):
    """Undoing puts the objects back, but not the engine's counters."""
    undo = Replica.undo

    def undo_objects(self, mark):
        undo(self, replace(mark, engine=self.cluster.mark()))

    patch.setattr(Replica, "undo", undo_objects)


@bug("P7", "Replica.undo")
def undo_forgets_the_objects(patch):
    """Undoing puts the engine's counters back, but not the objects."""

    def undo_engine(self, mark):
        del self._journal[mark.position - self._settled :]
        self.cluster.undo(mark.engine)
        self.revision = mark.revision

    patch.setattr(Replica, "undo", undo_engine)


@bug("A13", "PodClass.count")
def weights_of_pods_that_go_stay(patch):
    """What preferred terms of pods weigh goes on counting when these go."""

    def count(self, slot, pods):
        for entry in self.matched:
            for counter in entry.counters.values():
                counter.add(slot, pods)
        for term in self.template.owned:
            if pods > 0 or term.role in (Role.FORBIDS, Role.ATTRACTS_HARD):
                term.counter.add(slot, pods)

    patch.setattr(PodClass, "count", count)


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


@bug("A2", "Replica._enter")
def configuration_of_others_ignored(patch):
    """Replicas keep the configuration that they were loaded with."""
    enter = Replica._enter

    def enter_objects(self, manifest):
        known = self._objects.get("Cluster")
        if isinstance(manifest, ConfigManifest) and known:
            return manifest.namespace, manifest.name
        return enter(self, manifest)

    patch.setattr(Replica, "_enter", enter_objects)


@bug("A2", "Cluster.put_namespace")
def namespace_relabels_ignored(patch):
    """A namespace's labels count as they were when it came."""
    put = Cluster.put_namespace

    def put_once(self, namespace):
        if namespace.name not in self._namespaces:
            put(self, namespace)

    patch.setattr(Cluster, "put_namespace", put_once)


@bug("A2", "Cluster._recount")
def node_relabels_do_not_move_pods(patch):
    """Pods stay counted in the domain that their node has left."""
    patch.setattr(Cluster, "_recount", lambda self, slot, sign: None)


@bug("A2", "Cluster.delete_node")
def deleted_nodes_keep_their_pods(patch):
    """The pods of a deleted node go on counting in its domains."""
    delete = Cluster.delete_node

    def delete_alone(self, name):
        pods = self._by_node.pop(name, None)
        delete(self, name)
        if pods is not None:
            self._by_node[name] = pods

    patch.setattr(Cluster, "delete_node", delete_alone)


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


@bug("P13", "Loading._follow")
def ranges_of_different_states(patch):
    """What was loaded first stays as it was then, while later ranges are newer."""

    def follow(self, changes, last):
        for change in changes:
            if change.revision <= last:
                self._target.pass_over(change)

    patch.setattr(Loading, "_follow", follow)


@bug("P13", "Loading._follow")
def changes_beyond_a_range_applied(patch):
    """Objects that are still to be loaded come from the log as well, and count twice."""

    def follow(self, changes, last):
        for change in changes:
            if change.revision <= last:
                self._target.apply(change)

    patch.setattr(Loading, "_follow", follow)


@bug("P13", "Loading._has_come_to")
def ranges_overshoot(patch):
    """The log is followed to the end of its page, and a range added that is older."""
    come = Loading._come_to

    async def has_come_to(self, head):
        while self._head is not None and self._head.revision < head.revision:
            at = self._head
            page = await self._source.read_log(self._cluster_id, at.revision, at.tip, 2_000)
            if not isinstance(page, LogPage):
                return False
            self._follow(page.changes, page.revision)
            come(self, page.head)
        return True

    patch.setattr(Loading, "_has_come_to", has_come_to)
