"""`moorage label`: set or remove labels of stored objects."""

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
def label(
    session: Session,
    *,
    what: Words,
    overwrite: Overwrite = False,
    selector: Selector = None,
    namespace: Namespace = None,
    dry_run: DryRun = False,
) -> None:
    """Set or remove labels of objects: `moorage label node n1 disk=ssd tier-`."""
    session = session.trying(dry_run)
    named, changes = split_words(what)
    change = metadata_change("labels", changes, overwrite=overwrite)
    change_all(session, named, selector, namespace, change, "labeled")
