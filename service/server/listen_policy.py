"""The policy for the address on which a server listens.

Without TLS, or without tokens, a server may listen only on a loopback address.
"""

import msgspec

from service.server.failures import ConfigurationError
from service.settings import Settings, is_loopback
from service.store.postgres import PostgresStore


def require_tls(settings: Settings) -> None:
    """Refuse to serve other machines without TLS, since their requests could be read in transit.

    Raises:
        ConfigurationError: the address is not loopback, and neither the server nor a proxy in
            front terminates TLS.
    """
    secured = settings.tls_certificate or settings.tls_terminated
    if not secured and not is_loopback(settings.host):
        raise ConfigurationError(
            f"{settings.host} can be reached from other machines, and tokens would be sent in clear: give "
            "--tls-certificate and --tls-key, set MOORAGE_TLS_TERMINATED=true where a proxy in front speaks TLS, or "
            "listen on 127.0.0.1."
        )


async def authenticates_callers(settings: Settings, database_url: str) -> bool:
    """Return whether callers are authenticated, by tokens or by an identity provider."""
    if settings.token or settings.oidc_issuer:
        return True
    store = PostgresStore(database_url, connections=1)
    try:
        return bool((await store.access.state()).tokens)
    finally:
        await store.close()


def require_tokens(settings: Settings) -> None:
    """Refuse to serve other machines while the server has no token.

    Raises:
        ConfigurationError: the address is not loopback.
    """
    if not is_loopback(settings.host):
        raise ConfigurationError(
            f"{settings.host} can be reached from other machines: set the token of a first admin in MOORAGE_TOKEN, or "
            "listen on 127.0.0.1 and make one with `moorage token create NAME --role admin`."
        )


def with_audit(settings: Settings) -> Settings:
    """Return settings with the audit log turned on, unless they specify on or off."""
    if settings.audit != "auto":
        return settings
    return msgspec.structs.replace(settings, audit="on")
