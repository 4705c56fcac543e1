"""Checks of the address at which a server is to listen.

Without TLS, or if it asks for no tokens, a server may listen only on a loopback address.
"""

import msgspec

from service.cli.errors import WrongUsage
from service.settings import Settings, is_loopback
from service.store.postgres import PostgresStore


def refuse_plain_door(settings: Settings) -> None:
    """Refuse to serve other machines without TLS, as their requests could be read on the way.

    Raises:
        WrongUsage: the address is not loopback, and neither the server nor a proxy in front of it
            speaks TLS.
    """
    secured = settings.tls_certificate or settings.tls_terminated
    if not secured and not is_loopback(settings.host):
        raise WrongUsage(
            f"{settings.host} can be reached from other machines, and tokens would be sent in clear: give "
            "--tls-certificate and --tls-key, set MOORAGE_TLS_TERMINATED=true where a proxy in front speaks TLS, or "
            "listen on 127.0.0.1."
        )


async def asks_who_calls(settings: Settings, database_url: str) -> bool:
    """Whether callers need a token: there is one (settings, database) or an identity provider."""
    if settings.token or settings.oidc_issuer:
        return True
    store = PostgresStore(database_url, connections=1)
    try:
        return bool((await store.access.state()).tokens)
    finally:
        await store.close()


def refuse_open_door(settings: Settings) -> None:
    """Refuse to serve other machines if the server asks for no token.

    Raises:
        WrongUsage: the address is not loopback.
    """
    if not is_loopback(settings.host):
        raise WrongUsage(
            f"{settings.host} can be reached from other machines: set the token of a first admin in MOORAGE_TOKEN, or "
            "listen on 127.0.0.1 and make one with `moorage token create NAME --role admin`."
        )


def with_audit(settings: Settings) -> Settings:
    """Turn on the audit for a server that asks for tokens, unless its settings say on or off."""
    if settings.audit != "auto":
        return settings
    return msgspec.structs.replace(settings, audit="on")
