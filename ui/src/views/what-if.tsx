import { useEffect, useState } from 'preact/hooks';
import { clusterPath, post, told, type Schemas } from '../api/client';
import type { Live } from '../model/live';
import { placementsOf } from '../model/manifests';
import { counted } from '../model/quantity';
import { readTrial, type Trial } from '../model/repairs';
import { Loading, Notice } from '../parts/common';
import { useAnswer } from '../parts/hooks';
import { Matrix } from '../parts/matrix';
import { plain } from '../parts/repairs';
import { addressOf, whyAddress, type Route } from '../route';
import { DropMap } from './drop-map';
import { PlanView } from './plan';
import { nodeLink } from './why';

type Result = Schemas['PlacementResult'];

const DRAFT = 'moorage.draft';
const SHOWN = 200;
const EXAMPLE = `apiVersion: apps/v1
kind: Deployment
metadata: {name: trial, namespace: default}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: trial}}
    spec:
      containers:
        - name: main
          resources: {requests: {cpu: 500m, memory: 512Mi}}
      topologySpreadConstraints:
        - topologyKey: topology.kubernetes.io/zone
          maxSkew: 1
          whenUnsatisfiable: DoNotSchedule
          labelSelector: {matchLabels: {app: trial}}
`;

/** What would happen if; the address may say which repair of a pod to try. */
export function WhatIfView({ route, live }: { route: Route; live: Live }) {
  const asked = `${route.cluster} ${route.params.get('pod')} ${route.params.get('repair')}`;
  const answer = useAnswer((signal) => readTrial(route.cluster, route.params, signal).then((trial) => ({ trial, asked })), [asked]);
  if (answer.state === 'failed') return <Notice tone="alarm" title={answer.message} />;
  if (answer.state === 'waiting' || answer.value.asked !== asked) return <Loading what="Reading what to try" />;
  return <Trying key={asked} route={route} live={live} trial={answer.value.trial} />;
}

/** Where pods would go: a dry run, which stores nothing. */
function Trying({ route, live, trial }: { route: Route; live: Live; trial: Trial | null }) {
  const isOfPod = trial !== null && trial.drafts.length === 0;
  const [text, setText] = useState(isOfPod ? trial.manifest : (sessionStorage.getItem(DRAFT) ?? EXAMPLE));
  const [results, setResults] = useState<readonly Result[] | null>(null);
  const [problem, setProblem] = useState('');
  const [isAsking, setAsking] = useState(false);
  const [chosen, setChosen] = useState(0);

  const ask = async (event: Event): Promise<void> => {
    event.preventDefault();
    await run();
  };
  const run = async (): Promise<void> => {
    setAsking(true);
    setProblem('');
    try {
      setResults(await tried(route.cluster, text));
      setChosen(0);
    } catch (error) {
      setResults(null);
      setProblem(told(error));
    }
    setAsking(false);
  };
  useEffect(() => {
    if (isOfPod) void run();
  }, []);

  return (
    <div class="column wide">
      {trial && <Tried trial={trial} cluster={route.cluster} />}
      <h1>Where would it go?</h1>
      <form class="paste" onSubmit={(event) => void ask(event)}>
        <label class="field stacked">
          <span>A pod, or a Deployment, StatefulSet, ReplicaSet or Job, as YAML or JSON</span>
          <textarea rows={16} spellcheck={false} value={text} onInput={(event) => {
            setText(event.currentTarget.value);
            sessionStorage.setItem(DRAFT, event.currentTarget.value);
          }} />
        </label>
        <div class="actions">
          <button class="primary" disabled={isAsking}>{isAsking ? 'Trying…' : 'Try it'}</button>
          <span class="small quiet">This is a dry run: nothing is stored.</span>
        </div>
        {problem && <p class="problem" role="alert">{problem}</p>}
      </form>
      {results && <Results results={results} route={route} live={live} chosen={chosen} choose={setChosen} />}
      {live.loaded && <PlanView key={route.cluster} route={route} live={live} trial={isOfPod ? null : trial} />}
    </div>
  );
}

function Tried({ trial: { pod, changes }, cluster }: { trial: Trial; cluster: string }) {
  const [namespace = '', name = ''] = pod.split('/');
  return (
    <div class="as-of">
      <p><b>A repair of {pod}</b>: {changes.map(plain).join(', and ')}</p>
      <a href={whyAddress(cluster, namespace, name, null)}>Back to the pod</a>
    </div>
  );
}

async function tried(cluster: string, text: string): Promise<Result[]> {
  const results: Result[] = [];
  for (const request of placementsOf(text)) {
    const body = { ...request, dryRun: true, explain: 'Full', onUnschedulable: 'Reject' };
    const answer = await post<Schemas['PlacementAnswer']>(clusterPath(cluster, 'placements'), body);
    results.push(...answer.results);
  }
  return results;
}

function Results(props: { results: readonly Result[]; route: Route; live: Live; chosen: number; choose: (at: number) => void }) {
  const { results, route, live } = props;
  const placed = results.filter((each) => each.nodeName).length;
  const shown = results[props.chosen];
  const explanation = shown?.explanation;
  return (
    <section aria-live="polite">
      <h2>{placed === results.length
        ? `${counted(placed, 'pod')} would be placed`
        : `${placed} of ${counted(results.length, 'pod')} would be placed`}</h2>
      <ul class="outcomes">
        {results.slice(0, SHOWN).map((each, at) => (
          <li key={`${each.namespace}/${each.name}`}>
            <button aria-pressed={at === props.chosen} onClick={() => props.choose(at)}
              class={each.nodeName ? 'good' : 'bad'}>
              <b>{each.namespace}/{each.name}</b>
              <span>{each.nodeName ? `→ ${each.nodeName}` : (each.outcome)}</span>
            </button>
          </li>
        ))}
      </ul>
      {shown?.message && <p class="verdict">{shown.message}</p>}
      {shown?.nodeName && (
        <p><a href={addressOf('map', route.cluster, [], new URLSearchParams({ select: `node:${shown.nodeName}` }))}>
          {shown.nodeName} on the map
        </a></p>
      )}
      {explanation && 'filters' in explanation && (
        <>
          <Matrix key={props.chosen} explanation={explanation} chosen={shown?.nodeName ?? null} nodeLink={nodeLink(route.cluster)} />
          {live.loaded && live.cluster.nodes.size > 0 && (
            <DropMap key={`map ${props.chosen}`} cluster={live.cluster} pod={`${shown?.namespace}/${shown?.name}`} explanation={explanation} />
          )}
        </>
      )}
    </section>
  );
}
