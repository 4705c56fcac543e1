"""`moorage annotate`: set or remove annotations of stored objects."""

from moorage.cli.changes.fields import (
    Namespace,
    Overwrite,
    Selector,
    Words,
    change_all,
    metadata_change,
    split_words,
)
from moorage.cli.session.options import DryRun, Session, connected


@connected
def annotate(
    session: Session,
    *,
    what: Words,
    overwrite: Overwrite = False,
    selector: Selector = None,
    namespace: Namespace = None,
    dry_run: DryRun = False,
) -> None:
    """Set or remove annotations of objects: `moorage annotate pod web-0 owner=ann`."""
    session = session.trying(dry_run)
    named, changes = split_words(what)
    change = metadata_change("annotations", changes, overwrite=overwrite)
    change_all(session, named, selector, namespace, change, "annotated")
