import { useEffect, useRef, useState } from 'preact/hooks';
import { clusterPath, post, read, told, type Schemas } from '../api/client';
import type { Live } from '../model/live';
import { choicesOf, drainedBy, likeNode, planOf, plannedCluster, type Draft, type Op, type Planned } from '../model/planning';
import type { Trial } from '../model/repairs';
import { Choice } from '../parts/common';
import type { Route } from '../route';
import { KeptPlans, type KeptDrain } from './kept-plans';
import { PlanAnswerView } from './plan-answer';

type Answer = Schemas['PlanAnswer'];

const NAMES: readonly (readonly [Op, string])[] = [
  ['RemoveNodes', 'lose'],
  ['Drain', 'drain'],
  ['CordonNodes', 'cordon'],
  ['UncordonNodes', 'uncordon'],
  ['SetTaints', 'taint'],
  ['SetLabels', 'label'],
  ['AddNodes', 'add nodes like'],
  ['RemovePods', 'remove'],
];
const ZONE = 'topology.kubernetes.io/zone';
/** More names than these are typed rather than chosen. */
const NAMES_OFFERED = 200;

interface Made {
  readonly answer: Answer;
  readonly drained: readonly string[];
  readonly planned: Planned;
}

/** What would happen after changes: a plan, of which nothing is stored. */
export function PlanView({ route, live, trial }: { route: Route; live: Live; trial: Trial | null }) {
  const { cluster } = live;
  const [drafts, setDrafts] = useState<readonly Draft[]>(trial?.drafts ?? []);
  const [pasted, setPasted] = useState(trial?.manifest ?? '');
  const section = useRef<HTMLElement>(null);
  const [made, setMade] = useState<Made | null>(null);
  const [problem, setProblem] = useState('');
  const [isAsking, setAsking] = useState(false);
  const [kept, setKept] = useState<readonly KeptDrain[]>([]);
  const [begun, setBegun] = useState(0);

  const ask = async (event: Event): Promise<void> => {
    event.preventDefault();
    await run();
  };
  const run = async (): Promise<void> => {
    setAsking(true);
    setProblem('');
    try {
      const like = drafts.find((each) => each.op === 'AddNodes');
      const template = like ? likeNode(await read<Schemas['Node']>(clusterPath(cluster.name, 'nodes', like.value))) : null;
      const answer = await post<Answer>(clusterPath(cluster.name, 'plans'), planOf(cluster, drafts, pasted, template));
      setMade({ answer, drained: drainedBy(cluster, drafts), planned: plannedCluster(cluster, drafts, answer, template) });
    } catch (error) {
      setMade(null);
      setProblem(told(error));
    }
    setAsking(false);
  };

  useEffect(() => {
    if (!trial) return;
    section.current?.scrollIntoView();
    void run().then(() => section.current?.querySelector('.actions')?.scrollIntoView());
  }, []);

  const isEmpty = drafts.length === 0 && !pasted.trim();
  return (
    <section class="planning" ref={section}>
      <h2>What if the cluster changes?</h2>
      <ChangeForm live={live} drafts={drafts} add={(draft) => setDrafts([...drafts, draft])} />
      <form class="paste" onSubmit={(event) => void ask(event)}>
        {drafts.length > 0 && (
          <ol class="drafts" aria-label="Changes">
            {drafts.map((each, at) => (
              <li key={at}>
                {describe(each)}
                <button type="button" class="plain small" aria-label={`Leave out: ${describe(each)}`}
                  onClick={() => setDrafts(drafts.filter((_, other) => other !== at))}>leave out</button>
              </li>
            ))}
          </ol>
        )}
        <details open={trial !== null}>
          <summary>and place pods after that</summary>
          <label class="field stacked">
            <span>A pod, or a Deployment, StatefulSet, ReplicaSet or Job; without it, the pods that lost their nodes are placed</span>
            <textarea rows={8} spellcheck={false} value={pasted} onInput={(event) => setPasted(event.currentTarget.value)} />
          </label>
        </details>
        <div class="actions">
          <button class="primary" disabled={isAsking || isEmpty}>
            {isAsking ? 'Planning…' : 'Plan it'}
          </button>
          <span class="small quiet">{isEmpty ? 'Add a change first, or several.' : 'Nothing of a plan is stored.'}</span>
        </div>
        {problem && <p class="problem" role="alert">{problem}</p>}
      </form>
      {made && (
        <PlanAnswerView answer={made.answer} planned={made.planned} drained={made.drained} route={route}
          revision={live.revision} kept={kept} begun={() => setBegun((count) => count + 1)} />
      )}
      <KeptPlans cluster={cluster.name} asked={begun} tell={setKept} />
    </section>
  );
}

function describe({ op, key, value, text, count }: Draft): string {
  const name = NAMES.find(([each]) => each === op)?.[1] ?? op;
  const what = key ? `the nodes of ${key}=${value}` : value;
  if (op === 'AddNodes') return `add ${count} like ${value}`;
  if (op === 'SetTaints' && !text.trim()) return `take all taints from ${what}`;
  return `${name} ${what}${text && ` with ${text}`}`;
}

function ChangeForm(props: { live: Live; drafts: readonly Draft[]; add: (draft: Draft) => void }) {
  const { cluster } = props.live;
  const [op, setOp] = useState<Op>('RemoveNodes');
  const choices = choicesOf(cluster);
  const [chosen, setKey] = useState<string | null>(null);
  const isOfNodes = op !== 'AddNodes' && op !== 'RemovePods';
  const key = !isOfNodes ? '' : (chosen ?? (choices.has(ZONE) ? ZONE : ''));
  const values = key ? (choices.get(key) ?? []) : cluster.ordered.slice(0, NAMES_OFFERED).map((node) => node.name);
  const [typed, setValue] = useState('');
  const isOffered = op !== 'RemovePods' && (key !== '' || cluster.nodes.size <= NAMES_OFFERED);
  const value = isOffered && !values.includes(typed) ? (values[0] ?? '') : typed;
  const [text, setText] = useState('');
  const [count, setCount] = useState(1);
  const add = (event: Event): void => {
    event.preventDefault();
    props.add({ op, key, value, count, text: op === 'SetTaints' || op === 'SetLabels' ? text : '' });
  };
  return (
    <form class="change" aria-label="A change" onSubmit={add}>
      <Choice label="What if we" value={op} options={NAMES} choose={(each) => setOp(each as Op)} />
      {isOfNodes && (
        <Choice label="nodes by" value={key} choose={setKey}
          options={[['', 'name'], ...[...choices.keys()].map((each) => [each, each] as const)]} />
      )}
      {isOffered
        ? <Choice label={key ? 'value' : 'node'} value={value} choose={setValue} options={values.map((each) => [each, each])} />
        : (
          <label class="field"><span>{op === 'RemovePods' ? 'pod' : 'node'}</span>
            <input value={typed} required placeholder={op === 'RemovePods' ? 'namespace/name' : ''} onInput={(event) => setValue(event.currentTarget.value)} /></label>
        )}
      {op === 'AddNodes' && (
        <label class="field"><span>count</span>
          <input type="number" min={1} max={1000} value={count} onInput={(event) => setCount(event.currentTarget.valueAsNumber || 1)} />
        </label>
      )}
      {(op === 'SetTaints' || op === 'SetLabels') && (
        <label class="field"><span>{op === 'SetTaints' ? 'taints' : 'labels'}</span>
          <input value={text} required={op === 'SetLabels'} placeholder={op === 'SetTaints' ? 'key=value:NoSchedule' : 'key=value'}
            onInput={(event) => setText(event.currentTarget.value)} />
        </label>
      )}
      <button disabled={op === 'AddNodes' && props.drafts.some((each) => each.op === 'AddNodes')}>Add the change</button>
    </form>
  );
}
