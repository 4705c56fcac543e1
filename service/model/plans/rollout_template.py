"""The pod template of a rolling release."""

from service.model.core.errors import FieldError, InvalidManifest
from service.model.pods.pod_manifest import PodManifest, parse_pod
from service.model.pods.template_cache import TemplateCache

NAME_MAX = 253
"""The length of a DNS subdomain."""


def parse_template(
    raw: object, templates: TemplateCache, *, namespace: str, replicas: int
) -> PodManifest:
    """Parse the template of new pods, which are named `<name>-0` and so on, in this namespace.

    Raises:
        InvalidManifest: the template is wrong, has what each pod has for itself, or its name is too
            long; fields are named from `template` on.
    """
    try:
        template = parse_pod(raw, templates, namespace=namespace, to_place=True)
    except InvalidManifest as error:
        raise error.under("template") from None
    own = {
        "metadata.uid": bool(template.uid),
        "metadata.deletionTimestamp": template.pod.terminating,
        "status": template.status is not None,
    }
    errors = [
        FieldError(f"template.{field}", "may not be given: each pod has its own", None)
        for field, is_given in own.items()
        if is_given
    ]
    # Names may count on beyond the replicas, as a name is free only when its pod is gone.
    if len(template.name) + len(str(replicas * replicas)) + 1 > NAME_MAX:
        message = f"leaves no room for the pods' numbers within {NAME_MAX} characters"
        errors.append(FieldError("template.metadata.name", message, template.name))
    if errors:
        raise InvalidManifest(errors)
    return template
