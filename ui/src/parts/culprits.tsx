/** What is behind a refusal: the rule, the pods and the domain that it is about, and what is missing. */
import { clusterPath, read, type Schemas } from '../api/client';
import { counted } from '../model/quantity';
import { mapAddress } from '../route';
import { useAnswer } from './hooks';

type Culprit = Schemas['Culprit'];

/** A pod whose refusals can be asked about, and which of them is open. */
export interface OfRefusals {
  readonly cluster: string;
  readonly namespace: string;
  readonly name: string;
  /** The earlier revision that is explained; null is the present. */
  readonly revision: number | null;
  /** It is asked again when this changes. */
  readonly asked: number;
  readonly opened: string | null;
  readonly open: (refusal: string | null) => void;
}

export function refusalId(node: string, plugin: string): string {
  return `${plugin}@${node}`;
}

function asking(cluster: string, namespace: string, name: string, node: string, revision: number | null): string {
  const path = clusterPath(cluster, 'namespaces', namespace, 'pods', name, 'explanation');
  return `${path}?node=${encodeURIComponent(node)}${revision === null ? '' : `&revision=${revision}`}`;
}

/** What one plugin has against the pod on one node. */
export function Refusal({ of, node, plugin }: { of: OfRefusals; node: string; plugin: string }) {
  const path = asking(of.cluster, of.namespace, of.name, node, of.revision);
  const answer = useAnswer((signal) => read<Schemas['Explanation']>(path, signal), [path, of.asked]);
  if (answer.state === 'waiting') return <p class="quiet" role="status">Asking what stands against it</p>;
  if (answer.state === 'failed') return <p class="problem" role="alert">{answer.message}</p>;
  const culprits = (answer.value.culprits ?? []).filter((each) => each.plugin === plugin);
  return (
    <div class="culprits" role="group" aria-label={`Why ${plugin} refuses ${node}`}>
      {culprits.map((each, at) => <Told key={at} culprit={each} cluster={of.cluster} revision={of.revision} />)}
      {culprits.length === 0 && <p class="quiet">It does not refuse this node any more.</p>}
    </div>
  );
}

/** The first thing that stands against a waiting pod, on the node that the fewest plugins refuse. */
export async function firstCulprit(cluster: string, namespace: string, name: string): Promise<Culprit | string> {
  const path = clusterPath(cluster, 'namespaces', namespace, 'pods', name, 'explanation');
  const whole = await read<Schemas['Explanation']>(path);
  if (whole.prefilter) return `${whole.prefilter.plugin} rejects every node: ${whole.prefilter.reasons.join('; ')}`;
  if (whole.feasible?.length) return 'There is a node for it now.';
  const node = leastRefused(whole);
  if (node === null) return whole.message || 'There are no nodes.';
  const answer = await read<Schemas['Explanation']>(asking(cluster, namespace, name, node, null));
  return answer.culprits?.[0] ?? 'There is a node for it now.';
}

function leastRefused(explanation: Schemas['Explanation']): string | null {
  const counts = new Map<string, number>();
  for (const nodes of Object.values(explanation.filters ?? {})) {
    for (const node of Object.keys(nodes)) counts.set(node, (counts.get(node) ?? 0) + 1);
  }
  const [first] = [...counts].sort(([a, n], [b, m]) => n - m || (a < b ? -1 : 1));
  return first?.[0] ?? null;
}

export function Told({ culprit, cluster, revision = null }: { culprit: Culprit; cluster: string; revision?: number | null }) {
  const { domain, missing, rule, pods = [], otherPods = 0 } = culprit;
  const lacks = Object.entries(missing ?? {});
  return (
    <div class="culprit">
      <p><b>{culprit.plugin}</b> on <a href={mapAddress(cluster, `node:${culprit.node}`, revision)}>{culprit.node}</a>: {culprit.reason}</p>
      {rule && <p class="small wrap">by its own rule <code>{rule}</code></p>}
      {domain && (
        <p class="small wrap">
          in <code>{domain.key}={domain.value ?? '(none)'}</code>, which has {counted(domain.count, 'such pod')}
          {domain.skew !== undefined && `; the skew would be ${domain.skew}`}
        </p>
      )}
      {lacks.length > 0 && <p class="small">missing {lacks.map(([name, much]) => `${much} of ${name}`).join(', ')}</p>}
      {pods.length > 0 && (
        <ul class="plain-list">
          {pods.map((pod) => (
            <li key={`${pod.namespace}/${pod.name}`}>
              <a href={mapAddress(cluster, `pod:${pod.namespace}/${pod.name}`, revision)}>{pod.namespace}/{pod.name}</a>
              {pod.rule && <span class="small quiet">by its rule <code>{pod.rule}</code></span>}
            </li>
          ))}
        </ul>
      )}
      {otherPods > 0 && <p class="small quiet">and {counted(otherPods, 'more pod')}</p>}
    </div>
  );
}
