import { useState } from 'preact/hooks';
import { clusterPath, read, type Schemas } from '../api/client';
import { compare, type Cluster } from '../model/cluster';
import type { Live } from '../model/live';
import type { PodRow } from '../model/rows';
import { Loading, Notice } from '../parts/common';
import { useAnswer } from '../parts/hooks';
import { Matrix } from '../parts/matrix';
import { addressOf, setParams, type Route } from '../route';

const SHOWN = 60;

export function WhyView({ route, live }: { route: Route; live: Live }) {
  const [namespace, name] = route.rest;
  if (namespace === undefined || name === undefined) return <Picker route={route} live={live} />;
  return <Explained key={`${route.cluster}/${namespace}/${name}`} route={route} live={live} namespace={namespace} name={name} />;
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
  const [asked, setAsked] = useState(0);
  const path = clusterPath(route.cluster, 'namespaces', namespace, 'pods', name, 'explanation');
  const answer = useAnswer((signal) => read<Schemas['Explanation']>(path, signal), [path, asked]);
  const node = props.live.cluster.pods.get(`${namespace}/${name}`)?.node ?? '';
  const map = addressOf('map', route.cluster, [], new URLSearchParams({ select: `pod:${namespace}/${name}` }));
  return (
    <div class="column wide">
      <div class="heading">
        <h1><span class="quiet">{namespace}/</span>{name}</h1>
        <a href={map}>On the map</a>
        <button onClick={() => setAsked(asked + 1)}>Ask again</button>
        <a class="end" href={addressOf('why', route.cluster)}>Another pod</a>
      </div>
      {answer.state === 'waiting' && <Loading what="Asking every plugin about every node" />}
      {answer.state === 'failed' && <Notice tone="alarm" title={answer.message} />}
      {answer.state === 'here' && (
        <>
          <Verdict explanation={answer.value} node={node} />
          <Matrix explanation={answer.value} chosen={node || null} nodeLink={nodeLink(route.cluster)} culprits={{
            cluster: route.cluster, namespace, name, asked,
            opened: route.params.get('refusal'), open: (refusal) => setParams(route, { refusal }),
          }} />
          <Notes explanation={answer.value} />
        </>
      )}
    </div>
  );
}

export function nodeLink(cluster: string): (node: string) => string {
  return (node) => addressOf('map', cluster, [], new URLSearchParams({ select: `node:${node}` }));
}

function Verdict({ explanation, node }: { explanation: Schemas['Explanation']; node: string }) {
  const best = explanation.best ?? [];
  const feasible = explanation.feasible ?? [];
  if (explanation.prefilter) {
    return <p class="verdict">{explanation.prefilter.plugin} rejects every node: {explanation.prefilter.reasons.join('; ')}.</p>;
  }
  if (!node) {
    const text = explanation.message || (feasible.length ? 'It waits for its turn: there is a node for it now.' : 'No node is feasible.');
    return <p class="verdict">{text}</p>;
  }
  if (best.includes(node)) {
    const equal = best.length > 1 ? `, as good as ${best.length - 1} others` : '';
    return <p class="verdict">It is on <b>{node}</b>, the best of {feasible.length} feasible nodes{equal}.</p>;
  }
  const now = feasible.includes(node) ? 'Others would be better if it were placed now.' : 'It would not be placed there now.';
  return <p class="verdict">It is on <b>{node}</b>. {now}</p>;
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
