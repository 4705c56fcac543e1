/** How the pods of a set are spread over the domains of a topology key. */
import type { Schemas } from '../api/client';
import type { Link } from '../map/links';
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
  /** Absent for topology spread, which is about numbers and not about single pods. */
  readonly relation?: 'together' | 'apart';
  readonly isSoft?: boolean;
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
    ...affinityRules(cluster, namespace, 'together', podAffinity),
    ...affinityRules(cluster, namespace, 'apart', podAntiAffinity),
  ];
}

function affinityRules(
  cluster: Cluster,
  namespace: string,
  relation: 'together' | 'apart',
  affinity: Schemas['PodAffinity'] | null | undefined,
): Rule[] {
  const title = relation === 'together' ? 'Together with' : 'Apart from';
  const rule = (term: Term, preferred: boolean): Rule => ({
    relation,
    isSoft: preferred,
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

/** So many lines can still be told apart, and cost a frame little. */
const LINKS_MAX = 150;

export interface Links {
  readonly links: readonly Link[];
  readonly isCut: boolean;
}

/**
 * Lines from the placed pods of a workload to the pods that their rules of affinity are about.
 *
 * Affinity leads to the pods of the same domain, which are those that fulfil it; anti-affinity to all.
 */
export function linksOf(cluster: Cluster, rules: readonly Rule[], workload: readonly PodRow[]): Links {
  const links: Link[] = [];
  const known = new Set<string>();
  const domain = (pod: PodRow, key: string): string | undefined => cluster.nodes.get(pod.node)?.labels[key];
  for (const { relation, isSoft = false, key, pods } of rules) {
    if (!relation) continue;
    for (const from of workload) {
      if (!from.node) continue;
      for (const to of pods) {
        if (to === from || (relation === 'together' && domain(to, key) !== domain(from, key))) continue;
        const [a, b] = from.key < to.key ? [from.key, to.key] : [to.key, from.key];
        const pair = `${relation} ${isSoft} ${a} ${b}`;
        if (known.has(pair)) continue;
        if (links.length === LINKS_MAX) return { links, isCut: true };
        known.add(pair);
        links.push({ kind: relation, isSoft, from: { node: from.node, pod: from.key }, to: { node: to.node, pod: to.key } });
      }
    }
  }
  return { links, isCut: false };
}
