/** Has the server drain nodes as a plan says it, after a question: the one thing in this view that evicts pods. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { clusterPath, post, put, told, type Schemas } from '../api/client';
import { movesOf, othersOf, wavesOf } from '../model/planning';
import { counted, named } from '../model/quantity';
import { Confirm } from '../parts/confirm';
import { keptId, revisionOf, type KeptDrain } from './kept-plans';

type Answer = Schemas['PlanAnswer'];

/** As many pods are named in the question. */
const NAMED = 100;

export interface Draining {
  readonly cluster: string;
  readonly nodes: readonly string[];
  readonly answer: Answer;
  /** The cluster's revision now, which may be later than the plan's. */
  readonly revision: number;
  /** The cluster's drains, including those that have ended. */
  readonly kept: readonly KeptDrain[];
  /** Called when a drain was started. */
  readonly begun: () => void;
}

export function Drain(props: Draining) {
  const { cluster, nodes, answer, kept } = props;
  const [isAsked, setAsked] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState('');
  const [started, setStarted] = useStarted(kept);
  const plan = started || kept.find((each) => !each.isOver && nodes.every((node) => each.nodes.includes(node)))?.plan;
  const what = nodes.length === 1 ? nodes[0] : counted(nodes.length, 'node');

  const start = (): void => {
    setBusy(true);
    setProblem('');
    keepDrain(cluster, nodes, answer.revision).then(
      (made) => {
        setStarted(made);
        setAsked(false);
        props.begun();
      },
      (error: unknown) => setProblem(told(error)),
    ).finally(() => setBusy(false));
  };

  if (plan) return <Started what={what ?? ''} plan={plan} isNew={started !== ''} />;
  return (
    <div class="real">
      <h4>On the real cluster</h4>
      <p class="small">So far, nothing has changed. Draining cordons {what} and evicts {podsOrNone(movesOf(answer))}.</p>
      <div class="actions">
        <button class="danger-outline" aria-haspopup="dialog" onClick={() => {
          setProblem('');
          setAsked(true);
        }}>Drain {what}…</button>
        {problem && !isAsked && <span class="problem" role="alert">{problem}</span>}
      </div>
      {isAsked && (
        <Confirm title={`Drain ${what}?`} act={isBusy ? 'Starting…' : `Drain ${what}`} isBusy={isBusy} problem={problem}
          confirm={start} close={() => setAsked(false)}>
          <Consequences {...props} />
        </Confirm>
      )}
    </div>
  );
}

/** The name of the plan that was started here, until it ends or is deleted, and what to call when one is started. */
function useStarted(kept: readonly KeptDrain[]): [name: string, start: (plan: Schemas['Plan']) => void] {
  const [plan, setPlan] = useState<Schemas['Plan'] | null>(null);
  const isSeen = useRef(false);
  // An older plan may have had the same name.
  const own = plan && kept.find((each) => each.plan === plan.metadata.name && each.revision >= revisionOf(plan));
  useEffect(() => {
    const isGone = own ? own.isOver : isSeen.current;
    isSeen.current = Boolean(own) && !isGone;
    if (isGone) setPlan(null);
  }, [own]);
  return [plan?.metadata.name ?? '', setPlan];
}

/** Says what was started, and leads to where it can be followed, paused and cancelled. */
function Started({ what, plan, isNew }: { what: string; plan: string; isNew: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isNew) box.current?.focus();
  }, [isNew]);
  const show = (): void => {
    const card = document.getElementById(keptId(plan));
    card?.scrollIntoView({ block: 'center' });
    card?.focus();
  };
  return (
    <div class="real begun" ref={box} tabIndex={-1}>
      <p role="status">
        <b>{isNew ? `The drain of ${what} has started` : `${what} is being drained`}</b> as the plan {plan}. You can follow, pause, and cancel it below.
      </p>
      <div class="actions"><button onClick={show}>Show {plan}</button></div>
    </div>
  );
}

function Consequences({ cluster, nodes, answer, revision }: Draining) {
  const moves = movesOf(answer);
  const waves = wavesOf(answer).flatMap(([wave, steps]) => steps.filter((each) => each.action === 'Evict').map((step) => ({ wave, step })));
  const last = waves.at(-1)?.wave ?? 0;
  const stay = othersOf(answer);
  return (
    <>
      <p class="real-note">This changes the real cluster <b>{cluster}</b>. Evictions cannot be undone.</p>
      <div class="consequences" tabIndex={0} role="region" aria-label="What will happen">
        <p><b>{named(nodes)}</b> will take no new pods.</p>
        <p>
          <b>{capital(podsOrNone(moves))}</b> will be evicted{last > 1 ? `, in ${last} waves` : moves > 0 ? '' : ' now'}.
          {stay > 0 && <> <b>{counted(stay, 'pod')}</b> cannot leave now, and the drain waits for {stay === 1 ? 'it' : 'them'}.</>}
        </p>
        {stay > 0 && (
          <>
            <h3>Cannot leave now</h3>
            <ul class="plain-list">
              {answer.unplaced.slice(0, NAMED).map((each) => (
                <li key={`${each.namespace}/${each.name}`}>{each.namespace}/{each.name}: <span class="quiet">{each.message}</span></li>
              ))}
              <More count={stay - Math.min(NAMED, answer.unplaced.length)} />
            </ul>
          </>
        )}
        {moves > 0 && (
          <>
            <h3>Will be evicted</h3>
            <ul class="plain-list">
              {waves.slice(0, NAMED).map(({ wave, step }) => (
                <li key={`${step.namespace}/${step.name}`}>
                  {step.namespace}/{step.name} <span class="quiet">{step.from} → {step.to}{last > 1 && ` · wave ${wave}`}</span>
                </li>
              ))}
              <More count={moves - Math.min(NAMED, waves.length)} />
            </ul>
          </>
        )}
        <p class="small quiet">Pods of DaemonSets and static pods stay. Disruption budgets are respected.</p>
        {revision > answer.revision && (
          <p class="small quiet">
            This was planned at revision {answer.revision.toLocaleString('en')}, and the cluster is at {revision.toLocaleString('en')} now.
            {' '}The server plans each wave anew, so it may evict other pods than these.
          </p>
        )}
      </div>
    </>
  );
}

function podsOrNone(count: number): string {
  return count === 0 ? 'no pod' : counted(count, 'pod');
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function More({ count }: { count: number }) {
  return count > 0 ? <li class="quiet">and {count.toLocaleString('en')} more</li> : null;
}

/** Has the server drain nodes, as a plan of this revision says it; returns the plan that does it. */
async function keepDrain(cluster: string, nodes: readonly string[], revision: number): Promise<Schemas['Plan']> {
  const [first = ''] = nodes;
  if (nodes.length === 1) {
    return post<Schemas['Plan']>(clusterPath(cluster, 'nodes', first, 'drain'), {});
  }
  // The revision keeps this plan from taking the place of another one that begins with the same node.
  const name = `drain-${first}-and-${nodes.length - 1}-more-${revision}`;
  return put<Schemas['Plan']>(clusterPath(cluster, 'plans', name), {
    apiVersion: 'moorage.dev/v1alpha1', kind: 'Plan', metadata: { name }, spec: { goal: { type: 'Drain', nodes: { names: nodes } } },
  });
}
