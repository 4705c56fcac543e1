"""Findings of `moorage verify` about a database."""

from enum import StrEnum

import msgspec


class Check(StrEnum):
    """A check, with its name on the command line as the value."""

    LOG = "log"
    """The commits form one chain without gaps that ends at the head."""
    OBJECTS = "objects"
    """The stored objects equal the result of replaying the log, as far back as it reaches."""
    COPIES = "copies"
    """Data that is stored twice is equal in both places."""
    CAPACITY = "capacity"
    """The pods on each node fit its capacity, including host ports."""
    RULES = "rules"
    """No placed pod breaks a required rule."""
    QUOTAS = "quotas"
    """No quota is exceeded."""
    BINDINGS = "bindings"
    """Claims and volumes reference each other consistently, and no device is allocated twice."""
    ACCESS = "access"
    """Principals and audit rows have not been altered since they were written."""


ROWS = frozenset({Check.LOG, Check.OBJECTS})
"""The checks that read only a cluster's rows."""
STATE = frozenset({Check.COPIES, Check.CAPACITY, Check.RULES, Check.QUOTAS, Check.BINDINGS})
"""The checks that require loading a cluster's objects."""

FINDINGS_MAX = 100
"""The most findings reported per check and cluster."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One inconsistency."""

    check: Check
    subject: str
    """The subject of the finding, such as `Pod shop/web-1` or `revision 17`."""
    message: str
    """A sentence for people."""
