"""`moorage status`: show whether the server is ready."""

from moorage.cli.session.options import Session, connected


@connected
def status(session: Session) -> None:
    """Tell whether the server is ready (exit code 0) or not (exit code 3)."""
    answer = session.client.get("/readyz")
    if session.output.for_people:
        session.output.line(f"{session.client.url} is ready")
    else:
        session.output.document(answer)
