import { useState } from 'preact/hooks';
import { clusterPath, read, told, type Schemas } from '../api/client';
import type { Live } from '../model/live';
import { ago, counted } from '../model/quantity';
import type { PodRow } from '../model/rows';
import { wakesOf } from '../model/wakes';
import { Loading, Notice, Share } from '../parts/common';
import { firstCulprit, Told } from '../parts/culprits';
import { useAnswer, useEvery } from '../parts/hooks';
import { addressOf, type Route } from '../route';

const SHOWN = 50;
const REASON_COUNT = /^0\/[0-9]+ nodes are available: /;

export function WaitingView({ route, live }: { route: Route; live: Live }) {
  const [now, setNow] = useState(Date.now());
  useEvery(5000, () => setNow(Date.now()));
  if (!live.loaded) return <Loading what="Loading the cluster" />;
  const groups = byReason(live.cluster.pending);
  return (
    <div class="column wide">
      <h1>Waiting pods</h1>
      {groups.length === 0 && <Notice title="No pod waits: each has a node." />}
      {groups.map(([reason, pods]) => (
        <section class="card" key={reason}>
          <h2>{reason}</h2>
          <p class="quiet">{counted(pods.length, 'pod')}. {wakesOf(reason)}</p>
          <Pods pods={pods} route={route} now={now} />
        </section>
      ))}
      <Groups route={route} live={live} />
    </div>
  );
}

function Pods(props: { pods: readonly PodRow[]; route: Route; now: number }) {
  return (
    <>
      <div class="table-scroll">
        <table>
          <thead><tr><th>Pod</th><th class="number">Waits for</th><th class="number">Priority</th><th>Why</th></tr></thead>
          <tbody>
            {props.pods.slice(0, SHOWN).map((pod) => (
              <tr key={pod.key}>
                <th scope="row">
                  <a href={addressOf('why', props.route.cluster, [pod.namespace, pod.name])}>{pod.key}</a>
                </th>
                <td class="number">{pod.created ? ago(pod.created, props.now) : '–'}</td>
                <td class="number">{pod.priority}</td>
                <td class="message">
                  {pod.message || '–'}
                  {!pod.gated && <FirstCulprit pod={pod} cluster={props.route.cluster} />}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {props.pods.length > SHOWN && <p class="small quiet">and {(props.pods.length - SHOWN).toLocaleString('en')} more</p>}
    </>
  );
}

/** It is asked for one pod at a time: an explanation looks at every node. */
function FirstCulprit({ pod, cluster }: { pod: PodRow; cluster: string }) {
  const [answer, setAnswer] = useState<Schemas['Culprit'] | string | null>(null);
  const [isAsking, setAsking] = useState(false);
  const ask = async (): Promise<void> => {
    setAsking(true);
    setAnswer(await firstCulprit(cluster, pod.namespace, pod.name).catch(told));
    setAsking(false);
  };
  return (
    <div class="first-culprit">
      <button class="plain small" disabled={isAsking} onClick={() => void ask()} aria-label={`What stands against ${pod.key}?`}>
        {isAsking ? 'Asking…' : answer === null ? 'What stands against it?' : 'Ask again'}
      </button>
      <div role="status">
        {typeof answer === 'string' && <p class="small">{answer}</p>}
        {answer !== null && typeof answer !== 'string' && <Told culprit={answer} cluster={cluster} />}
      </div>
    </div>
  );
}

/** Pods by what they wait for: the reasons of their message, without the numbers of nodes. The oldest pod is first. */
function byReason(pending: ReadonlySet<PodRow>): [string, PodRow[]][] {
  const groups = new Map<string, PodRow[]>();
  for (const pod of pending) {
    const reason = pod.gated ? 'Held back by scheduling gates' : shortReason(pod.message);
    const known = groups.get(reason);
    if (known) known.push(pod);
    else groups.set(reason, [pod]);
  }
  for (const pods of groups.values()) pods.sort((a, b) => a.created - b.created);
  return [...groups].sort((a, b) => b[1].length - a[1].length);
}

function shortReason(message: string): string {
  if (!message) return 'Not tried yet';
  if (!REASON_COUNT.test(message)) return message;
  const reasons = message.replace(REASON_COUNT, '').split(/\.(?: |$)/)[0] ?? '';
  return reasons.split(', ').map((each) => each.replace(/^[0-9]+ /, '')).sort().join(' · ');
}

function Groups({ route, live }: { route: Route; live: Live }) {
  const path = clusterPath(route.cluster, 'podgroups');
  const [tick, setTick] = useState(0);
  useEvery(5000, () => setTick((count) => count + 1));
  const answer = useAnswer((signal) => read<Schemas['PodGroupList']>(path, signal), [path, tick]);
  if (answer.state !== 'here' || answer.value.items.length === 0) return null;
  return (
    <section class="card">
      <h2>Groups</h2>
      <div class="table-scroll">
        <table>
          <thead><tr><th>Group</th><th>Phase</th><th>Placed</th><th>Members without a node</th></tr></thead>
          <tbody>
            {answer.value.items.slice(0, SHOWN).map(({ metadata, spec, status }) => {
              const wanted = spec?.minMember ?? spec?.schedulingPolicy?.gang?.minCount ?? 0;
              const scheduled = status?.scheduled ?? 0;
              const waiting = [...live.cluster.pending]
                .filter((pod) => pod.group === metadata.name && pod.namespace === metadata.namespace);
              return (
                <tr key={`${metadata.namespace}/${metadata.name}`}>
                  <th scope="row">{metadata.namespace}/{metadata.name}</th>
                  <td>{status?.phase ?? '–'}</td>
                  <td><Share share={wanted ? scheduled / wanted : 0}
                    text={`${scheduled} of ${wanted} (${status?.members ?? 0} here)`} /></td>
                  <td>{waiting.slice(0, 8).map((pod) => pod.name).join(', ') || '–'}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}
