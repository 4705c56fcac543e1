import { Fragment } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { Schemas } from '../api/client';
import { compare } from '../model/cluster';
import { counted } from '../model/quantity';
import { Refusal, refusalId, type OfRefusals } from './culprits';

type Explanation = Schemas['Explanation'];

const SHOWN = 100;

interface Group {
  readonly reasons: readonly (readonly [string, string])[];
  readonly nodes: readonly string[];
}

/**
 * Why a pod is on its node: nodes by plugins, with what each plugin says.
 *
 * Feasible nodes come first, the best on top; then the others, together with all that were refused for the same reasons.
 */
export function Matrix(props: {
  explanation: Explanation;
  chosen: string | null;
  nodeLink: (node: string) => string;
  /** Where what is behind a refusal can be asked for; absent for pods that are not stored. */
  culprits?: OfRefusals;
}) {
  const { explanation, culprits } = props;
  const opened = culprits?.opened ?? null;
  const plugins = useMemo(() => pluginsOf(explanation), [explanation]);
  const groups = useMemo(() => groupsOf(explanation), [explanation]);
  const feasible = useMemo(() => sorted(explanation), [explanation]);
  const span = plugins.length + 2;
  return (
    <div class="matrix-scroll" role="region" aria-label="Nodes and plugins" tabIndex={0}>
      <table class="matrix">
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col" class="number">Score</th>
            {plugins.map((plugin) => <th scope="col" class="plugin" key={plugin}><span>{spaced(plugin)}</span></th>)}
          </tr>
        </thead>
        <Rows title={`${counted(feasible.length, 'node')} would do`} nodes={feasible} span={span} open tone="good"
          row={(node) => (
            <tr key={node} class={node === props.chosen ? 'chosen' : ''}>
              <th scope="row">
                <a href={props.nodeLink(node)}>{node}</a>
                {node === props.chosen && <span class="tag">chosen</span>}
              </th>
              <td class="number total">{explanation.total?.[node] ?? '–'}</td>
              {plugins.map((plugin) => <Score key={plugin} value={explanation.scores?.[plugin]?.[node]} />)}
            </tr>
          )} />
        {groups.map((group) => (
          <Rows key={group.reasons.join()} nodes={group.nodes} span={span} open={(groups.length <= 6 && group.nodes.length <= 12) || holds(group, plugins, opened)}
            tone="bad" title={`${counted(group.nodes.length, 'node')}: ${group.reasons.map(([, reason]) => reason.replace('node(s) ', '')).join('; ')}`}
            row={(node) => {
              const plugin = plugins.find((each) => refusalId(node, each) === opened);
              return (
                <Fragment key={node}>
                  <tr class="refused">
                    <th scope="row"><a href={props.nodeLink(node)}>{node}</a></th>
                    <td class="number">–</td>
                    {plugins.map((each) => (
                      <Refused key={each} reasons={explanation.filters?.[each]?.[node]} id={refusalId(node, each)} culprits={culprits} />
                    ))}
                  </tr>
                  {culprits && plugin && (
                    <tr class="behind"><td colSpan={span}><Refusal of={culprits} node={node} plugin={plugin} /></td></tr>
                  )}
                </Fragment>
              );
            }} />
        ))}
      </table>
    </div>
  );
}

function Rows(props: {
  title: string;
  nodes: readonly string[];
  span: number;
  open: boolean;
  tone: 'good' | 'bad';
  row: (node: string) => preact.JSX.Element;
}) {
  const [isOpen, setOpen] = useState(props.open);
  const [shown, setShown] = useState(SHOWN);
  const rest = props.nodes.length - shown;
  return (
    <tbody>
      <tr class={`group ${props.tone}`}>
        <th colSpan={props.span} scope="rowgroup">
          <button class="plain" aria-expanded={isOpen} disabled={props.nodes.length === 0} onClick={() => setOpen(!isOpen)}>
            <span class="mark" aria-hidden="true">{props.nodes.length === 0 ? '' : isOpen ? '▾' : '▸'}</span>
            {props.title}
          </button>
        </th>
      </tr>
      {isOpen && props.nodes.slice(0, shown).map(props.row)}
      {isOpen && rest > 0 && (
        <tr><td colSpan={props.span}>
          <button onClick={() => setShown(shown + 5 * SHOWN)}>Show more ({rest.toLocaleString('en')} left)</button>
        </td></tr>
      )}
    </tbody>
  );
}

function Score({ value }: { value: number | undefined }) {
  if (value === undefined) return <td class="number none">·</td>;
  return <td class={`number score s${Math.min(4, Math.floor(value / 20))}`}>{value}</td>;
}

function Refused(props: { reasons: readonly string[] | undefined; id: string; culprits: OfRefusals | undefined }) {
  const { reasons, id, culprits } = props;
  if (!reasons) return <td class="number none">·</td>;
  if (culprits) {
    const isOpen = culprits.opened === id;
    return (
      <td class="number no" title={reasons.join('\n')}>
        <button class="plain" aria-expanded={isOpen} onClick={() => culprits.open(isOpen ? null : id)}>
          <span aria-hidden="true">✕</span><span class="hidden">{reasons.join('; ')}</span>
        </button>
      </td>
    );
  }
  return (
    <td class="number no" title={reasons.join('\n')}>
      <span aria-hidden="true">✕</span><span class="hidden">{reasons.join('; ')}</span>
    </td>
  );
}

function holds(group: Group, plugins: readonly string[], opened: string | null): boolean {
  return opened !== null && group.nodes.some((node) => plugins.some((plugin) => refusalId(node, plugin) === opened));
}

/** Plugins in the order in which they appear in the explanation: those that refuse nodes, then those that only score. */
function pluginsOf(explanation: Explanation): string[] {
  return [...new Set([...Object.keys(explanation.filters ?? {}), ...Object.keys(explanation.scores ?? {})])];
}

function sorted(explanation: Explanation): string[] {
  const total = explanation.total ?? {};
  return [...(explanation.feasible ?? [])].sort((a, b) => (total[b] ?? 0) - (total[a] ?? 0) || compare(a, b));
}

/** The refused nodes, those with equal reasons together; the largest group first. */
function groupsOf(explanation: Explanation): Group[] {
  const reasons = new Map<string, [string, string][]>();
  for (const [plugin, nodes] of Object.entries(explanation.filters ?? {})) {
    for (const [node, texts] of Object.entries(nodes)) {
      const known = reasons.get(node) ?? [];
      known.push(...texts.map((text) => [plugin, text] as [string, string]));
      reasons.set(node, known);
    }
  }
  const groups = new Map<string, { reasons: [string, string][]; nodes: string[] }>();
  for (const [node, each] of reasons) {
    const key = each.join('\n');
    const group = groups.get(key);
    if (group) group.nodes.push(node);
    else groups.set(key, { reasons: each, nodes: [node] });
  }
  for (const group of groups.values()) group.nodes.sort(compare);
  return [...groups.values()].sort((a, b) => b.nodes.length - a.nodes.length);
}

/** Words of a plugin's name may break between them. */
function spaced(name: string): string {
  return name.replace(/([a-z])([A-Z])/g, '$1\u200b$2');
}
