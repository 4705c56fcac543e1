"""The pod template of a rollout."""

from service.model.core.errors import FieldError, InvalidManifest
from service.model.pods.pod_manifest import PodManifest, parse_pod
from service.model.pods.template_cache import TemplateCache

NAME_MAX = 253
"""The maximum length of a DNS subdomain, in characters."""


def parse_template(
    raw: object, templates: TemplateCache, *, namespace: str, replicas: int
) -> PodManifest:
    """Parse the template of a rollout's new pods, which will be named `<name>-0`, `<name>-1`, ….

    Raises:
        InvalidManifest: the template is invalid, sets fields that must differ between pods, or has
            too long a name; paths of fields begin with `template`.
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
    # Numbers in names may exceed the replica count, as a name is only reusable once its pod is
    # gone.
    if len(template.name) + len(str(replicas * replicas)) + 1 > NAME_MAX:
        message = f"leaves no room for the pods' numbers within {NAME_MAX} characters"
        errors.append(FieldError("template.metadata.name", message, template.name))
    if errors:
        raise InvalidManifest(errors)
    return template
