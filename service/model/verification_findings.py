"""Findings of `moorage verify` in a database."""

from enum import StrEnum

import msgspec


class Check(StrEnum):
    """A check, by its name on the command line."""

    LOG = "log"
    """The commits are one chain without gaps, which ends at the head."""
    OBJECTS = "objects"
    """The objects are what the log adds up to, as far back as it reaches."""
    COPIES = "copies"
    """What is stored twice is the same in both places."""
    CAPACITY = "capacity"
    """The pods of each node fit into it, host ports included."""
    RULES = "rules"
    """No placed pod breaks a required rule."""
    QUOTAS = "quotas"
    """No quota is exceeded."""
    BINDINGS = "bindings"
    """Claims and volumes name each other, and no device is given twice."""
    ACCESS = "access"
    """Principals and the audit are as they were written."""


ROWS = frozenset({Check.LOG, Check.OBJECTS})
"""The checks of a cluster's rows as such."""
STATE = frozenset({Check.COPIES, Check.CAPACITY, Check.RULES, Check.QUOTAS, Check.BINDINGS})
"""The checks of a cluster for which its objects are loaded."""

FINDINGS_MAX = 100
"""The most findings of one check in one cluster that are reported."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One inconsistency."""

    check: Check
    subject: str
    """What it is about, such as `Pod shop/web-1` or `revision 17`."""
    message: str
    """A sentence for people."""
