/** A map on which a pod that is tried can be dropped, or put by keyboard: it says whether it could be on that node. */
import { useMemo, useState } from 'preact/hooks';
import type { Schemas } from '../api/client';
import { colouring } from '../map/colours';
import { ALL_NODES } from '../map/layout';
import type { Cluster } from '../model/cluster';
import { selection } from './map-selection';
import { Stage } from './map-stage';
import { useTheme } from './map-theme';

const ZONE = 'topology.kubernetes.io/zone';
const NOBODY: ReadonlySet<string> = new Set();

export function DropMap(props: { cluster: Cluster; pod: string; explanation: Schemas['Explanation'] }) {
  const { cluster, pod, explanation } = props;
  const theme = useTheme();
  const colours = useMemo(() => colouring('used', cluster, theme, 'cpu', NOBODY), [cluster, theme, cluster.version]);
  const [node, setNode] = useState<string | null>(null);
  const feasible = useMemo(() => new Set(explanation.feasible ?? []), [explanation]);
  const key = [...cluster.nodes.values()].some((each) => ZONE in each.labels) ? ZONE : ALL_NODES;
  const choose = (what: string | null): void => {
    const [kind, name = ''] = selection(what ?? '');
    setNode((kind === 'pod' ? cluster.pods.get(name)?.node : name) || null);
  };
  return (
    <section class="dropping">
      <h3>Would it fit somewhere else?</h3>
      <p class="small quiet">
        Drag <span class="tag" draggable onDragStart={(event) => event.dataTransfer?.setData('text/plain', pod)}>{pod}</span>{' '}
        to a node, click on one, or go there with the arrow keys and press Enter. The nodes that would do stand out.
      </p>
      <p role="status" class="dropped">{node && <Told node={node} explanation={explanation} />}</p>
      <div class="planned-map">
        <Stage cluster={cluster} topologyKey={key} zoom={1} colouring={colours} theme={theme} violating={NOBODY} pods={null}
          nodes={feasible} links={[]} selected={node ? `node:${node}` : ''} select={choose} drop={setNode} />
      </div>
    </section>
  );
}

function Told({ node, explanation }: { node: string; explanation: Schemas['Explanation'] }) {
  const total = explanation.total ?? {};
  const score = total[node];
  if (explanation.feasible?.includes(node)) {
    const better = Object.values(total).filter((each) => each > (score ?? 0)).length;
    return <><b>It could be on {node}.</b> {better ? `${better} would be better, by the scores.` : 'No node would be better.'}</>;
  }
  const reasons = Object.entries(explanation.filters ?? {})
    .flatMap(([plugin, nodes]) => (nodes[node] ?? []).map((reason) => `${plugin}: ${reason.replace('node(s) ', '')}`));
  return <><b>It could not be on {node}.</b> {reasons.join('; ') || explanation.message}</>;
}
