/** What somebody wants to know of a changed cluster: as a request for a plan, and the planned cluster as one to look at. */
import type { Schemas } from '../api/client';
import type { Link } from '../map/links';
import { Cluster, compare } from './cluster';
import { placementsOf } from './manifests';
import type { PodRow } from './rows';

export const OPS = ['RemoveNodes', 'Drain', 'CordonNodes', 'UncordonNodes', 'SetTaints', 'SetLabels', 'AddNodes', 'RemovePods'] as const;
export type Op = (typeof OPS)[number];

/** One change as it is built on the page. */
export interface Draft {
  readonly op: Op;
  /** A topology key, or empty if `value` is the name of a node, or of a pod as `namespace/name`. */
  readonly key: string;
  readonly value: string;
  /** Taints as `key=value:Effect`, or labels as `key=value`, separated by spaces; a label without a value goes. */
  readonly text: string;
  readonly count: number;
}

type Request = Schemas['PlanRequest'];
type Change = Schemas['PlanChange'];
type Answer = Schemas['PlanAnswer'];

export const STEPS_MAX = 1000;

/**
 * The plan to ask for. Pasted pods are placed after the changes; without them, those that lost their nodes are.
 *
 * @throws Error if a draft or the pasted text cannot be understood, or if they have more than one goal.
 */
export function planOf(cluster: Cluster, drafts: readonly Draft[], pasted: string, template: Schemas['Node'] | null): Request {
  const drained = drafts.filter((each) => each.op === 'Drain');
  const changes = drafts.filter((each) => each.op !== 'Drain').map((each) => changeOf(each, template));
  const common = { changes, explain: 'Summary' as const, stepsMax: STEPS_MAX };
  if (!drained.length) return { ...common, goal: pasted.trim() ? goalOf(pasted) : { type: 'Place', displaced: true } };
  if (pasted.trim()) throw new Error('A plan drains nodes or places pods, not both.');
  return { ...common, goal: { type: 'Drain', nodes: { names: [...nodesOfAll(cluster, drained)] } } };
}

function goalOf(pasted: string): Schemas['PlanGoal'] {
  const requests = placementsOf(pasted);
  const [first] = requests;
  if (!first || requests.length > 1) throw new Error('A plan places pods, or one template, not several of them.');
  const { pods, template, replicas } = first;
  return pods ? { type: 'Place', pods } : { type: 'Place', template: template ?? null, replicas: replicas ?? 1 };
}

/** The names of the nodes that a draft is about, in the cluster as it is. */
export function nodesOf(cluster: Cluster, { op, key, value }: Draft): string[] {
  if (op === 'RemovePods') return [];
  if (!key) return [value];
  return cluster.ordered.filter((node) => node.labels[key] === value).map((node) => node.name);
}

function nodesOfAll(cluster: Cluster, drafts: readonly Draft[]): Set<string> {
  return new Set(drafts.flatMap((each) => nodesOf(cluster, each)));
}

/** The nodes that the server can be told to drain; none if the plan is for other changes as well. */
export function drainedBy(cluster: Cluster, drafts: readonly Draft[]): string[] {
  return drafts.every((each) => each.op === 'Drain') ? [...nodesOfAll(cluster, drafts)] : [];
}

function changeOf(draft: Draft, template: Schemas['Node'] | null): Change {
  const { op, key, value } = draft;
  if (op === 'RemovePods') return removing(value);
  const selection = key ? { topology: { key, values: [value] } } : { names: [value] };
  switch (op) {
    case 'AddNodes':
      if (!template) throw new Error('Say which node the new ones are like.');
      return { op, count: draft.count, template };
    case 'SetTaints':
      return { op, ...selection, taints: words(draft.text).map(taintOf) };
    case 'SetLabels':
      return { op, ...selection, labels: labelsOf(draft.text) };
    case 'Drain':
      throw new Error('A drain is a goal.');
    default:
      return { op, ...selection };
  }
}

function removing(pod: string): Change {
  const [namespace = '', name = ''] = pod.split('/');
  if (!namespace || !name) throw new Error(`${pod} is no pod: namespace/name.`);
  return { op: 'RemovePods', namespace, names: [name] };
}

function words(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}

function taintOf(text: string): Schemas['Taint'] {
  const match = /^([^=:]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)$/.exec(text);
  if (!match) throw new Error(`${text} is no taint: key=value:NoSchedule, or with PreferNoSchedule or NoExecute.`);
  return { key: match[1] ?? '', value: match[2] ?? '', effect: match[3] as Schemas['Taint']['effect'] };
}

function labelsOf(text: string): Record<string, string | null> {
  const pairs = words(text).map((each) => {
    const at = each.indexOf('=');
    return at < 0 ? [each, null] : [each.slice(0, at), each.slice(at + 1)];
  });
  if (!pairs.length) throw new Error('Say which labels the nodes get: key=value.');
  return Object.fromEntries(pairs) as Record<string, string | null>;
}

/** The label whose value the server replaces by the name of each added node. */
const HOSTNAME = 'kubernetes.io/hostname';

/** A new node like one that is there: without its identity, and what stands for it alone. */
export function likeNode(node: Schemas['Node']): Schemas['Node'] {
  const labels = { ...node.metadata.labels };
  if (HOSTNAME in labels) labels[HOSTNAME] = 'new';
  const { allocatable, capacity } = node.status ?? {};
  const status = { ...(allocatable && { allocatable }), ...(capacity && { capacity }) };
  const taints = node.spec?.taints;
  return { metadata: { name: 'new', labels }, spec: taints ? { taints } : {}, status } as Schemas['Node'];
}

export interface Planned {
  readonly cluster: Cluster;
  readonly moved: ReadonlySet<PodRow>;
  /** The nodes that the changes are about. */
  readonly nodes: ReadonlySet<string>;
  readonly links: readonly Link[];
  /** Whether nodes are drained, so that pods without another node stay where they are. */
  readonly isDrain: boolean;
}

/** The nodes that somebody loses stay to be seen without pods, so that one sees from where pods come. */
export function plannedCluster(live: Cluster, drafts: readonly Draft[], answer: Answer, template: Schemas['Node'] | null): Planned {
  const cluster = new Cluster(live.name);
  for (const node of live.nodes.values()) cluster.putNodeRow(node);
  addNodes(cluster, drafts, template);
  const lost = nodesOfAll(live, drafts.filter((each) => each.op === 'RemoveNodes'));
  const moved = new Set<PodRow>();
  const links: Link[] = [];
  const gone = new Set(drafts.filter((each) => each.op === 'RemovePods').map((each) => each.value));
  const steps = new Map(answer.steps.filter((each) => each.to).map((each) => [`${each.namespace}/${each.name}`, each]));
  for (const pod of live.pods.values()) {
    if (gone.has(pod.key)) continue;
    const step = steps.get(pod.key);
    if (!step?.to) {
      if (!lost.has(pod.node)) cluster.putPodRow(pod);
      continue;
    }
    const row = { ...pod, node: step.to };
    cluster.putPodRow(row);
    moved.add(row);
    steps.delete(pod.key);
    if (step.from) links.push({ kind: 'move', isSoft: false, from: { node: step.from }, to: { node: step.to, pod: pod.key } });
  }
  for (const [key, { namespace = '', name, to = '' }] of steps) {
    const row: PodRow = { ...NEW_POD, key, namespace, name, node: to };
    cluster.putPodRow(row);
    moved.add(row);
  }
  const nodes = nodesOfAll(live, drafts.filter((each) => each.op !== 'AddNodes'));
  return { cluster, moved, nodes, links, isDrain: drafts.some((each) => each.op === 'Drain') };
}

const NEW_POD: PodRow = {
  key: '', namespace: '', name: '', node: '', version: 0, labels: {}, requests: {}, priority: 0, workload: 'planned',
  created: 0, leaving: false, over: false, gated: false, message: '', group: '',
    rules: '',
};

function addNodes(cluster: Cluster, drafts: readonly Draft[], template: Schemas['Node'] | null): void {
  if (!template) return;
  for (const { op, count } of drafts) {
    if (op !== 'AddNodes') continue;
    for (let at = 0; at < count; at++) {
      const name = `${template.metadata.name}-${at}`;
      const labels = { ...template.metadata.labels };
      if (HOSTNAME in labels) labels[HOSTNAME] = name;
      cluster.putNode({ ...template, metadata: { ...template.metadata, name, labels } });
    }
  }
}

/** How many pods would get another node, or a first one. */
export function movesOf(answer: Answer): number {
  return answer.steps.filter((each) => each.to).length + answer.stepsTotal - answer.steps.length;
}

/** How many pods would get none, those of others included. */
export function othersOf(answer: Answer): number {
  return answer.unplacedTotal + (answer.otherUnplaced ?? 0);
}

/** The waves of a plan with their steps. */
export function wavesOf(answer: Answer): [number, Schemas['PlanStep'][]][] {
  const waves = new Map<number, Schemas['PlanStep'][]>();
  for (const step of answer.steps) {
    const known = waves.get(step.wave);
    if (known) known.push(step);
    else waves.set(step.wave, [step]);
  }
  return [...waves].sort(([a], [b]) => a - b);
}

/** Labels of nodes by which one may choose, with their values. */
export function choicesOf(cluster: Cluster): Map<string, string[]> {
  const found = new Map<string, Set<string>>();
  for (const node of cluster.nodes.values()) {
    for (const [key, value] of Object.entries(node.labels)) {
      const known = found.get(key);
      if (known) known.add(value);
      else found.set(key, new Set([value]));
    }
  }
  const shared = [...found].filter(([, values]) => values.size < cluster.nodes.size || values.size === 1);
  return new Map(shared.sort(([a], [b]) => compare(a, b)).map(([key, values]) => [key, [...values].sort(compare)]));
}
