"""`moorage cordon`: keep new pods off nodes."""

from moorage.cli.changes.nodes import Nodes, act_on_node
from moorage.cli.session.options import DryRun, Session, connected
from moorage.cli.session.resources import node_name


@connected
def cordon(session: Session, *, nodes: Nodes, dry_run: DryRun = False) -> None:
    """Have nodes take no new pods; those that are there stay."""
    session = session.trying(dry_run)
    for name in map(node_name, nodes):
        session.done(act_on_node(session, name, "cordon"), f"node/{name} cordoned")
