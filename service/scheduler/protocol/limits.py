"""Every limit of the scheduler, in one place."""

import msgspec

from service.model.log import BYTES_PER_COMMIT_MAX, CHANGES_PER_COMMIT_MAX


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds on time, memory and work; none of them changes what is decided."""

    inbox_requests_max: int = 10_000
    """Requests of one cluster that may wait; more are refused as Overloaded."""
    request_seconds_max: float = 30.0
    """How long a request is tried before it is answered Overloaded."""
    slice_seconds: float = 0.02
    """How long decisions may keep the event loop to themselves."""
    locked_slice_seconds: float = 0.05
    """How long decisions may take while the head is locked (P6)."""
    batch_changes_max: int = CHANGES_PER_COMMIT_MAX
    batch_bytes_max: int = BYTES_PER_COMMIT_MAX
    batch_requests_max: int = 1_000
    log_page_changes: int = 2_000
    load_rows: int = 2_000
    """Objects that one statement of a load reads (P13)."""
    attempts_before_lock: int = 3
    """Times that a request is decided and loses its race before the head is locked first (P6)."""
    contended_share: float = 0.5
    """Share of lost races among a loop's last from which one lost race is enough for that."""
    attempts_max: int = 100
    """Times that one request is decided before it is answered Overloaded."""
    settle_attempts_max: int = 30
    """Times that an unknown outcome is asked for before the answer is OutcomeUnknown (P4)."""
    settle_pause_seconds: float = 0.1
    poll_seconds: float = 0.25
    """How often a loop without work looks for changes of others."""
    idle_seconds_max: float = 600.0
    """A cluster that nobody asked for so long is dropped from memory."""
    apply_objects_max: int = 10_000
    """Objects in one `List` of `apply`."""
    explained_pairs_max: int = 2_000_000
    """Pods times nodes that one request may have explained in full."""
    watchers_max: int = 1_000
    """Watches in this process; more are refused as Overloaded."""
    watchers_of_one_max: int = 250
    """Of them, those of one caller who is counted."""
    clusters_max: int = 10_000
    objects_max: int = 2_000_000
    """Objects of one cluster."""
    watch_ring_changes: int = 10_000
    """Recent changes of a watched cluster kept in memory for all its watchers."""
    watch_ring_bytes: int = 16 * 1024 * 1024
    watch_page_changes: int = 250
    """Changes that a watcher takes at once, whole commits apart."""
    watch_page_readers_max: int = 4
    """Watchers behind the ring that may read the log at the same time."""
    watch_pause_seconds: float = 0.005
    """Least time between two looks at a watched log."""
    log_keep_seconds: float = 3600.0
    """Younger changes stay in the log."""
    log_keep_changes: int = 100_000
    """So many changes stay in the log, however old."""
    answers_keep_seconds: float = 86_400.0
    """How long the answer to an idempotency key is kept (P11)."""
    audit_keep_seconds: float = 90 * 86_400.0
    """How long it is kept who asked for what."""
    audit_sweep_seconds: float = 600.0
    """How often what is older is removed."""
    upkeep_seconds: float = 10.0
    """How often logs are compacted and old answers swept."""
    upkeep_lease_seconds: float = 60.0
    upkeep_pause_seconds_max: float = 600.0
    """How long the log of a cluster in which nothing changes is left alone at most."""
    home_lease_seconds: float = 10.0
    """How soon a cluster's requests are handed to another worker after one that died (P19)."""
    evictions_lease_seconds: float = 3.0
    """How soon another worker takes over the evictions of one that died."""
    pending_pods_per_turn: int = 200
    """Pending pods tried in one batch, at most."""
    pending_slice_seconds: float = 0.01
    """How long pending pods may be tried before it is other requests' turn."""
    pending_backoff_seconds: float = 1.0
    """How long a pod waits that was refused twice; doubled for each time more."""
    pending_backoff_seconds_max: float = 10.0
    pending_early_tries: int = 10
    """Pods that a change can help and that are tried in spite of their back-off: the first ones."""
    pending_retry_seconds: float = 300.0
    """What was not tried for so long is tried again, whatever has changed since."""
    pending_told_seconds: float = 60.0
    """How often the conditions of many equal pods may change (P18)."""
    pending_group_told_max: int = 50
    """Members of a group that are told at once what has changed for all of them."""
    pending_failures_max: int = 5
    """A pod refused so often for lack of room has a node kept free for it."""
    pending_lease_seconds: float = 3.0
    """How soon another worker takes over the pending pods of one that died."""
    events_seconds: float = 1.0
    """How often events that are no audit are stored: a process that dies loses so much of them."""
    events_burst: int = 5_000
    """Events of one reason and cluster that are stored, however fast they come."""
    events_per_second: float = 500.0
    """Beyond that; more are dropped, and counted."""
    events_keep_seconds: float = 3600.0
    """How long an event is kept after it last happened."""
    events_keep: int = 20_000
    """Events of one reason that a cluster keeps."""
