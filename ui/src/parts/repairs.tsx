/** What would have to change so that a pod fits that no node takes. */
import { Fragment, type ComponentChildren } from 'preact';
import { clusterPath, read, type Schemas } from '../api/client';
import { amount, quantity } from '../model/quantity';
import { canTry, taintText, trialParams, type RepairChange } from '../model/repairs';
import { addressOf, mapAddress } from '../route';
import { useAnswer } from './hooks';

export function Repairs(props: { cluster: string; namespace: string; name: string; asked: number }) {
  const { cluster, namespace, name, asked } = props;
  const path = clusterPath(cluster, 'namespaces', namespace, 'pods', name, 'repairs');
  const answer = useAnswer((signal) => read<Schemas['RepairsAnswer']>(path, signal), [path, asked]);
  if (answer.state === 'here' && answer.value.fits) return null;
  return (
    <section class="card repairs" aria-labelledby="repairs">
      <h2 id="repairs">What would let it fit</h2>
      <div role="status">
        {answer.state === 'waiting' && <p class="quiet">Trying out changes of the pod, of nodes and of who is there</p>}
        {answer.state === 'here' && <p class="small quiet">{summary(answer.value)}</p>}
      </div>
      {answer.state === 'failed' && <p class="problem" role="alert">{answer.message}</p>}
      {answer.state === 'here' && answer.value.repairs.length > 0 && (
        <ol>
          {answer.value.repairs.map((each, at) => (
            <li key={at}><Repair repair={each} cluster={cluster} pod={`${namespace}/${name}`} /></li>
          ))}
        </ol>
      )}
    </section>
  );
}

function summary({ repairs, complete, unfinished }: Schemas['RepairsAnswer']): string {
  const early = complete ? '' : ` The search ended early, so there may be others, and smaller ones. ${unfinished ?? ''}`;
  if (repairs.length === 0) return `None was found within the bounds of the search.${early}`;
  return `Each was tried out, and none of its changes can be left out.${early}`;
}

function Repair({ repair, cluster, pod }: { repair: Schemas['Repair']; cluster: string; pod: string }) {
  const { changes, places, why, moves = [] } = repair;
  return (
    <>
      <p class="wrap sentence">
        {changes.map((each, at) => (
          <Fragment key={at}>{at > 0 && ', and '}<Change change={each} cluster={cluster} /></Fragment>
        ))}
        : then it gets {changes.some((each) => each.op === 'AddNodes') ? places : <a href={mapAddress(cluster, `node:${places}`, null)}>{places}</a>}.
      </p>
      <p class="small">
        {canTry(changes) && (
          <a href={addressOf('what-if', cluster, [], trialParams(pod, changes))}>Try it<span class="hidden">: {changes.map(plain).join(', and ')}</span></a>
        )}
        <span class="quiet">{[why, ...moves.map(moved)].join('; ')}</span>
      </p>
    </>
  );
}

function Change({ change, cluster }: { change: RepairChange; cluster: string }) {
  if (change.op === 'DropRule') return <>give up the rule <code>{change.path}</code>{softer(change.path)}</>;
  if (change.op === 'RemovePods') {
    return <>remove {listed(change.names.map((name) => <Place cluster={cluster} kind="pod" name={`${change.namespace}/${name}`} />))}</>;
  }
  if (!('names' in change)) return <>{plain(change)}</>;
  const [before, after] = aroundNodes(change);
  return <>{before} {listed(change.names.map((name) => <Place cluster={cluster} kind="node" name={name} />))}{after}</>;
}

function Place({ cluster, kind, name }: { cluster: string; kind: string; name: string }) {
  return <a href={mapAddress(cluster, `${kind}:${name}`, null)}>{name}</a>;
}

function listed(items: readonly ComponentChildren[]): ComponentChildren {
  return items.map((each, at) => <Fragment key={at}>{at > 0 && ', '}{each}</Fragment>);
}

/** A change as a sentence without its full stop. */
export function plain(change: RepairChange): string {
  switch (change.op) {
    case 'DropRule':
      return `give up the rule ${change.path}${softer(change.path)}`;
    case 'AddToleration':
      return `tolerate the taint ${taintText(change.toleration)}`;
    case 'LowerRequest':
      return lowered(change);
    case 'AddNodes':
      return `add a node ${shape(change.template)}`;
    case 'RemovePods':
      return `remove ${change.names.map((name) => `${change.namespace}/${name}`).join(', ')}`;
    default: {
      const [before, after] = aroundNodes(change);
      return `${before} ${change.names.join(', ')}${after}`;
    }
  }
}

function moved({ namespace, name, to }: Schemas['RepairMove']): string {
  return `${namespace}/${name} ${to ? `then finds room on ${to}` : 'finds no other node'}`;
}

/** What a new node is like, by its resources and labels. */
function shape(template: Schemas['AddNodes']['template']): string {
  const { metadata, status } = template as unknown as Schemas['Node'];
  const has = Object.entries(status?.allocatable ?? {}).map(([name, value]) => `${value} ${name}`);
  const labels = Object.entries(metadata.labels ?? {}).map(([key, value]) => `${key}=${value}`);
  return `of ${has.join(', ')}${labels.length ? ` with the labels ${labels.join(' ')}` : ''}`;
}

function lowered({ resource, from, to }: Schemas['LowerRequest']): string {
  const less = amount(resource, quantity(from) - quantity(to));
  if (quantity(to) === 0) return `request no ${resource} at all instead of ${from}`;
  return `request ${to} of ${resource} instead of ${from}, which is ${less} less`;
}

function softer(path: string): string {
  return path.startsWith('spec.topologySpreadConstraints') ? ' (it may stay as ScheduleAnyway)' : '';
}

/** The words before and after the names of nodes. */
function aroundNodes(change: Schemas['UncordonNodes'] | Schemas['SetLabels'] | Schemas['SetTaints']): [string, string] {
  if (change.op === 'UncordonNodes') return ['uncordon', ''];
  if (change.op === 'SetLabels') return ['label', ` with ${Object.entries(change.labels).map(([key, value]) => `${key}=${value}`).join(' ')}`];
  return change.taints.length === 0
    ? ['take all taints from', '']
    : ['leave', ` no taints but ${change.taints.map(taintText).join(' ')}`];
}
