import { useMemo } from 'preact/hooks';
import type { Cluster } from '../model/cluster';
import { counted } from '../model/quantity';
import type { PodRow } from '../model/rows';

const SHOWN = 8;

export interface Hits {
  readonly nodes: ReadonlySet<string>;
  readonly pods: ReadonlySet<PodRow>;
  readonly workloads: readonly string[];
}

export function found(cluster: Cluster, text: string): Hits {
  const wanted = text.trim().toLowerCase();
  const nodes = new Set<string>();
  for (const name of cluster.nodes.keys()) if (name.toLowerCase().includes(wanted)) nodes.add(name);
  const pods = new Set<PodRow>();
  const workloads = new Set<string>();
  for (const pod of cluster.pods.values()) {
    if (!pod.key.toLowerCase().includes(wanted) && !pod.workload.toLowerCase().includes(wanted)) continue;
    pods.add(pod);
    workloads.add(pod.workload);
  }
  return { nodes, pods, workloads: [...workloads] };
}

export function Search(props: {
  text: string;
  hits: Hits | null;
  search: (text: string | null) => void;
  select: (what: string | null) => void;
}) {
  const { hits } = props;
  const choices = useMemo(() => (hits ? choicesOf(hits) : []), [hits]);
  return (
    <div class="search" role="search">
      <input type="search" placeholder="Find nodes, pods, workloads" aria-label="Find nodes, pods, workloads"
        value={props.text} onInput={(event) => props.search(event.currentTarget.value || null)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') props.search(null);
        }} />
      {hits && (
        <div class="hits">
          <p class="small quiet" role="status">
            {counted(hits.workloads.length, 'workload')}, {counted(hits.pods.size, 'pod')}, {counted(hits.nodes.size, 'node')}
          </p>
          <ul>
            {choices.map(([kind, value]) => (
              <li key={`${kind}:${value}`}>
                <button class="plain" onClick={() => {
                  props.search(null);
                  props.select(`${kind}:${value}`);
                }}>
                  <span class="kind">{kind}</span> {value}
                </button>
              </li>
            ))}
          </ul>
        </div>
      )}
    </div>
  );
}

function choicesOf(hits: Hits): [string, string][] {
  return [
    ...hits.workloads.slice(0, SHOWN).map((each) => ['workload', each] as [string, string]),
    ...[...hits.nodes].slice(0, SHOWN).map((each) => ['node', each] as [string, string]),
    ...[...hits.pods].slice(0, SHOWN).map((each) => ['pod', each.key] as [string, string]),
  ].slice(0, 2 * SHOWN);
}
