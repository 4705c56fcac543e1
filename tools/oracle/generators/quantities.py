"""Quantities in every spelling that Kubernetes reads."""

from collections.abc import Callable
from decimal import Decimal

from tools.oracle.generators.draws import Draws

BINARY = ("Ki", "Mi", "Gi", "Ti")
MILLI = 1000


def cpu(draws: Draws, milli: int) -> str:
    """Spell an amount of cpu, in milli."""
    return draws.choice(_CPU_SPELLINGS)(milli)


def size(draws: Draws, count: int) -> str:
    """Spell a whole number: bytes of memory, or pieces of a resource."""
    spellings = [_plain, _whole_milli, _exponent, _negative_exponent, _decimal_suffix]
    return draws.choice([*spellings, *(_binary(suffix) for suffix in BINARY)])(count)


def uneven(draws: Draws, count: int) -> str:
    """Spell a number that is rounded up, at most by one, to `count`.

    There is nothing finer than thousandths, as kube-apiserver rounds each quantity up to these.
    """
    below = Decimal(count) - draws.choice((Decimal("0.5"), Decimal("0.001"), Decimal("0.999")))
    if below <= 0:
        return _plain(count)
    return draws.choice((format(below, "f"), f"{int(below * MILLI)}m", f"{int(below * MILLI)}e-3"))


def _plain(count: int) -> str:
    return str(count)


def _whole_milli(count: int) -> str:
    return f"{count}000m"


def _exponent(count: int) -> str:
    zeros = len(str(count)) - len(str(count).rstrip("0")) if count else 0
    return f"{count // 10**zeros}e{zeros}"


def _negative_exponent(count: int) -> str:
    return f"{count * 100}E-2"


def _decimal_suffix(count: int) -> str:
    for suffix, factor in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count and count % factor == 0:
            return f"{count // factor}{suffix}"
    return f"{format(Decimal(count) / 1000, 'f')}k"


def _binary(suffix: str) -> Callable[[int], str]:
    factor = 1024 ** (BINARY.index(suffix) + 1)

    def spelled(count: int) -> str:
        whole, rest = divmod(count, factor)
        halves, uneven_rest = divmod(rest * 2, factor)
        if uneven_rest:
            return str(count)
        return f"{whole}.5{suffix}" if halves else f"{whole}{suffix}"

    return spelled


def _milli_suffix(milli: int) -> str:
    return f"{milli}m"


def _fraction(milli: int) -> str:
    return format(Decimal(milli) / MILLI, "f")


def _micro(milli: int) -> str:
    return f"{milli * MILLI}u"


def _nano(milli: int) -> str:
    return f"{milli * MILLI * MILLI}n"


def _milli_exponent(milli: int) -> str:
    return f"{milli}e-3"


def _without_zero(milli: int) -> str:
    return (
        format(Decimal(milli) / MILLI, "f").removeprefix("0")
        if milli % MILLI
        else str(milli // MILLI)
    )


_CPU_SPELLINGS = (_milli_suffix, _fraction, _micro, _nano, _milli_exponent, _without_zero)
