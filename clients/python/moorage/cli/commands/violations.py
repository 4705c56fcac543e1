"""`moorage violations`: list placed pods that break a required rule."""

from moorage.cli.render.rows import identity
from moorage.cli.session.options import Session, connected


@connected
def violations(session: Session) -> None:
    """List the placed pods that break a required rule now."""
    answer = session.client.get(session.client.path("violations"))
    if not session.output.for_people:
        session.output.document(answer)
        return
    session.output.table(
        ("pod", "node", "plugin", "rule", "reason"),
        (
            (identity(item), item["nodeName"], item["plugin"], item["rule"], item["reason"])
            for item in answer["items"]
        ),
    )
