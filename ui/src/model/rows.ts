/** What the page keeps of each node and pod: little, so that 50,000 pods fit into any browser. */
import type { Schemas } from '../api/client';
import { quantity } from './quantity';

export type Amounts = Readonly<Record<string, number>>;

export interface NodeRow {
  readonly name: string;
  readonly version: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly allocatable: Amounts;
  readonly taints: readonly string[];
  readonly unschedulable: boolean;
}

export interface PodRow {
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly version: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly node: string;
  readonly requests: Amounts;
  readonly priority: number;
  /** `namespace/Kind/name` of what the pod belongs to. */
  readonly workload: string;
  readonly created: number;
  readonly leaving: boolean;
  readonly over: boolean;
  readonly gated: boolean;
  readonly message: string;
  readonly group: string;
  /** The kinds of rules that the pod carries about its place, such as `anti-affinity + spread`; empty if it has none. */
  readonly rules: string;
}

type Pod = Schemas['Pod'];
type Node = Schemas['Node'];
type Container = Schemas['Container'];

const EMPTY: Readonly<Record<string, string>> = {};
/** Amounts and labels are alike for many pods, which then share them. */
const shared = new Map<string, Readonly<Record<string, unknown>>>();

export function nodeRow(node: Node): NodeRow {
  const allocatable = amounts(node.status?.allocatable ?? node.status?.capacity);
  return {
    name: node.metadata.name ?? '',
    version: Number(node.metadata.resourceVersion ?? 0),
    labels: (node.metadata.labels ?? EMPTY) as Record<string, string>,
    allocatable,
    taints: (node.spec?.taints ?? []).map((each) => `${each.key}${each.value ? `=${each.value}` : ''}:${each.effect}`),
    unschedulable: node.spec?.unschedulable ?? false,
  };
}

export function podRow(pod: Pod): PodRow {
  const { metadata, spec, status } = pod;
  const namespace = metadata.namespace ?? 'default';
  const name = metadata.name ?? '';
  const scheduled = status?.conditions?.find((each) => each.type === 'PodScheduled');
  const labels = one((metadata.labels ?? EMPTY) as Record<string, string>);
  return {
    key: `${namespace}/${name}`,
    namespace,
    name,
    version: Number(metadata.resourceVersion ?? 0),
    labels,
    node: spec?.nodeName ?? '',
    requests: one(requestsOf(spec)),
    priority: spec?.priority ?? 0,
    workload: workloadOf(metadata, namespace, name, labels),
    created: Date.parse(metadata.creationTimestamp ?? '') || 0,
    leaving: Boolean(metadata.deletionTimestamp),
    over: status?.phase === 'Succeeded' || status?.phase === 'Failed',
    gated: (spec?.schedulingGates?.length ?? 0) > 0,
    message: spec?.nodeName ? '' : (scheduled?.message ?? ''),
    group: groupOf(spec, labels),
    rules: rulesOf(spec),
  };
}

function one<T extends Readonly<Record<string, unknown>>>(value: T): T {
  const key = JSON.stringify(value);
  const known = shared.get(key);
  if (known) return known as T;
  if (shared.size > 100_000) shared.clear();
  shared.set(key, value);
  return value;
}

function amounts(from: unknown): Record<string, number> {
  return Object.fromEntries(Object.entries((from ?? {}) as object).map(([name, text]) => [name, quantity(text)]));
}

/** What a pod asks of its node, as Kubernetes counts it: containers and sidecars, or the largest init container. */
function requestsOf(spec: Pod['spec']): Amounts {
  const total: Record<string, number> = {};
  const sidecars: Record<string, number> = {};
  const peak: Record<string, number> = {};
  for (const each of spec?.containers ?? []) add(total, requested(each));
  for (const each of spec?.initContainers ?? []) {
    const own = requested(each);
    if (each.restartPolicy === 'Always') {
      add(total, own);
      add(sidecars, own);
      atLeast(peak, sidecars);
    } else {
      const during = { ...sidecars };
      add(during, own);
      atLeast(peak, during);
    }
  }
  atLeast(total, peak);
  Object.assign(total, amounts(spec?.resources?.requests));
  add(total, amounts(spec?.overhead));
  total.pods = 1;
  return total;
}

function requested(container: Container): Record<string, number> {
  const { requests, limits } = container.resources ?? {};
  return { ...amounts(limits), ...amounts(requests) };
}

function add(to: Record<string, number>, what: Amounts): void {
  for (const name in what) to[name] = (to[name] ?? 0) + (what[name] ?? 0);
}

function atLeast(to: Record<string, number>, what: Amounts): void {
  for (const name in what) to[name] = Math.max(to[name] ?? 0, what[name] ?? 0);
}

/** The controller, else what the usual labels name, else the name without its number. */
function workloadOf(
  metadata: Pod['metadata'],
  namespace: string,
  name: string,
  labels: Readonly<Record<string, string>>,
): string {
  const owners = (metadata as { ownerReferences?: { kind: string; name: string; controller?: boolean }[] }).ownerReferences;
  const controller = owners?.find((each) => each.controller) ?? owners?.[0];
  if (controller) return `${namespace}/${controller.kind}/${controller.name}`;
  const app = labels['app.kubernetes.io/name'] ?? labels['k8s-app'] ?? labels.app;
  return `${namespace}/App/${app ?? name.replace(/-[0-9]+$/, '')}`;
}

function groupOf(spec: Pod['spec'], labels: Readonly<Record<string, string>>): string {
  return (
    labels['scheduling.x-k8s.io/pod-group'] ?? spec?.schedulingGroup?.podGroupName ?? spec?.workloadRef?.podGroup ?? ''
  );
}

export const ONLY_PREFERENCES = 'only preferences';

/** Required rules about where a pod may be, by kind. Those that are only preferred are named if there are no others. */
function rulesOf(spec: Pod['spec']): string {
  const { affinity, topologySpreadConstraints: spreads = [], nodeSelector } = spec ?? {};
  const { nodeAffinity: node, podAffinity: near, podAntiAffinity: far } = affinity ?? {};
  const selects = Object.keys(nodeSelector ?? {}).length > 0 || Boolean(node?.requiredDuringSchedulingIgnoredDuringExecution);
  const isSpread = (spreads ?? []).some((each) => each.whenUnsatisfiable !== 'ScheduleAnyway');
  const kinds = [
    selects && 'node affinity',
    near?.requiredDuringSchedulingIgnoredDuringExecution?.length && 'affinity',
    far?.requiredDuringSchedulingIgnoredDuringExecution?.length && 'anti-affinity',
    isSpread && 'spread',
  ].filter(Boolean);
  if (kinds.length > 0) return kinds.join(' + ');
  const prefers = [node, near, far].some((each) => each?.preferredDuringSchedulingIgnoredDuringExecution?.length);
  return prefers || (spreads ?? []).length > 0 ? ONLY_PREFERENCES : '';
}
