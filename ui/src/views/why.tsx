import { useState } from 'preact/hooks';
import { isRefusal, podPath, read, type Schemas } from '../api/client';
import { compare, type Cluster } from '../model/cluster';
import type { Live } from '../model/live';
import { readPastPod, type PastPod } from '../model/past';
import type { PodRow } from '../model/rows';
import { Loading, Notice } from '../parts/common';
import { useAnswer } from '../parts/hooks';
import { Matrix } from '../parts/matrix';
import { Repairs } from '../parts/repairs';
import { addressOf, mapAddress, revisionOf, setParams, whyAddress, type Route } from '../route';
import { COMPACTED } from './past';

const SHOWN = 60;

export function WhyView({ route, live }: { route: Route; live: Live }) {
  const [namespace, name] = route.rest;
  if (namespace === undefined || name === undefined) return <Picker route={route} live={live} />;
  return <Explained key={`${route.cluster}/${namespace}/${name}@${revisionOf(route)}`} route={route} live={live} namespace={namespace} name={name} />;
}

function Picker({ route, live }: { route: Route; live: Live }) {
  const [text, setText] = useState('');
  if (!live.loaded) return <Loading what="Loading the cluster" />;
  const pods = podsFor(live.cluster, text);
  return (
    <div class="column">
      <h1>Why is a pod where it is?</h1>
      <label class="field stacked">
        <span>Pod</span>
        <input type="search" value={text} placeholder="namespace or name"
          onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      {pods.length === 0 && <p class="quiet">No pod is called so.</p>}
      <ul class="pick">
        {pods.slice(0, SHOWN).map((pod) => (
          <li key={pod.key}>
            <a href={addressOf('why', route.cluster, [pod.namespace, pod.name])}>{pod.key}</a>
            <span class="quiet">{pod.node || 'waits for a node'}</span>
          </li>
        ))}
      </ul>
      {pods.length > SHOWN && <p class="small quiet">and {(pods.length - SHOWN).toLocaleString('en')} more</p>}
    </div>
  );
}

function podsFor(cluster: Cluster, text: string): PodRow[] {
  const wanted = text.trim().toLowerCase();
  const found = [...cluster.pods.values()].filter((pod) => pod.key.toLowerCase().includes(wanted));
  return found.sort((a, b) => Number(a.node !== '') - Number(b.node !== '') || compare(a.key, b.key));
}

function Explained(props: { route: Route; live: Live; namespace: string; name: string }) {
  const { route, namespace, name } = props;
  const { cluster } = route;
  const revision = revisionOf(route);
  const [asked, setAsked] = useState(0);
  const path = podPath(cluster, namespace, name, revision, 'explanation');
  const answer = useAnswer((signal) => explain(path, signal), [path, asked]);
  const past = usePastPod(cluster, namespace, name, revision);
  const node = (revision === null ? props.live.cluster.pods.get(`${namespace}/${name}`)?.node : past?.node) ?? '';
  return (
    <div class="column wide">
      <div class="heading">
        <h1><span class="quiet">{namespace}/</span>{name}</h1>
        <a href={mapAddress(cluster, `pod:${namespace}/${name}`, revision)}>On the map</a>
        {revision === null && <button onClick={() => setAsked(asked + 1)}>Ask again</button>}
        <a class="end" href={addressOf('why', cluster)}>Another pod</a>
      </div>
      {revision !== null && (
        <div class="as-of">
          <p><b>As of revision {revision.toLocaleString('en')}</b>, on the cluster as it was then</p>
          <a href={whyAddress(cluster, namespace, name, null)}>Explain it now</a>
        </div>
      )}
      {answer.state === 'waiting' && <Loading what="Asking every plugin about every node" />}
      {answer.state === 'failed' && <Notice tone="alarm" title={answer.message} />}
      {answer.state === 'here' && (
        <>
          {(revision === null || past) && (
            <Verdict explanation={answer.value} node={node} words={revision === null ? NOW : past?.isPlacement ? PLACEMENT : THEN} />
          )}
          {revision === null && !node && !answer.value.feasible?.length && (
            <Repairs cluster={cluster} namespace={namespace} name={name} asked={asked} />
          )}
          <Matrix explanation={answer.value} chosen={node || null} nodeLink={nodeLink(cluster, revision)} culprits={{
            cluster, namespace, name, revision, asked,
            opened: route.params.get('refusal'), open: (refusal) => setParams(route, { refusal }),
          }} />
          <Notes explanation={answer.value} />
        </>
      )}
    </div>
  );
}

async function explain(path: string, signal: AbortSignal): Promise<Schemas['Explanation']> {
  try {
    return await read<Schemas['Explanation']>(path, signal);
  } catch (error) {
    throw isRefusal(error, 410) ? new Error(COMPACTED) : error;
  }
}

/** Where the pod was at a revision; null as long as it is not known, and for the present. */
function usePastPod(cluster: string, namespace: string, name: string, revision: number | null): PastPod | null {
  const answer = useAnswer(
    (signal) => (revision === null ? Promise.resolve(null) : readPastPod(cluster, namespace, name, revision, signal)),
    [cluster, namespace, name, revision],
  );
  return answer.state === 'here' ? answer.value : null;
}

export function nodeLink(cluster: string, revision: number | null = null): (node: string) => string {
  return (node) => mapAddress(cluster, `node:${node}`, revision);
}

/** The words of a verdict about the present, about an earlier state, and about the placement itself. */
const NOW = {
  on: 'It is on',
  turn: 'It waits for its turn: there is a node for it now.',
  nowhere: 'No node is feasible.',
  others: 'Others would be better if it were placed now.',
  refused: 'It would not be placed there now.',
};
const THEN: typeof NOW = {
  on: 'It was on',
  turn: 'It waited for its turn: there was a node for it.',
  nowhere: 'No node was feasible.',
  others: 'Others would have been better if it had been placed then.',
  refused: 'It would not have been placed there then.',
};
const PLACEMENT: typeof NOW = { ...THEN, on: 'It was placed on', others: 'Others were better.', refused: 'Filters rejected it there.' };

function Verdict({ explanation, node, words }: { explanation: Schemas['Explanation']; node: string; words: typeof NOW }) {
  const best = explanation.best ?? [];
  const feasible = explanation.feasible ?? [];
  if (explanation.prefilter) {
    return <p class="verdict">{explanation.prefilter.plugin} rejects every node: {explanation.prefilter.reasons.join('; ')}.</p>;
  }
  if (!node) return <p class="verdict">{explanation.message || (feasible.length ? words.turn : words.nowhere)}</p>;
  if (best.includes(node)) {
    const equal = best.length > 1 ? `, as good as ${best.length - 1} others` : '';
    return <p class="verdict">{words.on} <b>{node}</b>, the best of {feasible.length} feasible nodes{equal}.</p>;
  }
  return <p class="verdict">{words.on} <b>{node}</b>. {feasible.includes(node) ? words.others : words.refused}</p>;
}

function Notes({ explanation }: { explanation: Schemas['Explanation'] }) {
  const skipped = explanation.scoreSkipped ?? [];
  return (
    <div class="notes small quiet">
      <p>
        Scores are normalised to 0–100 and weighted in the sum. ✕ is a refusal, and leads to what is behind it; · means that a plugin has nothing to say.
        {skipped.length > 0 && ` Not scoring this pod: ${skipped.join(', ')}.`}
      </p>
      {(explanation.exemptions ?? []).map((each) => (
        <p key={each.rule}>Left out: <code>{each.rule}</code>, {each.reason}.</p>
      ))}
    </div>
  );
}
