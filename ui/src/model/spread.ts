/** How the pods of a set are spread over the domains of a topology key. */
import type { Schemas } from '../api/client';
import { compare, type Cluster } from './cluster';
import { matches, selectorText } from './matching';
import type { PodRow } from './rows';

export interface Spread {
  readonly counts: readonly (readonly [string, number])[];
  /** The greatest count of a domain less the smallest one. */
  readonly skew: number;
}

export function spreadOf(cluster: Cluster, key: string, pods: Iterable<PodRow>): Spread {
  const counts = new Map<string, number>();
  for (const node of cluster.nodes.values()) {
    const value = node.labels[key];
    if (value !== undefined && !counts.has(value)) counts.set(value, 0);
  }
  for (const pod of pods) {
    const value = cluster.nodes.get(pod.node)?.labels[key];
    if (value !== undefined) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  const sorted = [...counts].sort(([a], [b]) => compare(a, b));
  const numbers = sorted.map(([, count]) => count);
  return { counts: sorted, skew: numbers.length ? Math.max(...numbers) - Math.min(...numbers) : 0 };
}

export interface Rule {
  readonly title: string;
  readonly text: string;
  readonly key: string;
  readonly pods: readonly PodRow[];
  readonly skewMax: number | null;
}

type Spec = NonNullable<Schemas['Pod']['spec']>;
type Term = Schemas['PodAffinityTerm'];

/** The rules of a pod that are about other pods, each with the placed pods that it is about. */
export function rulesOf(cluster: Cluster, spec: Spec, namespace: string): Rule[] {
  const { podAffinity, podAntiAffinity } = spec.affinity ?? {};
  return [
    ...(spec.topologySpreadConstraints ?? []).map((each) => ({
      title: each.whenUnsatisfiable === 'ScheduleAnyway' ? 'Spread, if possible' : 'Spread',
      text: selectorText(each.labelSelector),
      key: each.topologyKey,
      pods: matching(cluster, each.labelSelector, [namespace]),
      skewMax: each.maxSkew ?? 1,
    })),
    ...affinityRules(cluster, namespace, 'Together with', podAffinity),
    ...affinityRules(cluster, namespace, 'Apart from', podAntiAffinity),
  ];
}

function affinityRules(
  cluster: Cluster,
  namespace: string,
  title: string,
  affinity: Schemas['PodAffinity'] | null | undefined,
): Rule[] {
  const rule = (term: Term, preferred: boolean): Rule => ({
    title: preferred ? `${title}, if possible` : title,
    text: selectorText(term.labelSelector),
    key: term.topologyKey,
    pods: matching(cluster, term.labelSelector, namespacesOf(term, namespace)),
    skewMax: null,
  });
  return [
    ...(affinity?.requiredDuringSchedulingRequiredDuringExecution ?? []).map((term) => rule(term, false)),
    ...(affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []).map((term) => rule(term, false)),
    ...(affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map((each) => rule(each.podAffinityTerm, true)),
  ];
}

/** The namespaces that a term names; null for one that selects them by labels, which is shown as all. */
function namespacesOf(term: Term, own: string): readonly string[] | null {
  if (term.namespaceSelector) return null;
  return term.namespaces?.length ? term.namespaces : [own];
}

function matching(
  cluster: Cluster,
  selector: Schemas['LabelSelector'] | null | undefined,
  namespaces: readonly string[] | null,
): PodRow[] {
  return [...cluster.pods.values()].filter(
    (pod) => pod.node && (!namespaces || namespaces.includes(pod.namespace)) && matches(selector, pod.labels),
  );
}
