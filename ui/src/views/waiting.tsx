import { useState } from 'preact/hooks';
import { clusterPath, read, told, type Schemas } from '../api/client';
import { compare } from '../model/cluster';
import type { Live } from '../model/live';
import { ago, counted } from '../model/quantity';
import type { PodRow } from '../model/rows';
import { groupWakes, wakesOf } from '../model/wakes';
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
  const members = membersByGroup(live);
  const state = [...members].map(([key, pods]) => `${key} ${pods.length} ${placed(pods)}`).join();
  const answer = useAnswer((signal) => read<Schemas['PodGroupList']>(path, signal), [path, tick, state]);
  if (answer.state !== 'here' || answer.value.items.length === 0) return null;
  return (
    <section class="card" aria-labelledby="groups">
      <h2 id="groups">Groups</h2>
      {answer.value.items.slice(0, SHOWN).map((each) => {
        const key = `${each.metadata.namespace}/${each.metadata.name}`;
        return <Group key={key} name={key} group={each} members={members.get(key) ?? []} route={route} />;
      })}
      {answer.value.items.length > SHOWN && <p class="small quiet">and {(answer.value.items.length - SHOWN).toLocaleString('en')} more</p>}
    </section>
  );
}

function placed(members: readonly PodRow[]): number {
  return members.filter((each) => each.node && !each.over).length;
}

/** The members of each group that are here, those that wait first. */
function membersByGroup(live: Live): Map<string, PodRow[]> {
  const found = new Map<string, PodRow[]>();
  for (const pod of live.cluster.pods.values()) {
    if (!pod.group) continue;
    const key = `${pod.namespace}/${pod.group}`;
    const known = found.get(key);
    if (known) known.push(pod);
    else found.set(key, [pod]);
  }
  for (const pods of found.values()) {
    pods.sort((a, b) => Number(a.node !== '') - Number(b.node !== '') || compare(a.name, b.name));
  }
  return found;
}

function Group(props: { name: string; group: Schemas['PodGroup']; members: readonly PodRow[]; route: Route }) {
  const { spec, status } = props.group;
  const [isOpen, setOpen] = useState<boolean | null>(null);
  const wanted = spec?.minMember ?? spec?.schedulingPolicy?.gang?.minCount ?? 1;
  const scheduled = placed(props.members);
  const waits = props.members.some((each) => !each.node) || scheduled < wanted;
  return (
    <details class="group" open={isOpen ?? waits} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <b>{props.name}</b> <span class="tag">{status?.phase ?? '–'}</span>
        <Share share={scheduled / wanted} text={`${scheduled} of ${wanted} placed`} />
      </summary>
      {waits && <p class="small">{groupWakes(props.members, wanted, scheduled)}</p>}
      <Members members={props.members} route={props.route} />
    </details>
  );
}

function Members({ members, route }: { members: readonly PodRow[]; route: Route }) {
  if (members.length === 0) return <p class="small quiet">None of its members is here.</p>;
  return (
    <>
      <ul class="plain-list">
        {members.slice(0, SHOWN).map((pod) => (
          <li key={pod.key}>
            <a href={addressOf('why', route.cluster, [pod.namespace, pod.name])}>{pod.name}</a>
            <span class="quiet">{pod.node ? ` on ${pod.node}` : `: ${pod.message || (pod.gated ? 'held back by scheduling gates' : 'not tried yet')}`}</span>
          </li>
        ))}
      </ul>
      {members.length > SHOWN && <p class="small quiet">and {counted(members.length - SHOWN, 'more member')}</p>}
    </>
  );
}
