"""`moorage uncordon`: let nodes accept new pods again."""

from moorage.cli.changes.nodes import Nodes, act_on_node
from moorage.cli.session.options import DryRun, Session, connected
from moorage.cli.session.resources import node_name


@connected
def uncordon(session: Session, *, nodes: Nodes, dry_run: DryRun = False) -> None:
    """Have nodes take new pods again."""
    session = session.trying(dry_run)
    for name in map(node_name, nodes):
        session.done(act_on_node(session, name, "uncordon"), f"node/{name} uncordoned")
