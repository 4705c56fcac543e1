import { useEffect, useRef, useState } from 'preact/hooks';
import { clusterPath, post, read, told, type Schemas } from '../api/client';
import { selectorText } from '../model/matching';
import { counted } from '../model/quantity';
import { Share } from '../parts/common';
import { Confirm } from '../parts/confirm';
import { useAnswer, useEvery } from '../parts/hooks';

type Plan = Schemas['Plan'];
type Goal = Schemas['KeptGoal'];
type Progress = Partial<Schemas['PlanProgress']>;

interface HowFar {
  readonly share: number;
  readonly lines: readonly string[];
}

const EVERY_MILLISECONDS = 1000;
/** Of so many moves that are under way the page tells. */
const MOVES_SHOWN = 5;

/** A drain that the server carries out, or has ended. */
export interface KeptDrain {
  readonly plan: string;
  readonly nodes: readonly string[];
  readonly isOver: boolean;
  readonly revision: number;
}

/** The id of the element that shows a plan. */
export function keptId(plan: string): string {
  return `kept-${plan}`;
}

/** The plans that the server carries out, and how far they are; `tell` is told of the drains among them. */
export function KeptPlans({ cluster, asked, tell }: { cluster: string; asked: number; tell: (drains: readonly KeptDrain[]) => void }) {
  const [tick, setTick] = useState(0);
  useEvery(EVERY_MILLISECONDS, () => setTick((count) => count + 1));
  const path = clusterPath(cluster, 'plans');
  const answer = useAnswer((signal) => read<Schemas['PlanList']>(path, signal), [path, tick, asked]);
  const drains = answer.state === 'here' ? drainsOf(answer.value.items) : null;
  useEffect(() => {
    if (drains) tell(drains);
  }, [JSON.stringify(drains)]);
  if (answer.state !== 'here' || answer.value.items.length === 0) return null;
  return (
    <section class="kept" aria-label="Kept plans">
      <h3>Plans that are carried out</h3>
      {answer.value.items.map((each) => (
        <KeptPlan key={each.metadata.name} plan={each} cluster={cluster} again={() => setTick((count) => count + 1)} />
      ))}
    </section>
  );
}

function drainsOf(plans: readonly Plan[]): KeptDrain[] {
  return plans
    .filter((each) => each.spec.goal.type === 'Drain')
    .map((each) => ({
      plan: each.metadata.name ?? '', nodes: each.spec.goal.nodes?.names ?? [], isOver: isOver(each), revision: revisionOf(each),
    }));
}

/** The revision of a plan's last change. */
export function revisionOf(plan: Plan): number {
  return Number(plan.metadata.resourceVersion ?? 0);
}

function isOver({ status }: Plan): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Cancelled';
}

function KeptPlan({ plan, cluster, again }: { plan: Plan; cluster: string; again: () => void }) {
  const [problem, setProblem] = useState('');
  const card = useRef<HTMLDivElement>(null);
  const [done, setDone] = useState(0);
  // The button that was pressed goes with the state that it changes, and the focus would go with it.
  useEffect(() => {
    if (done) card.current?.focus();
  }, [done]);
  const [question, setQuestion] = useState<Asked | null>(null);
  const [isBusy, setBusy] = useState(false);
  const name = plan.metadata.name ?? '';
  const progress = plan.status ?? {};
  const { phase = 'Running', waitingPods = [] } = progress;
  const { share, lines } = howFar(plan.spec.goal, progress, isOver(plan));
  const act = (verb: Verb): void => {
    setBusy(true);
    setProblem('');
    post(clusterPath(cluster, 'plans', name, verb), {}).then(
      () => {
        setQuestion(null);
        setDone((count) => count + 1);
        again();
      },
      (error: unknown) => setProblem(told(error)),
    ).finally(() => setBusy(false));
  };
  const ask = (verb: Asked): void => {
    setProblem('');
    setQuestion(verb);
  };
  return (
    <div ref={card} class="card" id={keptId(name)} tabIndex={-1} role="group" aria-label={name}>
      <div class="heading">
        <h4>{name}</h4><span class="tag">{phase}</span>
        {!isOver(plan) && (
          <span class="actions">
            {plan.spec.state === 'Paused'
              ? <button aria-label={`Resume ${name}`} aria-haspopup="dialog" onClick={() => ask('resume')}>Resume…</button>
              : <button aria-label={`Pause ${name}`} onClick={() => act('pause')}>Pause</button>}
            <button aria-label={`Cancel ${name}`} aria-haspopup="dialog" onClick={() => ask('cancel')}>Cancel…</button>
          </span>
        )}
      </div>
      <Share share={share} />
      {lines.map((line) => <p key={line} class="small quiet">{line}</p>)}
      {waitingPods.length > 0 && (
        <ul class="plain-list small">
          {waitingPods.map((pod) => <li key={`${pod.namespace}/${pod.name}`}>{pod.name ? `${pod.namespace}/${pod.name}: ` : ''}{pod.message}</li>)}
        </ul>
      )}
      {problem && !question && <p class="problem" role="alert">{problem}</p>}
      {question && (
        <Confirm title={`${TITLES[question]} ${name}?`} act={`${TITLES[question]} ${name}`} decline="Not now" isBusy={isBusy} problem={problem}
          confirm={() => act(question)} close={() => setQuestion(null)}>
          <p class="real-note">This changes the real cluster <b>{cluster}</b>. {consequences(question, plan.spec.goal)}</p>
          {lines.map((line) => <p key={line}>{line}</p>)}
        </Confirm>
      )}
    </div>
  );
}

type Asked = 'resume' | 'cancel';
/** Pausing is not asked about: it only stops, and whoever needs it needs it at once. */
type Verb = Asked | 'pause';

const TITLES: Readonly<Record<Asked, string>> = { resume: 'Resume', cancel: 'Cancel' };

function consequences(question: Asked, { type }: Goal): string {
  if (question === 'resume') return 'The server resumes evicting pods.';
  return `Completed steps are not undone${type === 'Drain' ? ': nodes stay cordoned' : ''}. A cancelled plan cannot be resumed.`;
}

function howFar(goal: Goal, progress: Progress, isOver: boolean): HowFar {
  if (goal.type === 'Replace') return releaseOf(goal, progress);
  return goal.type === 'Rebalance' ? balanceOf(goal, progress, isOver) : drainOf(progress, isOver);
}

function drainOf({ evicted = 0, leaving = 0, waiting = 0, staying = 0 }: Progress, isOver: boolean): HowFar {
  const gone = Math.max(0, evicted - leaving);
  const all = evicted + waiting;
  return {
    share: all ? gone / all : isOver ? 1 : 0,
    lines: [`${evicted} evicted, ${leaving} of them still there, ${waiting} to go, ${staying} stay`],
  };
}

/** Says what is released, and how far it is: the new pods, and the old ones in whose place they come. */
function releaseOf(goal: Goal, { waves = 0, updated = 0, ready = 0, waiting = 0, leaving = 0, reason }: Progress): HowFar {
  const replicas = goal.replicas ?? 0;
  const all = replicas + waiting + leaving;
  const lines = [
    `${goal.namespace}: ${releasedBy(goal)} → ${counted(replicas, 'pod')} of ${newOf(goal)}`,
    `Wave ${waves}: ${updated} of ${replicas} new pods there, ${ready} of them ready; ${waiting} old ones to go, ${leaving} leaving`,
  ];
  if (reason) lines.push('It has made no progress for longer than it may; the server goes on trying.');
  return { share: all ? Math.min(ready, replicas) / all : 1, lines };
}

/** Says which pods may move, how many have, which are under way, and what it is good for. */
function balanceOf(goal: Goal, progress: Progress, isOver: boolean): HowFar {
  const { evicted = 0, moved = 0, elsewhere = 0, missing = 0, moves = [], objectives = [] } = progress;
  const all = Math.max(goal.movesMax ?? evicted, evicted);
  const most = goal.movesMax == null ? '' : `, at most ${goal.movesMax}`;
  const lines = [
    `Pods move to where they are placed better: ${movableBy(goal)}${most}`,
    `${moved} moved, ${moves.length} under way, ${elsewhere} came elsewhere, ${missing} did not come`,
    ...moves.slice(0, MOVES_SHOWN).map((each) => `${each.namespace}/${each.name}: ${each.from} → ${each.to}`),
  ];
  if (moves.length > MOVES_SHOWN) lines.push(`and ${moves.length - MOVES_SHOWN} more`);
  if (objectives.length) lines.push(objectives.map((each) => `${each.name} ${each.before} → ${each.now}`).join(', '));
  return { share: isOver ? 1 : all ? (moved + elsewhere + missing) / all : 0, lines };
}

function movableBy({ namespace, selector }: Goal): string {
  return [namespace ?? 'all namespaces', selector && selectorText(selector)].filter(Boolean).join(', ');
}

function releasedBy({ owner, selector }: Goal): string {
  return [owner && `${owner.kind} ${owner.name}`, selector && selectorText(selector)].filter(Boolean).join(', ');
}

/** The name and the images of what is new. */
function newOf(goal: Goal): string {
  const template = (goal.template ?? {}) as Template;
  const images = (template.spec?.containers ?? []).flatMap((each) => each.image ?? []);
  return `${template.metadata?.name ?? 'the template'}${images.length ? ` (${images.join(', ')})` : ''}`;
}

interface Template {
  readonly metadata?: { readonly name?: string };
  readonly spec?: { readonly containers?: readonly { readonly image?: string }[] };
}
