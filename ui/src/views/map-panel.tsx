import type { Schemas } from '../api/client';
import type { Legend, Mode } from '../map/colours';
import { MODE_NAMES } from '../map/colours';
import { ALL_NODES, domainsOf } from '../map/layout';
import type { Cluster } from '../model/cluster';
import { amount, counted } from '../model/quantity';
import type { NodeRow, PodRow } from '../model/rows';
import { spreadOf, type Links, type Rule, type Spread } from '../model/spread';
import { Share, Swatch } from '../parts/common';
import { whyAddress, type Route } from '../route';
import { selection } from './map-selection';

const PODS_SHOWN = 60;
const DOMAINS_SHOWN = 40;
/** Of the domains over which pods are spread; those with the most pods. */
const SPREAD_SHOWN = 12;
const VIOLATIONS_SHOWN = 12;

export interface PanelProps {
  readonly route: Route;
  /** The earlier revision that is shown; null is the present. */
  readonly revision: number | null;
  readonly cluster: Cluster;
  readonly topologyKey: string;
  readonly selected: string;
  readonly select: (what: string | null) => void;
  readonly legend: Legend;
  readonly mode: Mode;
  readonly resource: string;
  readonly resources: readonly string[];
  readonly violations: readonly Schemas['ViolationItem'][];
  readonly rules: readonly Rule[];
  readonly links: Links;
}

export function Panel(props: PanelProps) {
  const [kind, what = ''] = selection(props.selected);
  const { cluster } = props;
  const node = kind === 'node' ? cluster.nodes.get(what) : undefined;
  const pod = kind === 'pod' ? cluster.pods.get(what) : undefined;
  return (
    <aside class="panel" aria-label="Details">
      {props.selected && (
        <button class="plain back" onClick={() => props.select(null)}>← Whole cluster</button>
      )}
      {node && <NodePanel {...props} node={node} />}
      {pod && <PodPanel {...props} pod={pod} />}
      {kind === 'workload' && <WorkloadPanel {...props} workload={what} />}
      {props.selected && !node && !pod && kind !== 'workload' && (
        <p class="quiet">{props.revision === null ? `There is no ${kind} ${what} any more.` : `There was no ${kind} ${what}.`}</p>
      )}
      {!props.selected && <ClusterPanel {...props} />}
    </aside>
  );
}

function ClusterPanel(props: PanelProps) {
  const { cluster } = props;
  return (
    <>
      <dl class="figures">
        <div><dt>Nodes</dt><dd>{cluster.nodes.size.toLocaleString('en')}</dd></div>
        <div><dt>Pods</dt><dd>{cluster.pods.size.toLocaleString('en')}</dd></div>
        <div><dt>Waiting</dt><dd>{cluster.pending.size.toLocaleString('en')}</dd></div>
        {props.revision === null && (
          <div class={props.violations.length ? 'alarm' : ''}>
            <dt>Violations</dt><dd>{props.violations.length.toLocaleString('en')}</dd>
          </div>
        )}
      </dl>
      {props.violations.length > 0 && <Violations {...props} />}
      <LegendList {...props} />
      <Domains {...props} />
    </>
  );
}

function Violations({ violations, select }: PanelProps) {
  return (
    <section>
      <h2>Broken rules</h2>
      <ul class="plain-list">
        {violations.slice(0, VIOLATIONS_SHOWN).map((each) => (
          <li key={`${each.namespace}/${each.name}/${each.rule}`}>
            <button class="plain" onClick={() => select(`pod:${each.namespace}/${each.name}`)}>
              {each.namespace}/{each.name}
            </button>
            <span class="small quiet">{each.reason}</span>
          </li>
        ))}
      </ul>
      {violations.length > VIOLATIONS_SHOWN && (
        <p class="small quiet">and {violations.length - VIOLATIONS_SHOWN} more</p>
      )}
    </section>
  );
}

function LegendList({ legend, mode, resource, select }: PanelProps) {
  return (
    <section>
      <h2>{mode === 'used' ? `Used share of ${resource}` : `Pods by ${MODE_NAMES[mode]}`}</h2>
      <ul class={`legend ${mode}`}>
        {legend.entries.map(({ colour, text, workload }) => (
          <li key={text}>
            <Swatch colour={colour} />
            {workload
              ? <button class="plain" onClick={() => select(`workload:${workload}`)}>{shortened(text)}</button>
              : <span>{text}</span>}
          </li>
        ))}
      </ul>
      {legend.note && <p class="small quiet">{legend.note}</p>}
    </section>
  );
}

function shortened(workload: string): string {
  const [namespace, , name] = workload.split('/');
  return `${namespace}/${name}`;
}

function Domains({ cluster, topologyKey, resource }: PanelProps) {
  const rows = domainsOf(cluster, topologyKey);
  return (
    <section>
      <h2>Domains</h2>
      <div class="table-scroll">
        <table>
          <thead>
            <tr><th>{topologyKey === ALL_NODES ? 'Nodes' : 'Domain'}</th><th class="number">Nodes</th>
              <th class="number">Pods</th><th>{resource} used</th></tr>
          </thead>
          <tbody>
            {rows.slice(0, DOMAINS_SHOWN).map(([value, nodes]) => {
              const sum = summed(cluster, nodes, resource);
              return (
                <tr key={value}>
                  <th scope="row">{value || 'without the label'}</th>
                  <td class="number">{nodes.length.toLocaleString('en')}</td>
                  <td class="number">{sum.pods.toLocaleString('en')}</td>
                  <td>{sum.of ? <Share share={sum.used / sum.of} /> : '–'}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {rows.length > DOMAINS_SHOWN && <p class="small quiet">and {rows.length - DOMAINS_SHOWN} more domains</p>}
    </section>
  );
}

function summed(cluster: Cluster, nodes: readonly string[], resource: string): { pods: number; used: number; of: number } {
  let [pods, used, of] = [0, 0, 0];
  for (const name of nodes) {
    const bucket = cluster.bucket(name);
    pods += bucket.pods.size;
    used += bucket.used[resource] ?? 0;
    of += cluster.nodes.get(name)?.allocatable[resource] ?? 0;
  }
  return { pods, used, of };
}

function NodePanel(props: PanelProps & { node: NodeRow }) {
  const { node, cluster } = props;
  const bucket = cluster.bucket(node.name);
  return (
    <>
      <h2 class="title"><span class="kind">node</span> {node.name}</h2>
      {node.unschedulable && <p class="tag">cordoned</p>}
      <section>
        <h3>Used</h3>
        <dl class="used">
          {props.resources.filter((each) => node.allocatable[each]).map((each) => (
            <div key={each}>
              <dt>{each}</dt>
              <dd><Share share={cluster.share(node, each)}
                text={`${amount(each, bucket.used[each] ?? 0)} of ${amount(each, node.allocatable[each] ?? 0)}`} /></dd>
            </div>
          ))}
        </dl>
      </section>
      <section>
        <h3>{counted(bucket.pods.size, 'pod')}</h3>
        <PodList pods={bucket.ordered} select={props.select} />
      </section>
      {node.taints.length > 0 && <section><h3>Taints</h3><Chips texts={node.taints} /></section>}
      <section>
        <h3>Labels</h3>
        <Chips texts={Object.entries(node.labels).map(([key, value]) => `${key}=${value}`)} />
      </section>
    </>
  );
}

function PodList(props: { pods: readonly PodRow[]; select: (what: string) => void }) {
  return (
    <>
      <ul class="plain-list">
        {props.pods.slice(0, PODS_SHOWN).map((pod) => (
          <li key={pod.key}>
            <button class="plain" onClick={() => props.select(`pod:${pod.key}`)}>{pod.key}</button>
          </li>
        ))}
      </ul>
      {props.pods.length > PODS_SHOWN && <p class="small quiet">and {props.pods.length - PODS_SHOWN} more</p>}
    </>
  );
}

function Chips(props: { texts: readonly string[] }) {
  return <ul class="chips">{props.texts.map((each) => <li key={each}>{each}</li>)}</ul>;
}

function PodPanel(props: PanelProps & { pod: PodRow }) {
  const { pod, route, select } = props;
  const broken = props.violations.filter((each) => `${each.namespace}/${each.name}` === pod.key);
  return (
    <>
      <h2 class="title"><span class="kind">pod</span> {pod.key}</h2>
      <p>
        {pod.node
          ? <>on <button class="plain" onClick={() => select(`node:${pod.node}`)}>{pod.node}</button></>
          : 'waits for a node'}
        {pod.leaving && ', to be stopped'}
      </p>
      <p><a class="primary" href={whyAddress(route.cluster, pod.namespace, pod.name, props.revision)}>
        {pod.node ? 'Why there?' : 'Why not?'}
      </a></p>
      {broken.map((each) => (
        <section class="broken" key={each.rule}>
          <h3>Breaks a rule</h3>
          <p>{each.reason}</p>
          <p class="small quiet wrap">{each.rule}</p>
          {each.conflictsWith.length > 0 && (
            <ul class="plain-list">
              {each.conflictsWith.slice(0, VIOLATIONS_SHOWN).map((other) => (
                <li key={`${other.namespace}/${other.name}`}>
                  in conflict with{' '}
                  <button class="plain" onClick={() => select(`pod:${other.namespace}/${other.name}`)}>
                    {other.namespace}/{other.name}
                  </button>
                </li>
              ))}
            </ul>
          )}
        </section>
      ))}
      <section>
        <h3>Requests</h3>
        <dl class="pairs">
          {Object.entries(pod.requests).filter(([name]) => name !== 'pods').map(([name, value]) => (
            <div key={name}><dt>{name}</dt><dd>{amount(name, value)}</dd></div>
          ))}
          <div><dt>priority</dt><dd>{pod.priority}</dd></div>
        </dl>
      </section>
      <section>
        <h3>Workload</h3>
        <p><button class="plain" onClick={() => select(`workload:${pod.workload}`)}>{pod.workload}</button></p>
      </section>
      <section>
        <h3>Labels</h3>
        <Chips texts={Object.entries(pod.labels).map(([key, value]) => `${key}=${value}`)} />
      </section>
    </>
  );
}

function WorkloadPanel(props: PanelProps & { workload: string }) {
  const { cluster, workload, topologyKey } = props;
  const pods = [...cluster.pods.values()].filter((pod) => pod.workload === workload);
  const waiting = pods.filter((pod) => !pod.node).length;
  return (
    <>
      <h2 class="title"><span class="kind">{workload.split('/')[1]}</span> {shortened(workload)}</h2>
      <p>{counted(pods.length, 'pod')}{waiting > 0 && `, ${waiting} of them without a node`}</p>
      {topologyKey !== ALL_NODES && (
        <section>
          <h3>By {topologyKey}</h3>
          <SpreadTable spread={spreadOf(cluster, topologyKey, pods)} skewMax={null} />
        </section>
      )}
      <Rules {...props} />
      <section>
        <h3>Pods</h3>
        <PodList pods={pods} select={props.select} />
      </section>
    </>
  );
}

/** The rules of the workload, with where the pods are that each rule is about. */
function Rules({ cluster, rules, links: { links, isCut } }: PanelProps) {
  const count = (kind: string): number => links.filter((each) => each.kind === kind).length;
  return (
    <>
      {links.length > 0 && (
        <section>
          <h3>Lines</h3>
          <ul class="legend lines">
            {count('together') > 0 && <li><span class="line-key together" aria-hidden="true" />{count('together')} to pods that fulfil its affinity</li>}
            {count('apart') > 0 && <li><span class="line-key apart" aria-hidden="true" />{count('apart')} to pods that its anti-affinity is about</li>}
          </ul>
          <p class="small quiet">Dashed: only preferred.{isCut && ` These are the first ${links.length}; there are more.`}</p>
        </section>
      )}
      {rules.map((rule) => (
        <section key={`${rule.title}${rule.key}${rule.text}`}>
          <h3>{rule.title}</h3>
          <p class="small"><code>{rule.text}</code> by <code>{rule.key}</code>: {counted(rule.pods.length, 'placed pod')}</p>
          <SpreadTable spread={spreadOf(cluster, rule.key, rule.pods)} skewMax={rule.skewMax} />
        </section>
      ))}
    </>
  );
}

function SpreadTable({ spread, skewMax }: { spread: Spread; skewMax: number | null }) {
  const most = Math.max(1, ...spread.counts.map(([, count]) => count));
  const shown = [...spread.counts].sort((a, b) => b[1] - a[1]).slice(0, SPREAD_SHOWN);
  const rows = spread.counts.length > SPREAD_SHOWN ? shown : spread.counts;
  return (
    <>
      <table class="spread">
        <tbody>
          {rows.map(([value, count]) => (
            <tr key={value}><th scope="row">{value}</th><td><Share share={count / most} text={String(count)} /></td></tr>
          ))}
        </tbody>
      </table>
      <p class="small quiet">
        Skew {spread.skew}{skewMax !== null && `, at most ${skewMax} wanted`}
        {spread.counts.length > SPREAD_SHOWN && `; ${spread.counts.length - SPREAD_SHOWN} more domains`}
      </p>
    </>
  );
}

