"""Problem documents (RFC 9457), built from errors with one table of codes.

Errors of the model describe what is wrong; only this module maps them to HTTP statuses. Errors
specific to HTTP are declared here too.
"""

# ruff: noqa: N818 - the names are the codes that clients see

import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from service.model.core.errors import (
    BindingRefused,
    BindingViolated,
    Denied,
    EvictionBlocked,
    FieldError,
    FieldManagerConflict,
    InvalidManifest,
    MoorageError,
    Unavailable,
)

PROBLEM_JSON = "application/problem+json"
_log = logging.getLogger(__name__)


class MalformedRequest(MoorageError):
    """The request violates HTTP, or a header or query parameter cannot be parsed."""

    def __init__(self, detail: str, errors: Sequence[FieldError] = ()) -> None:
        super().__init__(detail)
        self.errors = list(errors)


class Unauthorized(MoorageError):
    """The request has no bearer token, or an invalid one."""


class CrossOriginRequest(MoorageError):
    """A browser sent the request on behalf of a page from another origin."""


class MisdirectedRequest(MoorageError):
    """The request was meant for another host."""


class GrantsChanged(MoorageError):
    """The namespaces that a watcher may read changed after the watch began."""


class NoSuchPath(MoorageError):
    """No operation or page exists at this path."""


class MethodNotAllowed(MoorageError):
    """The path exists, but does not support this method."""


class BodyTimeout(MoorageError):
    """The client took too long to send its request."""


class BodyTooLarge(MoorageError):
    """The body exceeds the operation's limit."""


class URLTooLong(MoorageError):
    """The request target exceeds the limit."""


class UnsupportedMediaType(MoorageError):
    """The operation does not accept this Content-Type or Content-Encoding."""


class HeadersTooLarge(MoorageError):
    """The request's headers exceed the limit."""


class TooManyBytes(Unavailable):
    """The process already holds the maximum number of bytes of bodies and answers."""


class TooManyRequests(Unavailable):
    """A principal exceeds its request rate."""


class TooManyFailures(Unavailable):
    """An address has sent too many invalid tokens."""


class RevisionNotReached(Unavailable):
    """The cluster has not reached the revision requested with `minRevision`."""


class IdentityProviderUnavailable(Unavailable):
    """The signing keys of an identity provider cannot be fetched."""


class ReplicaLags(Unavailable):
    """A replica in this process is too far behind its log."""


class ProblemKind(NamedTuple):
    """The status, title, and meaning of a code; `meaning` is the text of `/errors/<code>`."""

    status: int
    title: str
    meaning: str


PROBLEMS: Mapping[str, ProblemKind] = {
    "MalformedRequest": ProblemKind(
        400,
        "The request is malformed",
        "A header, the path or a query parameter cannot be read, or is not one of the "
        "operation's. Nothing was done.",
    ),
    "MalformedJSON": ProblemKind(
        400,
        "The body is not JSON that Moorage reads",
        "The body has to be one JSON value in UTF-8, without duplicate keys, NaN or Infinity, "
        "nested at most 32 levels deep, with nothing after it.",
    ),
    "Unauthorized": ProblemKind(
        401,
        "A bearer token is needed",
        "The server runs with a token: send it as `Authorization: Bearer <token>`.",
    ),
    "Forbidden": ProblemKind(
        403,
        "The caller may not do this",
        "None of the caller's grants has a role that gives the operation's verb on this cluster, "
        "in this namespace; or what the body says of an object takes another verb: `place` where a pod is "
        "placed, `observe` where it is on a node or has run, `configure` for a quota, limit range or priority "
        "class. `detail` names who asked, the object, and the verb. Nothing was done.",
    ),
    "CrossOriginRequest": ProblemKind(
        403,
        "A page of another site asked for this",
        "A server without a token does what its user asks, not what a web page has the user's browser "
        "send: `Origin` and `Sec-Fetch-Site` have to be those of the server's own pages. Nothing was done. "
        "Programs that are no browsers send neither header.",
    ),
    "Denied": ProblemKind(
        403,
        "Refused by admission",
        "Admission or a quota refuses the change; `detail` says which rule.",
    ),
    "AntiAffinityTooBroad": ProblemKind(
        403,
        "Anti-affinity against all namespaces needs a node topology key",
        "Required anti-affinity that applies to all namespaces (`namespaceSelector: {}`) may only "
        "use a topology key of the setting `nodeTopologyKeys`: with a wider one, a single pod "
        "could keep everybody out of a zone. Narrow the namespaces or the key, put the namespace "
        "into `trustedNamespaces`, or switch off `restrictAllNamespacesAntiAffinity`.",
    ),
    "QuotaExceeded": ProblemKind(
        403,
        "A resource quota is used up",
        "The pod would take its namespace beyond a ResourceQuota, does not say how much it needs "
        "of what a quota limits, or uses a resource that the setting `limitedResources` allows "
        "only where a quota covers it. `detail` says which, in Kubernetes' words.",
    ),
    "DeviceClaimsRefused": ProblemKind(
        403,
        "The pod claims devices",
        "`spec.resourceClaims` asks for devices (dynamic resource allocation), and the cluster's setting "
        "`deviceClaims` is `Refuse`. With `Allocate`, the default, such a pod is given its devices together "
        "with its node; with `Ignore` it is placed as if it claimed none, with a warning.",
    ),
    "AdminAccessDenied": ProblemKind(
        403,
        "The namespace may not claim devices for administration",
        "A request of a ResourceClaim or ResourceClaimTemplate has `adminAccess`, with which it is given "
        "devices that others use. Kubernetes allows that only in namespaces with the label "
        "`resource.kubernetes.io/admin-access: true`, and so does Moorage.",
    ),
    "PolicyDenied": ProblemKind(
        403,
        "A policy of the cluster denies the pod",
        "An expression of the cluster's setting `policies` is not true of the pod, or has no answer for it, such as "
        "where it reads a field that is absent. `detail` has the policy's id and message.",
    ),
    "PriorityDiffers": ProblemKind(
        403,
        "The priority is not that of the class",
        "A pod's `priorityClassName` decides its `priority`. Leave the number away, or send the "
        "one that the class has.",
    ),
    "PreemptionPolicyDiffers": ProblemKind(
        403,
        "The preemption policy is not that of the class",
        "A pod's `priorityClassName` decides its `preemptionPolicy`, which is `PreemptLowerPriority` "
        "unless the class says otherwise. Leave it away, or send the one that the class has.",
    ),
    "RuntimeClassConflict": ProblemKind(
        403,
        "The pod contradicts its runtime class",
        "A pod's `runtimeClassName` decides its `overhead` and a part of its `nodeSelector`. Leave "
        "them away, or send what the class has; a pod without a class has no overhead. `detail` names "
        "the field.",
    ),
    "UnknownRuntimeClass": ProblemKind(
        403,
        "No such runtime class",
        "The cluster has RuntimeClasses, but none of the name that is the pod's `runtimeClassName`.",
    ),
    "LimitRangeViolated": ProblemKind(
        403,
        "A limit range does not allow it",
        "A container, the pod as a whole or the claim asks for less or more than a LimitRange of its "
        "namespace allows. `detail` names the fields, and says why in Kubernetes' words.",
    ),
    "UnknownPriorityClass": ProblemKind(
        403,
        "No such priority class",
        "The pod's `priorityClassName` is neither in the setting `priorityClasses` nor built in.",
    ),
    "UnknownScheduler": ProblemKind(
        403,
        "No such scheduling profile",
        "The pod's `schedulerName` is no profile of the cluster, so Moorage never places it.",
    ),
    "TooManyClusters": ProblemKind(
        403,
        "There are as many clusters as there may be",
        "Delete one, or raise the server's setting `clusters_max`.",
    ),
    "TooManyObjects": ProblemKind(
        403,
        "The cluster has as many objects as it may have",
        "The change would make them more. Delete some, or raise the server's setting `objects_max`.",
    ),
    "TooManyWatches": ProblemKind(
        403,
        "The caller has as many watches as one may have",
        "End one of them; the server's setting `principal_watchers_max` says how many a caller may have in one process.",
    ),
    "NoSuchPath": ProblemKind(
        404,
        "Nothing is served at this path",
        "See `/docs` for the operations and their paths.",
    ),
    "NotFound": ProblemKind(
        404,
        "No such object",
        "The cluster, or the object in it, does not exist at the revision in the header "
        "`Moorage-Revision`.",
    ),
    "MethodNotAllowed": ProblemKind(
        405,
        "The path does not take this method",
        "The header `Allow` names the methods that the path takes.",
    ),
    "BodyTimeout": ProblemKind(
        408,
        "The request came too slowly",
        "The client stopped sending its body, or sent it more slowly than the server waits for.",
    ),
    "Conflict": ProblemKind(
        409,
        "The change conflicts with what is stored",
        "What is stored does not allow the change; `detail` says why. Read the object again.",
    ),
    "RevisionConflict": ProblemKind(
        409,
        "The object has changed",
        "`metadata.resourceVersion` or `metadata.uid` of the request is not that of the stored "
        "object. Read the object, apply the change to what it is now, and send it again.",
    ),
    "PodDiffers": ProblemKind(
        409,
        "A different pod is stored under this name",
        "A pod of the same namespace and name exists with another spec or other labels. Nothing "
        "of the request was done.",
    ),
    "BindingRefused": ProblemKind(
        409,
        "The pod does not fit the node",
        "`reasons` lists what each filter says against the node. With `force` the filters are "
        "passed over.",
    ),
    "BindingViolated": ProblemKind(
        409,
        "Required rules of the pod do not hold",
        "The pod is bound to the node, but rules by which it was placed do not hold there now. `errors` "
        "names each of these rules by its path in the manifest, and says what is wrong. Nothing was written: "
        "whether the pod is started, evicted or asked for again is the caller's decision.",
    ),
    "FieldManagerConflict": ProblemKind(
        409,
        "Others manage fields that would change",
        "`errors` names each field that a server-side apply would change and another manages, with the "
        "manager. Leave these fields out, give them the value that they have, or send `force=true` to "
        "manage them alone. Nothing was written.",
    ),
    "NoAdminLeft": ProblemKind(
        409,
        "No token of an admin would be left",
        "Where callers prove who they are by tokens, one of these has to be that of an admin of the "
        "whole server: a principal with the grant `{role: admin}`. Make that one first, or the last; "
        "a server that runs with `MOORAGE_TOKEN` always has an admin.",
    ),
    "IdempotencyKeyInProgress": ProblemKind(
        409,
        "The first request with this key is still running",
        "Ask again after the seconds in `Retry-After`, with the same key and body.",
    ),
    "Compacted": ProblemKind(
        410,
        "The log no longer reaches back that far",
        "The revision asked for was compacted. List again and go on from the list's "
        "`metadata.resourceVersion`.",
    ),
    "HistoryReplaced": ProblemKind(
        410,
        "The log tells another history",
        "The cluster's log does not continue what was read before, as after a restore from a "
        "backup. List again and go on from the list's `metadata.resourceVersion`.",
    ),
    "GrantsChanged": ProblemKind(
        410,
        "What the caller may see has changed",
        "The caller was given other grants, so that what was listed and what is watched no longer "
        "belong together. List again and go on from the list's `metadata.resourceVersion`.",
    ),
    "PreconditionFailed": ProblemKind(
        412,
        "A precondition does not hold",
        "The object's ETag does not satisfy If-Match or If-None-Match. Read the object again.",
    ),
    "BodyTooLarge": ProblemKind(
        413,
        "The body is too large",
        "Each operation has a limit, which the server's settings can change. A large set of "
        "objects goes to `apply` as NDJSON.",
    ),
    "URLTooLong": ProblemKind(
        414, "The URL is too long", "The path and the query together are over the limit."
    ),
    "UnsupportedMediaType": ProblemKind(
        415,
        "The operation does not take this media type",
        "`detail` names the Content-Types that it takes; every body needs one. A body may be compressed with `gzip` or `zstd`, which Content-Encoding then says.",
    ),
    "MisdirectedRequest": ProblemKind(
        421,
        "The request is for another host",
        "A server without a token answers to `localhost`, names below it and addresses of loopback in the "
        "header `Host`, and to the names in `MOORAGE_ALLOWED_HOSTS`. Nothing was done.",
    ),
    "InvalidManifest": ProblemKind(
        422,
        "Fields of the request are invalid",
        "`errors` names every wrong field, with its path, what is wrong and the value sent. "
        "Nothing was done.",
    ),
    "IdempotencyKeyReused": ProblemKind(
        422,
        "The idempotency key was used for another request",
        "A key stands for one request: the same method, path, query and body. Use a new key.",
    ),
    "EvictionBlocked": ProblemKind(
        429,
        "A disruption budget does not allow the eviction",
        "Evicting the pod would leave a PodDisruptionBudget with fewer healthy pods than it requires. `reasons` lists, "
        "under `DisruptionBudget`, the required and current number for each such budget. Nothing was changed. Try again "
        "after the seconds in `Retry-After`, or drain the node: a drain waits for budgets.",
    ),
    "TooManyBytes": ProblemKind(
        429,
        "The server holds too many bytes",
        "Bodies that are arriving and answers that are not sent yet take all the memory that is set aside for them, or "
        "a body had to give way to smaller ones before it was complete. Nothing was done, but for the lines of a stream "
        "that were answered. Ask again after the seconds in `Retry-After`.",
    ),
    "TooManyRequests": ProblemKind(
        429,
        "Too many requests of one caller",
        "The server bounds how often one principal may ask, or write, in a second "
        "(`requests_per_second`, `writes_per_second`). Nothing was done. Ask again after the "
        "seconds in `Retry-After`.",
    ),
    "TooManyFailures": ProblemKind(
        429,
        "Too many wrong tokens of one address",
        "Wrong tokens are answered only so often for each address "
        "(`failed_authentications_burst`, `failed_authentication_seconds`). A right token is let "
        "in meanwhile.",
    ),
    "HeadersTooLarge": ProblemKind(
        431, "The headers are too large", "All headers of a request together are over the limit."
    ),
    "ObjectUnreadable": ProblemKind(
        500,
        "A stored object cannot be read",
        "An object's row is damaged, or was written by a version this server does not know. `detail` names the object "
        "if the caller may read it. Requests that change its cluster cannot be decided exactly without it, so they are "
        "refused. All other objects can still be read, and lists name the objects they omit. Retrying does not help. "
        "`moorage verify` finds such rows; repair them in the database or restore a backup.",
    ),
    "Internal": ProblemKind(
        500,
        "A fault in Moorage",
        "This is a bug. The log of the server has the details; please report it.",
    ),
    "Overloaded": ProblemKind(
        503,
        "Too much is waiting",
        "More is waiting than the server takes on, or the time for the request was up before it "
        "could be committed. Ask again after the seconds in `Retry-After`.",
    ),
    "StorageUnavailable": ProblemKind(
        503,
        "The database cannot be reached",
        "Nothing of the request was committed. Ask again after the seconds in `Retry-After`.",
    ),
    "PluginMissing": ProblemKind(
        503,
        "A plugin is not installed",
        "The configuration of the cluster names a plugin that this server lacks; `detail` says in which field. "
        "Install it and start the server again, or ask a server that has it.",
    ),
    "IdentityProviderUnavailable": ProblemKind(
        503,
        "The identity provider cannot be reached",
        "The keys that the identity provider signs its tokens with cannot be fetched from it, so nobody "
        "can be told by one. Tokens of this server (`mrg_…`) are taken meanwhile.",
    ),
    "ReplicaLags": ProblemKind(
        503,
        "The process is behind",
        "This process has not followed a cluster's log for too long, so it should get no requests. "
        "It is not told to others than those who ask for readiness.",
    ),
    "OutcomeUnknown": ProblemKind(
        503,
        "It is not known whether the request was committed",
        "The connection to the database broke during the commit. Ask again with the same "
        "Idempotency-Key: what was committed is not done twice.",
    ),
    "RevisionNotReached": ProblemKind(
        503,
        "The cluster has not reached this revision",
        "`minRevision` lies ahead of the cluster's head. Ask again after the seconds in "
        "`Retry-After`.",
    ),
}


FIELD_PROBLEMS_MAX = 100
"""The maximum number of field errors in an answer; `detail` states their total."""


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong (RFC 9457)."""

    type: str
    """The page that explains this code."""
    code: str
    """Stable name of what went wrong, in CamelCase."""
    title: str
    """What the code means, always the same."""
    status: int
    """The answer's HTTP status."""
    detail: str
    """What went wrong this time, for people."""
    instance: str
    """The path that was asked."""
    request_id: str = msgspec.field(default="", name="requestId")
    """The id of the request, as in `X-Request-ID`; the server's log and the audit have it, too."""
    errors: list[FieldError] | None = None
    """Every wrong field, all at once; of a binding that is not confirmed, every rule that does not hold."""
    reasons: dict[str, list[str]] | None = None
    """Why a pod does not fit the node: what each plugin says. Why it cannot be evicted: `DisruptionBudget`."""


def headers_of(code: str) -> Sequence[str]:
    """Return the names of the headers that a problem's answer has in addition to the usual ones."""
    if code == "Unauthorized":
        return ("WWW-Authenticate",)
    return ("Retry-After",) if code in _RETRIED else ()


def _codes_below(error: type[MoorageError]) -> set[str]:
    """Return the names of an error class and of its subclasses, which are their codes."""
    return {error.__name__}.union(*map(_codes_below, error.__subclasses__()))


_RETRIED = frozenset({"IdempotencyKeyInProgress", "EvictionBlocked", *_codes_below(Unavailable)})
"""Codes of problems whose answers have a `Retry-After` header."""


def code_of(error: MoorageError) -> str:
    """Return the code that clients see.

    This is a denial's reason if that is a code, or else the nearest class of the error that is one,
    or `Internal`.
    """
    if isinstance(error, Denied) and error.reason in PROBLEMS:
        return error.reason
    return next((kind for kind in _family(error) if kind in PROBLEMS), "Internal")


def problem_of(error: MoorageError, instance: str, request_id: str) -> Problem:
    """Build an error's problem document for the request path `instance`."""
    code = code_of(error)
    kind = PROBLEMS[code]
    return Problem(
        type=f"/errors/{code}",
        code=code,
        title=kind.title,
        status=kind.status,
        detail=error.detail,
        instance=instance,
        request_id=request_id,
        errors=_field_problems(error),
        reasons=_reasons(error),
    )


def encode_problem(
    error: MoorageError, instance: str, request_id: str
) -> tuple[int, bytes, dict[str, str]]:
    """Return the status, body, and extra headers of an error's answer."""
    problem = problem_of(error, instance, request_id)
    return problem.status, msgspec.json.encode(problem), _headers(error, problem.status)


def _family(error: MoorageError) -> list[str]:
    """Return the names of the error's class and its base classes, nearest first."""
    return [kind.__name__ for kind in type(error).__mro__]


def _field_problems(error: MoorageError) -> list[FieldError] | None:
    kinds = (InvalidManifest, MalformedRequest, BindingViolated, FieldManagerConflict)
    if not isinstance(error, kinds) or not error.errors:
        return None
    return list(error.errors[:FIELD_PROBLEMS_MAX])


def _reasons(error: MoorageError) -> dict[str, list[str]] | None:
    match error:
        case BindingRefused():
            return error.reasons
        case EvictionBlocked():
            return {"DisruptionBudget": error.causes}
        case _:
            return None


def _headers(error: MoorageError, status: int) -> dict[str, str]:
    if isinstance(error, TooManyBytes):
        # The rest of a body may still arrive, as with 408 and 413 below.
        return {"retry-after": str(error.retry_after), "connection": "close"}
    if isinstance(error, Unavailable | EvictionBlocked):
        return {"retry-after": str(error.retry_after)}
    if isinstance(error, Unauthorized):
        return {"www-authenticate": "Bearer"}
    if status in {408, 413}:
        # The rest of the body is still arriving, so no other request can be read from the
        # connection.
        return {"connection": "close"}
    if code_of(error) == "IdempotencyKeyInProgress":
        return {"retry-after": "1"}
    return {}
