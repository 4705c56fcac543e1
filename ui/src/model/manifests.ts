/** Reads what somebody pastes: pods, or what makes pods, as YAML or JSON. */
import { loadAll } from 'js-yaml';
import type { Schemas } from '../api/client';

type Request = Partial<Schemas['PlacementRequest']>;
type Manifest = Record<string, unknown>;

const REPLICAS_MAX = 1000;

/**
 * The placements to ask for.
 *
 * @throws Error if the text is no manifest of pods, or of something with a template of pods.
 */
export function placementsOf(text: string): Request[] {
  const documents = loadAll(text).flatMap(items);
  const pods = documents.filter((each) => each.kind === 'Pod' || (each.kind === undefined && 'spec' in each));
  const others = documents.filter((each) => !pods.includes(each));
  const requests = others.map(templateRequest);
  if (pods.length) requests.unshift({ pods: pods.map(ready) as unknown as Schemas['Pod'][] });
  if (!requests.length) throw new Error('Paste the manifest of a pod, or of a Deployment, StatefulSet, ReplicaSet or Job.');
  return requests;
}

function items(document: unknown): Manifest[] {
  if (document === null || document === undefined) return [];
  if (typeof document !== 'object') throw new Error('This is not a manifest: it has to be an object.');
  const manifest = document as Manifest;
  return Array.isArray(manifest.items) ? manifest.items.flatMap(items) : [manifest];
}

/** A pod as it would be created: without what a cluster has noted on it, and with a name. */
function ready(pod: Manifest): Manifest {
  const metadata = { ...(pod.metadata as Manifest | undefined) };
  for (const name of ['uid', 'resourceVersion', 'creationTimestamp', 'managedFields']) delete metadata[name];
  const spec = { ...(pod.spec as Manifest | undefined) };
  delete spec.nodeName;
  return { apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'default', name: 'pasted', ...metadata }, spec };
}

function templateRequest(manifest: Manifest): Request {
  const spec = (manifest.spec ?? {}) as Manifest;
  const inner = manifest.kind === 'CronJob' ? (((spec.jobTemplate ?? {}) as Manifest).spec as Manifest) : spec;
  const template = inner?.template as { metadata?: Manifest; spec?: unknown } | undefined;
  if (!template?.spec) throw new Error(`A ${String(manifest.kind)} has no template of pods.`);
  const own = (manifest.metadata ?? {}) as { name?: string; namespace?: string };
  const metadata = { namespace: own.namespace ?? 'default', ...template.metadata, name: own.name ?? 'pasted' };
  const replicas = Number(inner.replicas ?? inner.parallelism ?? 1);
  if (!(replicas >= 1 && replicas <= REPLICAS_MAX)) throw new Error(`replicas has to be from 1 to ${REPLICAS_MAX}.`);
  return { template: { metadata, spec: template.spec } as unknown as Schemas['PodTemplate'], replicas };
}
