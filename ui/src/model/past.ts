/** Reads a cluster as it was at an earlier revision. */
import { clusterPath, isRefusal, pages, podPath, read, type Schemas } from '../api/client';
import { Cluster } from './cluster';

export interface Past {
  readonly cluster: Cluster;
  readonly revision: number;
  /** When the revision was committed; empty if the log does not, or no longer, tell. */
  readonly at: string;
}

/** @throws Refusal with 410 if the log no longer tells what was then. */
export async function readPast(name: string, revision: number, signal: AbortSignal): Promise<Past> {
  const cluster = new Cluster(name);
  const params = { revision: String(revision) };
  const fill = async <T extends Schemas['Node'] | Schemas['Pod']>(kind: string, put: (item: T) => void): Promise<void> => {
    for await (const page of pages<T>(clusterPath(name, kind), signal, params)) {
      page.items.forEach(put);
    }
  };
  const [told] = await Promise.all([
    read<Schemas['ReadableRevisions']>(`${clusterPath(name, 'revisions')}?${new URLSearchParams(params)}`, signal),
    fill<Schemas['Node']>('nodes', (node) => cluster.putNode(node)),
    fill<Schemas['Pod']>('pods', (pod) => cluster.putPod(pod)),
  ]);
  cluster.tell();
  return { cluster, revision, at: told.at ?? '' };
}

export interface PastPod {
  /** Empty if the pod waited. */
  readonly node: string;
  /** Whether the change that made the revision gave the pod its node. */
  readonly isPlacement: boolean;
}

export async function readPastPod(
  cluster: string,
  namespace: string,
  name: string,
  revision: number,
  signal: AbortSignal,
): Promise<PastPod> {
  const at = (when: number): Promise<Schemas['Pod']> => read(podPath(cluster, namespace, name, when), signal);
  const pod = await at(revision);
  const node = pod.spec?.nodeName ?? '';
  if (!node || pod.metadata.resourceVersion !== String(revision)) return { node, isPlacement: false };
  try {
    return { node, isPlacement: (await at(revision - 1)).spec?.nodeName !== node };
  } catch (error) {
    return { node, isPlacement: isRefusal(error, 404) };
  }
}
