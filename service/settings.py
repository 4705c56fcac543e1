"""Every setting of a server process, its default and its `MOORAGE_*` variable.

What belongs to one cluster is that cluster's configuration instead (`service.model.config`).
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

from service.model.wording import worded

PREFIX = "MOORAGE_"
SECRETS = ("token", "database_url", "migration_url")
"""Settings that a file can hold in place of a variable: `MOORAGE_TOKEN_FILE` names it."""
FILE_SUFFIX = "_file"

TOKEN_CHARACTERS_MIN = 32
"""So many that nobody guesses it: `openssl rand -hex 16` makes one."""

Count = Annotated[int, msgspec.Meta(ge=1)]
Bytes = Annotated[int, msgspec.Meta(ge=1024)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]
HostNames = Annotated[
    str, msgspec.Meta(pattern=r"^(?:(?:^|,) *(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]) *)*$")
]
"""Names or addresses as they stand in a URL, without ports, separated by commas."""
TokenTypes = Annotated[
    str, msgspec.Meta(pattern=r"^ *[A-Za-z0-9.+/_-]+ *(?:, *[A-Za-z0-9.+/_-]+ *)*$")
]
"""Media types, of `application/` only the rest, separated by commas."""

IPAddress = IPv4Address | IPv6Address
IPNetwork = IPv4Network | IPv6Network

_KIB = 1024
_MIB = 1024 * _KIB


class InvalidSettings(ValueError):  # noqa: N818 - a sentence for people, printed as it is
    """The environment names a setting that does not exist, or gives one a bad value."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of one server; `host` is read from `MOORAGE_HOST`, and so on."""

    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8080
    health_port: Annotated[int, msgspec.Meta(ge=1, le=65535)] | None = None
    """Where `/livez`, `/readyz` and `/metrics` are answered besides, whatever happens at `port`."""
    health_host: str = "127.0.0.1"
    health_socket: str | None = None
    """Where the workers tell how they are; `moorage serve` sets it."""
    workers: Count = 1
    data_dir: str = ".moorage"
    """Where the embedded PostgreSQL keeps its data; not used with a `database_url`."""
    database_url: str | None = None
    """`postgresql://…`; without it `moorage serve` starts the embedded PostgreSQL."""
    migration_url: str | None = None
    """As whom the tables of the `database_url` are brought up to date, if its role may not."""
    token: Annotated[str, msgspec.Meta(min_length=TOKEN_CHARACTERS_MIN)] | None = None
    """The bearer token that every request below `/v1` must then carry."""
    tls_certificate: str | None = None
    """PEM file of the certificate, with those that vouch for it; with `tls_key` the server speaks HTTPS alone."""
    tls_key: str | None = None
    tls_terminated: bool = False
    """A proxy in front speaks HTTPS: a server that other machines reach may then do without a certificate."""
    oidc_issuer: str | None = None
    """The identity provider whose tokens are taken, too: its `iss`, a URL."""
    oidc_audience: str | None = None
    """The `aud` that its tokens have to have; needed with an issuer."""
    oidc_keys_url: str | None = None
    """Where its keys (JWKS) are; else what its discovery document says."""
    oidc_name_claim: str = "sub"
    oidc_name_prefix: Annotated[str, msgspec.Meta(min_length=1)] = "oidc:"
    """Stands before the names that it gives, so that none is that of a principal of this server."""
    oidc_groups_claim: str = "groups"
    oidc_token_types: TokenTypes = "at+jwt"  # noqa: S105 - no secret
    """The types (`typ`) that its tokens may have, separated by commas; `none`: a token may have none.
    Where access tokens have a type of their own (RFC 9068), no other token of the provider is taken for one."""
    oidc_scope: str = ""
    """What `scope` (or `scp`) of its tokens has to hold, separated by spaces."""
    allowed_hosts: HostNames = ""
    """Names besides those of loopback that a server without a token answers to, as behind a proxy."""
    trusted_proxies: str = ""
    """Proxies in front, addresses or networks separated by commas, that are believed where requests come from (`X-Forwarded-For`)."""
    forwarding: bool = True
    """Whether the workers of a server hand a cluster's requests to the one of them that decides them."""
    forwarding_dir: str | None = None
    """Where these workers find each other; `moorage serve` sets it."""
    failed_authentications_burst: Count = 10
    """So many wrong tokens of one address are answered at once, by each worker."""
    failed_authentication_seconds: Count = 1
    """After that, one in so many seconds."""
    requests_per_second: Annotated[int, msgspec.Meta(ge=0)] = 0
    """How often one principal may ask each worker; 0: as often as it likes."""
    writes_per_second: Annotated[int, msgspec.Meta(ge=0)] = 0
    """How often of these it may ask for what is no read."""
    audit: Literal["auto", "on", "off"] = "auto"
    """Whether it is kept who wrote what and who was refused; `auto`: where a token says who asks."""
    audit_keep_seconds: Seconds = 90 * 24 * 3600
    """How long that is kept."""
    debug: bool = False
    """Serves `/debug/replicas`."""

    body_bytes_max: Bytes = 1 * _MIB
    placements_bytes_max: Bytes = 16 * _MIB
    simulations_bytes_max: Bytes = 64 * _MIB
    apply_bytes_max: Bytes = 64 * _MIB
    """One `List` of `apply`; NDJSON may be of any length."""
    apply_line_bytes_max: Bytes = 1 * _MIB
    """One line of an NDJSON `apply`."""
    apply_objects_max: Count = 10_000
    """Objects in one `List` of `apply`, which is one commit."""
    watchers_max: Count = 1_000
    """Watches of one process."""
    principal_watchers_max: Count = 250
    """Of them, those of one principal that is no admin."""
    clusters_max: Count = 10_000
    """Clusters of a database: with so many, none is created."""
    objects_max: Count = 2_000_000
    """Objects of one cluster: beyond it, nothing that makes them more is done."""
    request_items_max: Count = 10_000
    """Items of any other list in a request, and replicas that one asks for."""
    explained_pairs_max: Count = 2_000_000
    """Pods times nodes of one full explanation."""
    bytes_in_flight_max: Bytes = 256 * _MIB
    """All bodies that have arrived and answers that are not sent, in one process."""
    apply_lines_per_commit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1000
    url_bytes_max: Bytes = 8 * _KIB
    header_bytes_max: Bytes = 32 * _KIB
    header_timeout_seconds: Annotated[float, msgspec.Meta(ge=0.001)] = 10
    """How long a client may take to send the head of a request."""
    body_timeout_seconds: Seconds = 10
    """How long a client may keep the server waiting for the next piece of a body."""
    body_bytes_per_second_min: Count = 16 * _KIB
    """A body that arrives more slowly than this, `body_timeout_seconds` granted, is given up."""
    answer_timeout_seconds: Seconds = 10
    """How long a client may take to read 64 KiB of an answer, or what is left of it."""
    connections_max: Count | None = None
    """Connections to a worker; by default 20,000, but no more than 80 % of its file limit. Beyond it the idlest are closed."""
    connections_per_address_max: Count | None = None
    """Of one client address, an IPv6 network of 64 bits being one; by default a quarter of all."""
    statement_timeout_seconds: Annotated[float, msgspec.Meta(ge=0.001)] = 30
    """What takes the database longer is answered 503; migrations may take as long as they need."""
    request_timeout_seconds: Seconds = 30
    """How long a write is tried again before it is answered 503."""
    revision_wait_seconds: Seconds = 5
    """How long a read waits for the revision that `minRevision` names."""
    watch_bookmark_seconds: Seconds = 5
    """How often a watcher is told the revision that it is at."""
    log_keep_seconds: Seconds = 3600
    """Changes younger than this stay in the log: whoever was away for longer lists again."""
    log_keep_changes: Annotated[int, msgspec.Meta(ge=0)] = 100_000
    """So many changes of a cluster stay in the log, however old they are."""
    idempotency_keep_seconds: Seconds = 24 * 3600
    """How long the answer to an idempotency key is given again."""
    upkeep_seconds: Seconds = 10
    """How often logs are compacted and old answers removed."""
    ready_lag_seconds_max: Seconds = 10
    """A process of which a replica has been behind its log for longer is not ready."""
    metrics_dir: str | None = None
    """Where the worker processes of one server share their metrics; `moorage serve` sets it."""
    template_cache_bytes: Bytes = 64 * _MIB
    """Decoded pod templates kept, as bytes of their JSON."""
    engine: Literal["compiled", "interpreted"] = "compiled"
    """Whether the engine may run compiled, where it is; read as its modules are imported."""

    @property
    def audits(self) -> bool:
        """Whether it is kept from the start who wrote what."""
        return self.audit == "on" or (self.audit == "auto" and bool(self.token or self.oidc_issuer))


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server at that address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_settings(environment: Mapping[str, str]) -> Settings:
    """The settings that the `MOORAGE_*` variables of an environment give.

    A secret may be in a file instead, which is read now and not again.

    Raises:
        InvalidSettings: a variable is misspelt, its value is of the wrong kind, or its file cannot be read.
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
    proxy_networks(settings)
    return settings


def proxy_networks(settings: Settings) -> tuple[IPNetwork, ...]:
    """The networks of the trusted proxies.

    Raises:
        InvalidSettings: one of them is none, or has everybody in it.
    """
    named = [each.strip() for each in settings.trusted_proxies.split(",")]
    return tuple(_proxy_network(each) for each in named if each)


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
    """Without an audience tokens for other services were taken; by plain HTTP anybody on the way could give keys."""
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


def settings_of_this_process() -> Settings:
    """The settings in this process's environment: the one place that reads it."""
    return read_settings(os.environ)  # noqa: TID251


def read_secret(name: str, environment: Mapping[str, str]) -> str | None:
    """What the file holds that `MOORAGE_<NAME>_FILE` names, without the end of its line; None if no file is named.

    Raises:
        InvalidSettings: it cannot be read, or the variable proper is set as well.
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
    """Put what files hold in place of their names; which settings that were."""
    environment = {PREFIX + name.upper(): value for name, value in given.items()}
    found = {name: read_secret(name, environment) for name in SECRETS}
    for name, secret in found.items():
        if secret is not None:
            del given[name + FILE_SUFFIX]
            given[name] = secret
    return [name for name, secret in found.items() if secret is not None]


def _refuse_unknown(given: Mapping[str, str]) -> None:
    unknown = sorted(given.keys() - set(Settings.__struct_fields__))
    if unknown:
        names = ", ".join(PREFIX + name.upper() for name in unknown)
        names_known = [*Settings.__struct_fields__, *(name + FILE_SUFFIX for name in SECRETS)]
        known = ", ".join(PREFIX + name.upper() for name in sorted(names_known))
        raise InvalidSettings(f"No such setting: {names}. Known settings: {known}.")


def _in_words_of_the_environment(message: str, from_files: Sequence[str]) -> str:
    """Msgspec names the field; people set the variable, or one that names a file."""
    wrong = worded(message)
    if not wrong.field:
        return message
    suffix = FILE_SUFFIX.upper() if wrong.field in from_files else ""
    length = f" of at least {TOKEN_CHARACTERS_MIN} characters" if wrong.field == "token" else ""
    return f"{PREFIX}{wrong.field.upper()}{suffix}: {wrong.message}{length}."
