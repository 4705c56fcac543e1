"""Defines every setting of a server process, with its default and its `MOORAGE_*` variable.

Settings of a single cluster are in that cluster's configuration instead (`service.model.cluster.cluster_config`).
"""

import os
from collections.abc import Mapping, Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from service.model.core.messages import reword

PREFIX = "MOORAGE_"
SECRETS = ("token", "database_url", "migration_url", "peer_secret")
"""Settings that can be in a file, which a variable such as `MOORAGE_TOKEN_FILE` then names."""
FILE_SUFFIX = "_file"

TOKEN_CHARACTERS_MIN = 32
"""A token needs so many characters that nobody guesses it; `openssl rand -hex 16` makes one."""

Count = Annotated[int, msgspec.Meta(ge=1)]
Bytes = Annotated[int, msgspec.Meta(ge=1024)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]
HostNames = Annotated[
    str, msgspec.Meta(pattern=r"^(?:(?:^|,) *(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]) *)*$")
]
"""Names or addresses as they stand in a URL, without ports, separated by commas."""
ExtenderHosts = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(?:(?:^|,) *(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})? *)*$"
    ),
]
"""Names or addresses as they stand in a URL, with or without ports, separated by commas."""
TokenTypes = Annotated[
    str, msgspec.Meta(pattern=r"^ *[A-Za-z0-9.+/_-]+ *(?:, *[A-Za-z0-9.+/_-]+ *)*$")
]
"""Media types, separated by commas; `application/` is left out."""

PeerAddress = Annotated[
    str, msgspec.Meta(pattern=r"^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}$")
]
"""A name or an address as it stands in a URL, with a port."""

LogLevel = Literal["debug", "info", "warning", "error"]
LogLevels = Annotated[
    str,
    msgspec.Meta(pattern=r"^(?:(?:^|,) *[A-Za-z_][A-Za-z0-9_.]*=(?:debug|info|warning|error) *)*$"),
]
"""Names of loggers with a level each, such as `service.store=debug`, separated by commas."""

IPAddress = IPv4Address | IPv6Address
IPNetwork = IPv4Network | IPv6Network

_PORT_MAX = 65535
_KIB = 1024
_MIB = 1024 * _KIB


LimitScope = Literal["database", "cluster", "process", "principal", "object", "request"]
"""What a limit is for: all clusters of a database, each cluster, each worker process, and so on."""
LIMITS: Mapping[str, LimitScope] = {
    "clusters_max": "database",
    "objects_max": "cluster",
    "webhooks_max": "cluster",
    "past_changes_max": "cluster",
    "plans_waiting_max": "cluster",
    "watchers_max": "process",
    "bytes_in_flight_max": "process",
    "connections_max": "process",
    "past_reads_max": "process",
    "webhook_deliveries_max": "process",
    "principal_watchers_max": "principal",
    "requests_per_second": "principal",
    "writes_per_second": "principal",
    "pod_terms_max": "object",
    "pod_expressions_max": "object",
    "pod_values_max": "object",
    "pod_topology_keys_max": "object",
    "pod_constraints_max": "object",
    "pod_resources_max": "object",
    "pod_ports_max": "object",
    "field_managers_max": "object",
    "managed_fields_max": "object",
    "body_bytes_max": "request",
    "placements_bytes_max": "request",
    "simulations_bytes_max": "request",
    "apply_bytes_max": "request",
    "apply_line_bytes_max": "request",
    "apply_yaml_bytes_max": "request",
    "apply_objects_max": "request",
    "request_items_max": "request",
    "url_bytes_max": "request",
    "header_bytes_max": "request",
    "fields_max": "request",
    "explained_pairs_max": "request",
    "extender_pods_max": "request",
    "extender_answer_bytes_max": "request",
    "past_states_max": "request",
    "plan_changes_max": "request",
    "plan_nodes_max": "request",
    "plan_pods_max": "request",
    "plan_seconds_max": "request",
    "repair_seconds_max": "request",
    "repair_trials_max": "request",
    "webhook_records_max": "request",
    "webhook_bytes_max": "request",
}
"""The limits that a client can reach, by their settings, and what each of them is for."""


class InvalidSettings(ValueError):  # noqa: N818 - a sentence for people, printed as it is
    """The environment names a setting that does not exist, or gives one a bad value."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of one server; `host` is read from `MOORAGE_HOST`, and so on."""

    host: str = "127.0.0.1"
    """The address to listen on; any but loopback needs TLS and a token."""
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8080
    """The port to listen on; 0 means any free one, which the log tells."""
    health_port: Annotated[int, msgspec.Meta(ge=1, le=65535)] | None = None
    """A second port for `/livez`, `/readyz` and `/metrics`, which answers whatever happens at
    `port`."""
    health_host: str = "127.0.0.1"
    """The address of the health port, which never asks for a token."""
    health_socket: str | None = None
    """The socket to which workers report their health; `moorage serve` sets it."""
    workers: Count = 1
    """How many worker processes serve requests."""
    data_dir: str = ".moorage"
    """Where the embedded PostgreSQL keeps its data; not used with a `database_url`."""
    database_url: str | None = None
    """The database as `postgresql://…`; without it `moorage serve` starts the embedded
    PostgreSQL."""
    migration_url: str | None = None
    """The URL by which migrations reach the database, if the role of `database_url` may not run
    them."""
    token: Annotated[str, msgspec.Meta(min_length=TOKEN_CHARACTERS_MIN)] | None = None
    """The admin's bearer token; if it is set, every request below `/v1` needs a token."""
    tls_certificate: str | None = None
    """PEM file of the certificate and its chain; with `tls_key` the server speaks only HTTPS."""
    tls_key: str | None = None
    """PEM file of the certificate's key."""
    tls_terminated: bool = False
    """Whether a proxy in front speaks HTTPS.

    A server that other machines can reach needs no certificate then.
    """
    oidc_issuer: str | None = None
    """The URL (`iss`) of an identity provider whose tokens are accepted, too."""
    oidc_audience: str | None = None
    """The `aud` that the provider's tokens must have; it is needed with an issuer."""
    oidc_keys_url: str | None = None
    """The URL of the provider's keys (JWKS); if absent, its discovery document names it."""
    oidc_name_claim: str = "sub"
    """The claim of the provider's tokens that names the principal."""
    oidc_name_prefix: Annotated[str, msgspec.Meta(min_length=1)] = "oidc:"
    """The prefix of names from the provider, so that no such name is that of a principal of this
    server."""
    oidc_groups_claim: str = "groups"
    """The claim that names the groups of the principal."""
    oidc_token_types: TokenTypes = "at+jwt"  # noqa: S105 - no secret
    """The types (`typ`) that the provider's tokens may have, separated by commas.

    `none` allows tokens without a type. If access tokens have a type of their own (RFC 9068), no
    other token of the provider is taken for one.
    """
    oidc_scope: str = ""
    """The scopes that `scope` (or `scp`) of the provider's tokens must have, separated by
    spaces."""
    extender_hosts: ExtenderHosts = ""
    """The hosts, each with or without a port, at which extenders of profiles may be asked; none:
    nowhere."""
    extender_certificate: str | None = None
    """PEM file of the certificate that this server shows to extenders which ask for one; with
    `extender_key`."""
    extender_key: str | None = None
    """PEM file of its key."""
    extender_answer_bytes_max: Bytes = 16 * _MIB
    """The largest answer of an extender."""
    extender_failures_max: Count = 5
    """After how many failures in a row an extender is left alone for a while."""
    extender_pause_seconds: Seconds = 10
    """How long it is left alone, before one call is tried."""
    extender_pods_max: Count = 50
    """For how many pods of one placement request extenders are asked at most."""
    allowed_hosts: HostNames = ""
    """Host names besides those of loopback by which a server without a token may be called."""
    trusted_proxies: str = ""
    """The proxies in front that are trusted to say where requests come from (`X-Forwarded-For`).

    They are addresses or networks, separated by commas.
    """
    forwarding: bool = True
    """Whether the workers of a server forward a cluster's requests to the one that decides them."""
    forwarding_dir: str | None = None
    """The folder in which these workers find each other; `moorage serve` sets it."""
    suspects_dir: str | None = None
    """Folder for the record of pods that may have killed a worker, kept across restarts.

    Default: `suspects` in the data folder; with a `database_url`, a temporary folder that is lost at
    shutdown."""
    server_id: str | None = None
    """What other servers know this one by, anew at every start; `moorage serve` sets it."""
    peer_address: PeerAddress | None = None
    """The host and port by which other servers reach this one, to forward a cluster's requests to it.

    Its first worker listens at this port, each further one at the next; one more may be used while
    workers are replaced. Without it, requests are forwarded within the server only.
    """
    peer_host: str | None = None
    """The address to listen on for other servers, if it is not the one that they use."""
    peer_secret: Annotated[str, msgspec.Meta(min_length=TOKEN_CHARACTERS_MIN)] | None = None
    """What servers prove to each other that they are servers by; the same for all of a database."""
    peer_certificate: str | None = None
    """PEM file of the certificate that this server shows to other servers; with `peer_key` and
    `peer_authorities` they speak TLS, and each side asks for the other's certificate."""
    peer_key: str | None = None
    """PEM file of its key."""
    peer_authorities: str | None = None
    """PEM file of the authorities that sign the certificates of servers."""
    peer_plain: bool = False
    """Whether servers may speak to each other without TLS, as in a network that encrypts by itself."""
    failed_authentications_burst: Count = 10
    """How many wrong tokens of one address each worker answers without a pause."""
    failed_authentication_seconds: Count = 1
    """The seconds after which one more wrong token of that address is answered."""
    requests_per_second: Annotated[int, msgspec.Meta(ge=0)] = 0
    """How many requests one principal may send to each worker in a second; 0 means any number."""
    writes_per_second: Annotated[int, msgspec.Meta(ge=0)] = 0
    """How many of these requests may be other than reads; 0 means any number."""
    audit: Literal["auto", "on", "off"] = "auto"
    """Whether the audit is kept; `auto` keeps it if callers are known by tokens."""
    audit_keep_seconds: Seconds = 90 * 24 * 3600
    """How long rows of the audit are kept."""
    debug: bool = False
    """Whether `/debug/replicas` is served."""

    log_format: Literal["text", "json"] = "text"
    """How the log on standard error is written: for people, or a JSON object for each line."""
    log_level: LogLevel = "info"
    """The least level of what Moorage logs; libraries log from `warning` on."""
    log_levels: LogLevels = ""
    """The levels of single loggers and those below them, such as `service.store=debug`.

    They are separated by commas.
    """
    access_log: bool = False
    """Whether each request is logged when it is answered."""

    tracing: Literal["off", "otlp"] = "off"
    """Whether spans of requests, decisions and commits are sent by OpenTelemetry's protocol.

    It needs the extra `moorage-server[otel]`, and `OTEL_EXPORTER_OTLP_ENDPOINT` and the other standard
    variables say where they are sent.
    """

    body_bytes_max: Bytes = 1 * _MIB
    """The largest body of a request for which there is no other limit."""
    placements_bytes_max: Bytes = 16 * _MIB
    """The largest body of a request that places pods."""
    simulations_bytes_max: Bytes = 64 * _MIB
    """The largest body of a simulation, which has a whole cluster in it."""
    apply_bytes_max: Bytes = 64 * _MIB
    """The largest `List` that `apply` takes; NDJSON may be of any length."""
    apply_line_bytes_max: Bytes = 1 * _MIB
    """The longest line of NDJSON that `apply` takes."""
    apply_objects_max: Count = 10_000
    """How many objects one `List` of `apply` may have, since it is one commit."""
    watchers_max: Count = 1_000
    """How many watches one process serves at once."""
    principal_watchers_max: Count = 250
    """How many of these watches one principal may have, unless it is an admin."""
    clusters_max: Count = 10_000
    """How many clusters a database may have; beyond that none is created."""
    objects_max: Count = 2_000_000
    """How many objects a cluster may have; beyond that requests that add more are refused."""
    pod_terms_max: Count = 100
    """Maximum affinity terms in one pod: all pod (anti-)affinity terms, and preferred node affinity terms."""
    pod_expressions_max: Count = 2_500
    """Maximum requirements in one pod, over all its selectors."""
    pod_values_max: Count = 10_000
    """Maximum values in one pod, over all its selectors."""
    pod_topology_keys_max: Count = 64
    """Maximum different node labels in the rules of one pod, as topology keys or in selectors."""
    pod_constraints_max: Count = 32
    """Maximum topology spread constraints in one pod."""
    pod_resources_max: Count = 64
    """Maximum different resources that one pod may request."""
    pod_ports_max: Count = 1_000
    """Maximum host ports that one pod may request."""
    request_items_max: Count = 10_000
    """How many items any other list in a request may have, and how many replicas it may ask for."""
    fields_max: Count = 50
    """How many fields a read may choose."""
    field_managers_max: Count = 50
    """How many managers of its fields one object may have."""
    managed_fields_max: Count = 20_000
    """How many fields the managers of one object may have together."""
    explained_pairs_max: Count = 2_000_000
    """How many pairs of a pod and a node full explanations of one request may have."""
    plan_changes_max: Count = 100
    """How many changes one plan may make to its fork of a cluster."""
    plan_nodes_max: Count = 10_000
    """How many nodes one change of a plan may add."""
    plan_pods_max: Count = 100_000
    """How many pods one plan may place, displaced ones included."""
    plan_seconds_max: Seconds = 30
    """How long one plan may take; pods that are not tried by then are told as such."""
    plan_look_seconds: Seconds = 1
    """How long after a step that evicted nobody the next one of plans that are kept comes, if something
    has changed meanwhile."""
    plan_moves_max: Count = 10
    """How many moves of one plan that is kept are under way at once."""
    plan_reservation_seconds: Seconds = 300
    """How long a plan that is kept has room kept for what comes in place of a pod that it moves."""
    group_reservation_seconds: Seconds = 30
    """How long nodes are reserved for the pods of a group in several clusters whose request was
    interrupted; requests should end sooner."""
    repair_seconds_max: Seconds = 1
    """How long the search for the repairs of one pod may take; what it has found by then is told."""
    repair_trials_max: Count = 1_000
    """How many changes one search for repairs tries out."""
    plans_waiting_max: Count = 20
    """How many plans of one cluster a process makes or keeps waiting; more are refused."""
    bytes_in_flight_max: Bytes = 256 * _MIB
    """Maximum bytes of received bodies, unsent answers, and watch pages that one process holds.

    Watches share a quarter of this, and the watches of one caller get a quarter of that share. A single
    commit may exceed a caller's part; together such excess is at most another quarter, unless it is one
    commit alone."""
    compressed_bytes_min: Bytes = 4 * _KIB
    """Shorter answers are sent as they are, also to clients that take compressed ones."""
    apply_lines_per_commit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1000
    """How many lines of NDJSON `apply` puts into one commit at most."""
    apply_yaml_bytes_max: Bytes = 256 * _KIB
    """The longest YAML of a server-side apply; JSON is bounded like other bodies."""
    url_bytes_max: Bytes = 8 * _KIB
    """The longest path and query of a request."""
    header_bytes_max: Bytes = 32 * _KIB
    """The most bytes that the headers of a request may have together."""
    header_timeout_seconds: Annotated[float, msgspec.Meta(ge=0.001)] = 10
    """How long a client may take to send the head of a request."""
    body_timeout_seconds: Seconds = 10
    """How long a client may keep the server waiting for the next piece of a body."""
    body_bytes_per_second_min: Count = 16 * _KIB
    """The least average rate of a body after its first `body_timeout_seconds`; a slower one is
    refused."""
    answer_timeout_seconds: Seconds = 10
    """How long a client may take to read 64 KiB of an answer, or the rest if that is shorter."""
    connections_max: Count | None = None
    """How many connections a worker keeps; beyond that the idlest are closed.

    By default these are 20,000, but no more than 80 % of the process's limit of open files.
    """
    connections_per_address_max: Count | None = None
    """How many of these may come from one client address; by default a quarter of all.

    An IPv6 network of 64 bits counts as one address.
    """
    statement_timeout_seconds: Annotated[float, msgspec.Meta(ge=0.001)] = 30
    """How long a statement may take until its request is answered 503; migrations have no limit."""
    request_timeout_seconds: Seconds = 30
    """Time limit for a request, including waiting and retries; beyond it, the answer is 503."""
    revision_wait_seconds: Seconds = 5
    """How long a read waits for the revision that `minRevision` names."""
    watch_bookmark_seconds: Seconds = 5
    """How often a watch is told its present revision."""
    log_keep_seconds: Seconds = 3600
    """Changes younger than this stay in the log; a watch that was interrupted for longer must list
    again."""
    log_keep_changes: Annotated[int, msgspec.Meta(ge=0)] = 100_000
    """How many changes of a cluster stay in the log, however old they are."""
    past_changes_max: Count = 100_000
    """How many changes of a cluster's log a read of an earlier revision looks at: none that is
    further behind the head can be read."""
    past_states_max: Count = 20_000
    """How many objects may have changed since the revision that an explanation is asked for."""
    past_reads_max: Count = 2
    """How many such reads of one process look at logs at once; ten times as many may wait."""
    idempotency_keep_seconds: Seconds = 24 * 3600
    """How long the answer to an idempotency key is given again."""
    upkeep_seconds: Seconds = 10
    """How often logs are compacted and old answers removed."""
    webhook_http: bool = False
    """Whether webhooks may have URLs without TLS, which begin with `http://`."""
    webhook_networks: str = ""
    """The networks besides public ones to which webhooks may send, separated by commas, such as
    `10.0.0.0/8`; other private addresses, and those of this machine, are refused."""
    webhook_timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=300)] = 10
    """How long a receiver may take to answer a message."""
    webhook_margin_seconds: Annotated[float, msgspec.Meta(ge=1, le=200)] = 30
    """How much longer a process keeps a webhook to itself than a message may take; if the process
    is killed, other processes deliver no sooner."""
    webhook_interval_seconds: Annotated[float, msgspec.Meta(ge=0, le=60)] = 0.1
    """How long a webhook that has been told everything is left alone, so that its next message holds
    more than one record; each message costs the database three small commits."""
    webhook_records_max: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 500
    """How many records one message has at most."""
    webhook_bytes_max: Bytes = 1 * _MIB
    """How many bytes these records may have, unless a single one has more."""
    webhook_failures_max: Count = 150
    """After so many failures one after the other, nothing more is sent to a webhook until it is
    changed; with the longest pauses these take about a day."""
    webhook_pause_seconds_max: Seconds = 900
    """The longest pause after a failure; pauses double until then."""
    webhook_secret_seconds: Annotated[float, msgspec.Meta(ge=0, le=30 * 24 * 3600)] = 24 * 3600
    """How long messages are signed with a webhook's earlier secret as well, after it got another."""
    webhook_poll_seconds: Seconds = 1
    """How often each process looks for webhooks that are behind."""
    webhook_deliveries_max: Count = 8
    """To how many webhooks each process sends at once."""
    webhooks_max: Count = 20
    """How many webhooks a cluster may have."""
    recount_seconds: Annotated[float, msgspec.Meta(ge=0)] = 30
    """How often a worker begins to recount what its replicas keep, while nobody asks for anything;
    0: never. Replicas that have not changed are left out."""
    recount_percent: Annotated[float, msgspec.Meta(gt=0, le=100)] = 10
    """The share of one processor that a worker takes for that at most."""
    ready_lag_seconds_max: Seconds = 10
    """A process is not ready if one of its replicas has been behind its log for longer than
    this."""
    metrics_dir: str | None = None
    """The folder in which the workers of one server share their metrics; `moorage serve` sets
    it."""
    template_cache_bytes: Bytes = 64 * _MIB
    """The size of the cache of decoded pod templates, counted in bytes of their JSON."""
    engine: Literal["compiled", "interpreted"] = "compiled"
    """Whether the engine runs compiled if it can; this is read when its modules are imported."""

    @property
    def audits(self) -> bool:
        """Whether the audit log is kept from the start."""
        return self.audit == "on" or (self.audit == "auto" and bool(self.token or self.oidc_issuer))


class Limit(msgspec.Struct, frozen=True):
    """A limit that is published as a metric."""

    setting: str
    """The name of the setting, without the prefix; it ends with the unit if that is not a number."""
    scope: LimitScope
    """What the limit is for each of."""
    value: float
    """In bytes or seconds if the name says so."""


def limits_of(settings: Settings) -> list[Limit]:
    """Return the limits that are set; settings without a limit are omitted."""
    given = ((name, scope, getattr(settings, name)) for name, scope in LIMITS.items())
    return [Limit(name, scope, float(value)) for name, scope, value in given if value]


def named_levels(settings: Settings) -> dict[str, str]:
    """Return the log levels set by `log_levels`, by logger name."""
    pairs = (part.partition("=") for part in settings.log_levels.split(",") if part.strip())
    return {name.strip(): level.strip() for name, _, level in pairs}


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server that listens on this address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read the settings from the `MOORAGE_*` variables of an environment.

    A secret may also be in a file, which is read only once, here.

    Raises:
        InvalidSettings: a variable is misspelled, has a bad value, or names an unreadable file.
    """
    given = {
        name.removeprefix(PREFIX).lower(): value
        for name, value in environment.items()
        if name.startswith(PREFIX)
    }
    from_files = _secrets_in_files(given)
    _refuse_unknown(given)
    try:
        settings = msgspec.convert(given, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidSettings(_in_words_of_the_environment(str(error), from_files)) from None
    _refuse_unsafe_identity_provider(settings)
    _refuse_unsafe_peers(settings)
    proxy_networks(settings)
    webhook_networks(settings)
    return settings


def proxy_networks(settings: Settings) -> tuple[IPNetwork, ...]:
    """Return the networks of the trusted proxies.

    Raises:
        InvalidSettings: one of them is not a network, or includes all addresses.
    """
    named = [text.strip() for text in settings.trusted_proxies.split(",")]
    return tuple(_proxy_network(text) for text in named if text)


def webhook_networks(settings: Settings) -> tuple[IPNetwork, ...]:
    """Return the networks to which webhooks may send, in addition to public ones.

    Raises:
        InvalidSettings: one of them is not a network.
    """
    named = [text.strip() for text in settings.webhook_networks.split(",")]
    try:
        return tuple(ip_network(text) for text in named if text)
    except ValueError as error:
        raise InvalidSettings(f"{PREFIX}WEBHOOK_NETWORKS: {error}.") from None


def _proxy_network(text: str) -> IPNetwork:
    try:
        network = ip_network(text)
    except ValueError:
        network = None
    if network is None or not network.prefixlen:
        raise InvalidSettings(
            f"{PREFIX}TRUSTED_PROXIES: {text!r} is neither the address of a proxy nor a network of some, such as 192.0.2.0/24."
        )
    return network


def _refuse_unsafe_identity_provider(settings: Settings) -> None:
    """Refuse a provider without an audience, or whose keys would come over plain HTTP.

    Without an audience, tokens for other services would be accepted; over plain HTTP, an attacker
    on the network could replace the keys.
    """
    if settings.oidc_issuer is None:
        return
    if not settings.oidc_audience:
        raise InvalidSettings(
            "MOORAGE_OIDC_ISSUER needs MOORAGE_OIDC_AUDIENCE, the `aud` of its tokens."
        )
    urls = {"OIDC_ISSUER": settings.oidc_issuer, "OIDC_KEYS_URL": settings.oidc_keys_url}
    for name, url in urls.items():
        if url is not None and not url.startswith("https://"):
            raise InvalidSettings(f"{PREFIX}{name}: has to begin with https://.")


def _refuse_unsafe_peers(settings: Settings) -> None:
    """Refuse peers without a secret, or with requests that could be read in transit."""
    tls = (settings.peer_certificate, settings.peer_key, settings.peer_authorities)
    if any(tls) and not all(tls):
        raise InvalidSettings(
            "MOORAGE_PEER_CERTIFICATE, MOORAGE_PEER_KEY and MOORAGE_PEER_AUTHORITIES have to be given together."
        )
    if settings.peer_address is None:
        return
    if settings.peer_secret is None:
        raise InvalidSettings("MOORAGE_PEER_ADDRESS needs MOORAGE_PEER_SECRET.")
    host, _, port = settings.peer_address.rpartition(":")
    if not 0 < int(port) <= _PORT_MAX - settings.workers:
        raise InvalidSettings(
            f"MOORAGE_PEER_ADDRESS: {port} and the ports after it, one for each worker and one more, are no ports."
        )
    if not (all(tls) or settings.peer_plain or is_loopback(host.strip("[]"))):
        raise InvalidSettings(
            f"MOORAGE_PEER_ADDRESS: {host} can be reached from other machines, and requests would be sent in clear: give "
            "MOORAGE_PEER_CERTIFICATE, MOORAGE_PEER_KEY and MOORAGE_PEER_AUTHORITIES, or set MOORAGE_PEER_PLAIN=true where "
            "the network itself encrypts."
        )


def settings_of_this_process() -> Settings:
    """Return the settings in this process's environment, which only this function reads."""
    return read_settings(os.environ)  # noqa: TID251


def read_secret(name: str, environment: Mapping[str, str]) -> str | None:
    """Read the secret in the file named by `MOORAGE_<NAME>_FILE`, or return None if unset.

    A line end at the end of the file is removed.

    Raises:
        InvalidSettings: the file cannot be read, or `MOORAGE_<NAME>` is set as well.
    """
    plain = PREFIX + name.upper()
    variable = plain + FILE_SUFFIX.upper()
    path = environment.get(variable)
    if path is None:
        return None
    if plain in environment:
        raise InvalidSettings(f"Set either {plain} or {variable}, not both.")
    try:
        return Path(path).read_text("utf-8").rstrip("\r\n")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidSettings(f"{variable}: {path} cannot be read: {reason}.") from None


def _secrets_in_files(given: dict[str, str]) -> list[str]:
    """Replace file names with the secrets in the files; return the names of these settings."""
    environment = {PREFIX + name.upper(): value for name, value in given.items()}
    secrets = {name: read_secret(name, environment) for name in SECRETS}
    for name, secret in secrets.items():
        if secret is not None:
            del given[name + FILE_SUFFIX]
            given[name] = secret
    return [name for name, secret in secrets.items() if secret is not None]


def _refuse_unknown(given: Mapping[str, str]) -> None:
    unknown = sorted(given.keys() - set(Settings.__struct_fields__))
    if unknown:
        names = ", ".join(PREFIX + name.upper() for name in unknown)
        names_known = [*Settings.__struct_fields__, *(name + FILE_SUFFIX for name in SECRETS)]
        known = ", ".join(PREFIX + name.upper() for name in sorted(names_known))
        raise InvalidSettings(f"No such setting: {names}. Known settings: {known}.")


def _in_words_of_the_environment(message: str, from_files: Sequence[str]) -> str:
    """Replace the field name in an error message of msgspec with the variable's name."""
    wrong = reword(message)
    if not wrong.field:
        return message
    suffix = FILE_SUFFIX.upper() if wrong.field in from_files else ""
    has_minimum = wrong.field in {"token", "peer_secret"}
    length = f" of at least {TOKEN_CHARACTERS_MIN} characters" if has_minimum else ""
    return f"{PREFIX}{wrong.field.upper()}{suffix}: {wrong.message}{length}."
