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
  /** Shows one of the hits, and ends the search. */
  choose: (what: string) => void;
}) {
  const { hits } = props;
  const choices = useMemo(() => (hits ? choicesOf(hits, props.text) : []), [hits, props.text]);
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
                <button class="plain" onClick={() => props.choose(`${kind}:${value}`)}>
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

/** The first hits of each kind; what has just this name comes before all others. */
function choicesOf(hits: Hits, text: string): [string, string][] {
  const wanted = text.trim().toLowerCase();
  const named = (value: string): boolean => value.toLowerCase().split('/').at(-1) === wanted;
  const pods = [...hits.pods].map((each) => each.key);
  const kinds: [string, readonly string[]][] = [['workload', hits.workloads], ['node', [...hits.nodes]], ['pod', pods]];
  const some = (isNamed: boolean): [string, string][] =>
    kinds.flatMap(([kind, values]) =>
      values.filter((each) => named(each) === isNamed).slice(0, SHOWN).map((each): [string, string] => [kind, each]));
  return [...some(true), ...some(false)].slice(0, 2 * SHOWN);
}
