"""Validation rules of admission policies, whose expressions must compile."""

from service.model.cel.evaluation import EXPRESSION_LENGTH_MAX, ExpressionError, compiled
from service.model.cluster.admission_policies import AdmissionPolicy
from service.model.core import names
from service.model.core.selector_rules import LABEL_SELECTOR
from service.model.core.type_rules import declared
from service.model.core.validators import Problems, Rule, list_of, one_of, text

_MESSAGE_LENGTH_MAX = 1024
POLICIES_MAX = 32


def _compiles(expression: str) -> str | None:
    if len(expression) > EXPRESSION_LENGTH_MAX:
        return f"must have at most {EXPRESSION_LENGTH_MAX} characters"
    try:
        compiled(expression)
    except ExpressionError as error:
        return f"is no expression that can be asked: {error}"
    return None


def _is_short(message: str) -> str | None:
    if len(message) > _MESSAGE_LENGTH_MAX:
        return f"must have at most {_MESSAGE_LENGTH_MAX} characters"
    return None


POLICY: Rule = declared(
    AdmissionPolicy,
    {
        "id": text(names.dns_subdomain),
        "expression": text(_compiles),
        "message": text(_is_short),
        "operations": list_of(
            one_of("Create", "Update"), at_least="must have at least one operation"
        ),
        "namespaceSelector": LABEL_SELECTOR,
    },
)


def few(policies: Rule) -> Rule:
    """Return a rule for a list of policies that is short enough to evaluate in negligible time."""

    def rule(value: object, path: str, problems: Problems) -> None:
        if isinstance(value, list) and len(value) > POLICIES_MAX:
            problems.add(path, f"must have at most {POLICIES_MAX} policies")
            return
        policies(value, path, problems)

    return rule
