"""All limits of the scheduler."""

import msgspec

from service.model.log.commit import BYTES_PER_COMMIT_MAX, CHANGES_PER_COMMIT_MAX


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on time, memory, and work; none of them changes what is decided."""

    pending_answers_seconds: float = 1.0
    """How long the attempts of pending pods wait for expressions; after that the other pods are
    tried alone."""
    inbox_requests_max: int = 10_000
    """How many requests of one cluster may wait; further ones are refused as Overloaded."""
    request_seconds_max: float = 30.0
    """How long a request may wait, be decided, and be retried before it fails as Overloaded."""
    dry_run_seconds: float = 0.5
    """How long a dry run may be decided among placements before it moves to a second replica."""
    slice_seconds: float = 0.02
    """How long decisions may run before other tasks of the event loop get their turn."""
    locked_slice_seconds: float = 0.05
    """How long decisions may take while the head is locked (P6)."""
    locked_seconds_max: float = 0.75
    """How long a single decision under the lock may take; the database ends transactions idle for a
    second."""
    batch_changes_max: int = CHANGES_PER_COMMIT_MAX
    batch_bytes_max: int = BYTES_PER_COMMIT_MAX
    batch_requests_max: int = 1_000
    log_page_changes: int = 2_000
    load_rows: int = 2_000
    """How many objects each SQL statement of a load reads (P13)."""
    attempts_before_lock: int = 3
    """How many races a request may lose before it is decided with the head locked (protocol rule
    P6)."""
    contended_share: float = 0.5
    """The share of recently lost races at which a single loss is enough for taking the lock."""
    attempts_max: int = 100
    """How many times a request is decided before it fails as Overloaded."""
    settle_attempts_max: int = 30
    """How many times an unknown outcome is queried before the answer is OutcomeUnknown (protocol
    rule P4)."""
    settle_pause_seconds: float = 0.1
    poll_seconds: float = 0.25
    """How often an idle loop polls for changes by other processes."""
    unreadable_seconds: float = 5.0
    """How soon a cluster with an unreadable object is reloaded; until then, its requests are
    refused."""
    idle_seconds_max: float = 600.0
    """How long a cluster without requests stays in memory."""
    apply_objects_max: int = 10_000
    """The maximum number of objects in one `List` of `apply`."""
    explained_pairs_max: int = 2_000_000
    """The maximum number of pod-node pairs that one request may have explained in full."""
    list_wait_seconds: float = 0.25
    """How long a filtered list waits for the replica before it reads the tables."""
    plan_changes_max: int = 100
    """The maximum number of changes in one plan."""
    plan_nodes_max: int = 10_000
    """The maximum number of nodes that one plan may add."""
    plan_pods_max: int = 100_000
    """The maximum number of pods that one plan may place, including displaced ones."""
    plan_steps_shown_max: int = 100_000
    """The maximum number of steps in an answer."""
    plan_committed_max: int = 1_000
    """The maximum number of pods in a plan that is carried out in one commit."""
    plan_seconds_max: float = 30.0
    """How long one plan may take; pods not placed by then are reported as not tried."""
    plan_slice_seconds: float = 0.003
    """How long planning may run on a fork before other tasks of the event loop get their turn."""
    plan_patience_seconds: float = 0.01
    """How long, at most, planning waits after each slice for other requests of its cluster."""
    plan_explained_pairs_max: int = 500_000
    """The maximum number of pod-node pairs that a plan explains in full."""
    plans_waiting_max: int = 20
    """How many plans of a cluster may run or wait in this process; further ones are refused as
    Overloaded."""
    plan_evictions_max: int = 50
    """The maximum number of evictions in one step of a stored plan, which is one commit."""
    plan_look_seconds: float = 1.0
    """How soon another step follows one without evictions, if the state has changed."""
    plan_moves_max: int = 10
    """The maximum number of moves of a stored plan in progress at once."""
    plan_reservation_seconds: float = 300.0
    """How long room is reserved for the replacement of a pod evicted for a move."""
    group_reservation_seconds: float = 30.0
    """How long nodes are reserved for a split group whose request was interrupted."""
    plan_kept_seconds: float = 3600.0
    """How long a finished plan is stored."""
    repair_seconds_max: float = 1.0
    """How long the search for the repairs of one pod may take."""
    repair_trials_max: int = 1_000
    """The maximum number of trials in one search for repairs."""
    repair_removals_max: int = 8
    """The number of different sets of changes after which a search for repairs also tries
    evictions."""
    repair_nodes_max: int = 4
    """The number of nodes on which a search for repairs looks for pods to evict."""
    plan_small_pods_max: int = 16
    """Plans for at most this many pods, without other changes, are decided among placements."""
    past_changes_max: int = 100_000
    """How many log changes are read to reconstruct an earlier revision."""
    past_states_max: int = 20_000
    """How many objects may be restored to their earlier state for an explanation of an earlier
    revision."""
    plan_forks_max: int = 4
    """How many clusters may have planning replicas in this process; the least recently used is
    dropped."""
    plan_fork_idle_seconds: float = 300.0
    """How long an unused planning replica stays in memory."""
    plan_fork_behind_max: int = 100_000
    """How many changes an unused planning replica may lag behind before it is dropped."""
    field_managers_max: int = 50
    """The maximum number of field managers of one object."""
    managed_fields_max: int = 20_000
    """The maximum number of fields owned by all managers of one object together."""
    watchers_max: int = 1_000
    """How many watches this process may have; further ones are refused as Overloaded."""
    watchers_of_one_max: int = 250
    """How many watches a single known caller may have."""
    clusters_max: int = 10_000
    objects_max: int = 2_000_000
    """The maximum number of objects in one cluster."""
    watch_ring_changes: int = 10_000
    """How many recent changes of a watched cluster are held in memory for all its watches."""
    watch_ring_bytes: int = 16 * 1024 * 1024
    watch_page_changes: int = 250
    """About how many changes a watch reads at once; commits are never divided."""
    watch_page_bytes: int = 256 * 1024
    """About how many bytes of objects a watch reads at once, unless a single commit has more."""
    watch_page_readers_max: int = 4
    """How many watches behind the ring may read the log at the same time."""
    watch_pause_seconds: float = 0.005
    """The minimum pause between two reads of a watched log."""
    log_keep_seconds: float = 3600.0
    """The minimum age of changes to be compacted."""
    log_keep_changes: int = 100_000
    """How many of the latest changes are never compacted."""
    answers_keep_seconds: float = 86_400.0
    """How long the answer to an idempotency key is stored (protocol rule P11)."""
    audit_keep_seconds: float = 90 * 86_400.0
    """How long audit rows are stored."""
    audit_sweep_seconds: float = 600.0
    """How often expired audit rows are deleted."""
    upkeep_seconds: float = 10.0
    """How often logs are compacted and old answers deleted."""
    upkeep_lease_seconds: float = 60.0
    upkeep_pause_seconds_max: float = 600.0
    """The longest time between two upkeeps of an unchanged cluster."""
    owner_lease_seconds: float = 10.0
    """How soon another worker takes over a cluster whose owner died (protocol rule P19)."""
    evictions_lease_seconds: float = 3.0
    """How soon another worker takes over the evictions of one that died."""
    node_look_seconds: float = 5.0
    """How often to check for nodes that have stopped reporting."""
    pending_attempts_max: int = 200
    """The maximum number of pending pods that one request tries."""
    extended_pods_max: int = 50
    """The maximum number of pods in one request that need extenders."""
    extended_retries_max: int = 3
    """How often extenders are queried again about a pod whose node was taken."""
    extended_retry_seconds: float = 10.0
    """How soon a pending pod refused by extenders is retried, even without changes."""
    pending_slice_seconds: float = 0.01
    """How long one request may try pending pods before other requests are decided."""
    pending_backoff_seconds: float = 1.0
    """The back-off of a pod that was refused twice; it doubles with each further refusal."""
    pending_backoff_seconds_max: float = 10.0
    pending_early_tries: int = 10
    """How many of the first pods that a change can help are tried despite their back-off."""
    pending_retry_seconds: float = 300.0
    """How long after its last attempt a pod is retried, even if no change seems to help."""
    pending_told_seconds: float = 60.0
    """The minimum interval between changes of the conditions of many equal pods (protocol rule
    P18)."""
    pending_group_told_max: int = 50
    """The largest group whose members all have their conditions updated at once."""
    pending_failures_max: int = 5
    """After how many refusals for lack of resources a node is kept free for a pod."""
    pending_lease_seconds: float = 3.0
    """How soon another worker takes over the pending pods of one that died."""
    events_seconds: float = 1.0
    """How often events that the audit log does not need are stored; the latest are lost if a process
    dies."""
    events_burst: int = 5_000
    """How many events per reason and cluster are stored, however fast they arrive."""
    events_per_second: float = 500.0
    """How many events per second are stored beyond the burst; excess events are dropped and
    counted."""
    events_keep_seconds: float = 3600.0
    """How long an event is stored after its last occurrence."""
    events_keep: int = 20_000
    """How many events per reason a cluster stores."""
