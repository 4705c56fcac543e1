import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { clusterPath, podPath, read, type Schemas } from '../api/client';
import { colouring, MODE_NAMES, MODES, type Colouring, type Mode, type Theme } from '../map/colours';
import { ALL_NODES } from '../map/layout';
import { compare, type Cluster } from '../model/cluster';
import type { Live } from '../model/live';
import { counted } from '../model/quantity';
import type { PodRow } from '../model/rows';
import { linksOf, rulesOf, type Links, type Rule } from '../model/spread';
import { Choice, Loading, Notice } from '../parts/common';
import { useAnswer } from '../parts/hooks';
import { revisionOf, setParams, type Route } from '../route';
import { selection } from './map-selection';
import { Panel } from './map-panel';
import { Search, found } from './map-search';
import { Stage } from './map-stage';
import { useTheme } from './map-theme';

const ZONE = 'topology.kubernetes.io/zone';
const VIOLATIONS_MILLISECONDS = 1500;
/** Of the time, at most one tenth is spent on asking for violations. */
const PATIENCE = 10;

/** What a map shows: a cluster that is followed, or one as it was. */
export type Shown = Pick<Live, 'cluster' | 'loaded'>;

export function MapView({ route, live }: { route: Route; live: Shown }) {
  const { cluster } = live;
  const revision = revisionOf(route);
  const modes = revision === null ? MODES : MODES.filter((each) => each !== 'violation');
  const theme = useTheme();
  const keys = topologyKeys(cluster);
  const key = route.params.get('key') ?? firstKey(keys);
  const mode = modes.find((each) => each === route.params.get('colour')) ?? 'used';
  const resources = resourcesOf(cluster);
  const resource = route.params.get('resource') ?? resources[0] ?? 'cpu';
  const [zoom, setZoom] = useState(1);
  const violations = useViolations(live, revision === null);
  const violating = useMemo(() => new Set(violations.map((each) => `${each.namespace}/${each.name}`)), [violations]);
  const colours = useColouring(mode, cluster, theme, resource, violating);
  const search = route.params.get('q') ?? '';
  const selected = route.params.get('select') ?? '';
  const hits = useMemo(() => (search ? found(cluster, search) : null), [search, cluster, cluster.version]);
  const pods = singledOut(cluster, selected) ?? hits?.pods ?? null;
  const { rules, links } = useRules(cluster, selected, pods, revision);
  const select = (what: string | null): void => setParams(route, { select: what });

  if (!live.loaded) return <Loading what="Loading the cluster" />;
  if (cluster.nodes.size === 0) return <Empty cluster={cluster} isPast={revision !== null} />;
  return (
    <>
      {revision === null && <h1 class="hidden">Map of the cluster {cluster.name}</h1>}
      <div class="tools" role="group" aria-label="What the map shows">
        <Choice label="Domains" value={key} choose={(value) => setParams(route, { key: value })}
          options={[...keys.map(([name, values]) => [name, `${name} (${values})`] as const), [ALL_NODES, 'none']]} />
        <Choice label="Colour" value={mode} choose={(value) => setParams(route, { colour: value })}
          options={modes.map((each) => [each, MODE_NAMES[each]])} />
        {mode === 'used' && (
          <Choice label="of" value={resource} choose={(value) => setParams(route, { resource: value })}
            options={resources.map((each) => [each, each])} />
        )}
        <Search text={search} hits={hits} search={(q) => setParams(route, { q, select: null })}
          choose={(what) => setParams(route, { q: null, select: what })} />
        <span class="zoom" role="group" aria-label="Size">
          <button aria-label="Smaller" disabled={zoom <= 1} onClick={() => setZoom(Math.max(1, zoom / 1.5))}>−</button>
          <button aria-label="Larger" disabled={zoom >= 16} onClick={() => setZoom(Math.min(16, zoom * 1.5))}>+</button>
        </span>
      </div>
      <div class="map-area">
        <Stage cluster={cluster} topologyKey={key} zoom={zoom} colouring={colours} theme={theme}
          violating={violating} pods={pods} nodes={selected ? null : (hits?.nodes ?? null)} selected={selected}
          links={links.links} select={select} />
        <Panel route={route} revision={revision} cluster={cluster} topologyKey={key} selected={selected} select={select}
          legend={colours.legend} mode={mode} resource={resource} resources={resources} violations={violations}
          rules={rules} links={links} />
      </div>
    </>
  );
}

function Empty({ cluster, isPast }: { cluster: Cluster; isPast: boolean }) {
  if (isPast) return <Notice title={`The cluster ${cluster.name} had no nodes yet.`} />;
  return (
    <Notice title={`The cluster ${cluster.name} has no nodes yet.`}>
      <p>As soon as nodes are stored, they appear here. With a file of manifests:</p>
      <pre><code>moorage apply -f nodes.yaml</code></pre>
      {cluster.pending.size > 0 && <p>{counted(cluster.pending.size, 'pod')} wait for a node.</p>}
    </Notice>
  );
}

/** The pods that a selection is about; null if it is about none. */
function singledOut(cluster: Cluster, selected: string): ReadonlySet<PodRow> | null {
  const [kind, what = ''] = selection(selected);
  if (kind === 'workload') return new Set([...cluster.pods.values()].filter((pod) => pod.workload === what));
  if (kind !== 'pod') return null;
  const pod = cluster.pods.get(what);
  return new Set(pod ? [pod] : []);
}

const NO_LINKS: Links = { links: [], isCut: false };
const NO_RULES: readonly Rule[] = [];

/** The rules of a selected workload, as its first pod has them, with the lines of its affinity. */
function useRules(
  cluster: Cluster,
  selected: string,
  pods: ReadonlySet<PodRow> | null,
  revision: number | null,
): { rules: readonly Rule[]; links: Links } {
  const first = selected.startsWith('workload:') ? pods?.values().next().value : undefined;
  const path = first ? podPath(cluster.name, first.namespace, first.name, revision) : '';
  const answer = useAnswer((signal) => (path ? read<Schemas['Pod']>(path, signal) : Promise.resolve(null)), [path]);
  const spec = answer.state === 'here' ? answer.value?.spec : null;
  return useMemo(() => {
    if (!first || !spec) return { rules: NO_RULES, links: NO_LINKS };
    const rules = rulesOf(cluster, spec, first.namespace);
    return { rules, links: linksOf(cluster, rules, [...(pods ?? [])]) };
  }, [cluster, cluster.version, selected, spec]);
}

/** Labels of nodes with their numbers of values; those that no two nodes share are no domains, except hostnames. */
function topologyKeys(cluster: Cluster): [string, number][] {
  const values = new Map<string, Set<string>>();
  for (const node of cluster.nodes.values()) {
    for (const name in node.labels) {
      let known = values.get(name);
      if (!known) values.set(name, (known = new Set()));
      known.add(node.labels[name] ?? '');
    }
  }
  const rank = (name: string): number => (name === ZONE ? 0 : /zone|region|rack/.test(name) ? 1 : 2);
  return [...values]
    .map(([name, { size }]) => [name, size] as [string, number])
    .sort(([a, n], [b, m]) => rank(a) - rank(b) || Number(n === 1) - Number(m === 1) || compare(a, b));
}

function firstKey(keys: readonly (readonly [string, number])[]): string {
  if (keys[0]?.[0] === ZONE) return ZONE;
  return keys.find(([, values]) => values > 1 && values <= 40)?.[0] ?? ALL_NODES;
}

function resourcesOf(cluster: Cluster): string[] {
  const names = new Set<string>();
  for (const node of cluster.nodes.values()) for (const name in node.allocatable) names.add(name);
  const rank = (name: string): number => ['cpu', 'memory', 'pods'].indexOf(name) + 1 || 4;
  return [...names].sort((a, b) => rank(a) - rank(b) || compare(a, b));
}

/** The colouring stays the same object as long as it means the same, so that nothing is drawn without need. */
function useColouring(
  mode: Mode,
  cluster: Cluster,
  theme: Theme,
  resource: string,
  violating: ReadonlySet<string>,
): Colouring {
  const dependsOnPods = mode === 'owner' || mode === 'priority' || mode === 'rule';
  const made = useMemo(
    () => colouring(mode, cluster, theme, resource, violating),
    [mode, cluster, theme, resource, violating, dependsOnPods ? cluster.version : 0],
  );
  const kept = useRef(made);
  const { meaning } = kept.current;
  if (meaning.length !== made.meaning.length || meaning.some((each, at) => each !== made.meaning[at])) {
    kept.current = made;
  }
  return kept.current;
}

/** The violations of the present state: asked for again after changes, but never so often that it would be a burden. */
function useViolations(live: Shown, isPresent: boolean): Schemas['ViolationItem'][] {
  const [items, setItems] = useState<Schemas['ViolationItem'][]>([]);
  const { cluster, loaded } = live;
  useEffect(() => {
    if (!loaded || !isPresent) return undefined;
    const stop = new AbortController();
    let [timer, isDue, isBusy] = [0, false, false];
    const ask = async (): Promise<void> => {
      [isDue, isBusy] = [false, true];
      const started = performance.now();
      try {
        const answer = await read<Schemas['ViolationsAnswer']>(clusterPath(cluster.name, 'violations'), stop.signal);
        setItems((known) => (JSON.stringify(known) === JSON.stringify(answer.items) ? known : answer.items));
      } catch {
        if (stop.signal.aborted) return;
      }
      const wait = Math.max(VIOLATIONS_MILLISECONDS, PATIENCE * (performance.now() - started));
      timer = window.setTimeout(() => {
        isBusy = false;
        if (isDue) void ask();
      }, wait);
    };
    const due = (): void => {
      isDue = true;
      if (!isBusy) void ask();
    };
    due();
    const ignore = cluster.listen(due);
    return () => {
      stop.abort();
      clearTimeout(timer);
      ignore();
    };
  }, [cluster, loaded, isPresent]);
  return items;
}
