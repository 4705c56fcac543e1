/** Repairs of a pod that fits nowhere, as something that "What if" can try: another manifest, and changes of the cluster. */
import { dump } from 'js-yaml';
import { podPath, read, type Schemas } from '../api/client';
import type { Draft } from './planning';
import { quantity } from './quantity';

export type RepairChange = Schemas['Repair']['changes'][number];
type Manifest = Record<string, unknown>;

/** What the page can try of a repair: the pod as it would be, and the changes that a plan makes before it is placed. */
export interface Trial {
  readonly pod: string;
  readonly changes: readonly RepairChange[];
  readonly manifest: string;
  readonly drafts: readonly Draft[];
}

/** New nodes are like one that is chosen in "What if", not like what an address says. */
export function canTry(changes: readonly RepairChange[]): boolean {
  return changes.every((each) => each.op !== 'AddNodes');
}

/** The parameters of the view that tries a repair, so that it can be sent as a link. */
export function trialParams(pod: string, changes: readonly RepairChange[]): URLSearchParams {
  return new URLSearchParams({ pod, repair: JSON.stringify(changes) });
}

/**
 * What the address asks to try; null if it asks for nothing.
 *
 * @throws Error if the address is no repair, and Refusal if the pod cannot be read.
 */
export async function readTrial(cluster: string, params: URLSearchParams, signal: AbortSignal): Promise<Trial | null> {
  const [pod, text] = [params.get('pod') ?? '', params.get('repair')];
  const [namespace, name] = pod.split('/');
  if (text === null || !namespace || !name) return null;
  const changes = changesOf(text);
  const stored = await read<Schemas['Pod']>(podPath(cluster, namespace, name, null), signal);
  return { pod, changes, manifest: dump(repaired(stored as unknown as Manifest, changes)), drafts: changes.flatMap(draftsOf) };
}

function changesOf(text: string): RepairChange[] {
  try {
    const changes: unknown = JSON.parse(text);
    if (Array.isArray(changes) && changes.every((each) => typeof each?.op === 'string')) return changes as RepairChange[];
  } catch {
    // told below
  }
  throw new Error('The address of the page does not say which repair to try.');
}

/** The changes of nodes and of other pods, as "What if" has them. */
function draftsOf(change: RepairChange): Draft[] {
  const draft = (value: string, text = ''): Draft => ({ op: change.op as Draft['op'], key: '', value, text, count: 1 });
  switch (change.op) {
    case 'SetLabels':
      return change.names.map((node) => draft(node, Object.entries(change.labels).map(([key, value]) => `${key}=${value}`).join(' ')));
    case 'SetTaints':
      return change.names.map((node) => draft(node, change.taints.map(taintText).join(' ')));
    case 'UncordonNodes':
      return change.names.map((node) => draft(node));
    case 'RemovePods':
      return change.names.map((name) => draft(`${change.namespace}/${name}`));
    default:
      return [];
  }
}

export function taintText({ key, value, effect }: { key?: string | null; value?: string | null; effect?: string | null }): string {
  return `${key ?? ''}${value ? `=${value}` : ''}${effect ? `:${effect}` : ''}`;
}

/** A pod beside the one that waits, like it but for the changes of the pod itself. */
function repaired(pod: Manifest, changes: readonly RepairChange[]): Manifest {
  const copy = structuredClone(pod);
  const { name, namespace, labels, annotations } = copy.metadata as Manifest;
  const spec = copy.spec as Manifest;
  for (const change of changes) {
    if (change.op === 'DropRule') dropRule(spec, change.path);
    else if (change.op === 'AddToleration') spec.tolerations = [...((spec.tolerations ?? []) as unknown[]), change.toleration];
    else if (change.op === 'LowerRequest') lowerRequest(spec, change.resource, quantity(change.to));
  }
  for (const path of dropped(changes)) takeOut(spec, path);
  const metadata = { name: `${String(name)}-repaired`, namespace, ...(labels ? { labels } : {}), ...(annotations ? { annotations } : {}) };
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec };
}

const SPREAD = /^spec\.topologySpreadConstraints\[(\d+)\]$/;
const SELECTOR = /^spec\.nodeSelector\[(.+)\]$/;

/** The rules that stay in their places, so that the paths of the others still lead to them. */
function dropRule(spec: Manifest, path: string): void {
  const selector = SELECTOR.exec(path)?.[1];
  if (selector !== undefined) delete (spec.nodeSelector as Manifest)[selector];
  const spread = SPREAD.exec(path)?.[1];
  if (spread !== undefined) {
    const constraint = (spec.topologySpreadConstraints as Manifest[])[Number(spread)];
    if (constraint) constraint.whenUnsatisfiable = 'ScheduleAnyway';
  }
}

/** The paths of the rules that go, the last of a list first. */
function dropped(changes: readonly RepairChange[]): string[] {
  const paths = changes.flatMap((each) => (each.op === 'DropRule' ? [each.path] : []));
  const index = (path: string): number => Number(/\[(\d+)\][^[]*$/.exec(path)?.[1] ?? 0);
  return paths.filter((path) => !SPREAD.test(path) && !SELECTOR.test(path)).sort((a, b) => index(b) - index(a));
}

function takeOut(spec: Manifest, path: string): void {
  const steps = path.replace(/^spec\./, '').split(/[.[\]]+/).filter(Boolean);
  remove(spec, steps);
}

/** What is empty afterwards goes, too. */
function remove(place: Manifest, [first = '', ...rest]: readonly string[]): void {
  const child = place[first] as Manifest | undefined;
  if (rest.length > 0 && child) remove(child, rest);
  if (rest.length > 0 && child && Object.keys(child).length > 0) return;
  if (Array.isArray(place)) place.splice(Number(first), 1);
  else delete place[first];
}

/** Each container gives up the same share; what an init container asks for alone is bounded by the sum. */
function lowerRequest(spec: Manifest, resource: string, to: number): void {
  const containers = (spec.containers ?? []) as Manifest[];
  const total = containers.reduce((sum, each) => sum + requested(each, resource), 0);
  for (const each of containers) setRequest(each, resource, total ? (requested(each, resource) / total) * to : 0);
  for (const each of (spec.initContainers ?? []) as Manifest[]) {
    if (requested(each, resource) > to) setRequest(each, resource, to);
  }
  const own = spec.resources as { requests?: Manifest } | undefined;
  if (own?.requests?.[resource] !== undefined) own.requests[resource] = written(resource, to);
}

function requested(container: Manifest, resource: string): number {
  const { requests = {}, limits = {} } = (container.resources ?? {}) as { requests?: Manifest; limits?: Manifest };
  return quantity(requests[resource] ?? limits[resource]);
}

function setRequest(container: Manifest, resource: string, value: number): void {
  if (requested(container, resource) === 0) return;
  const { requests = {}, limits = {} } = (container.resources ?? {}) as { requests?: Manifest; limits?: Manifest };
  requests[resource] = written(resource, value);
  // Of an extended resource a container gets what it asks for, and no more.
  if (resource.includes('/') && limits[resource] !== undefined) limits[resource] = requests[resource];
  container.resources = { ...(container.resources as Manifest), requests, ...(Object.keys(limits).length ? { limits } : {}) };
}

/** Rounded down: a little more would be too much. */
function written(resource: string, value: number): string {
  return resource === 'cpu' ? `${Math.floor(value * 1000 + 1e-6)}m` : String(Math.floor(value + 1e-6));
}
