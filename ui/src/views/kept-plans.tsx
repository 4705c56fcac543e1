import { useState } from 'preact/hooks';
import { clusterPath, post, put, read, told, type Schemas } from '../api/client';
import { selectorText } from '../model/matching';
import { counted } from '../model/quantity';
import { Share } from '../parts/common';
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

/** Has the server drain nodes, as a plan of this revision says it; returns what to say of it. */
export async function keepDrain(cluster: string, nodes: readonly string[], revision: number): Promise<string> {
  const [first = ''] = nodes;
  try {
    if (nodes.length === 1) await post(clusterPath(cluster, 'nodes', first, 'drain'), {});
    else {
      // The revision keeps this plan from taking the place of another one that begins with the same node.
      const name = `drain-${first}-and-${nodes.length - 1}-more-${revision}`;
      await put(clusterPath(cluster, 'plans', name), {
        apiVersion: 'moorage.dev/v1alpha1', kind: 'Plan', metadata: { name }, spec: { goal: { type: 'Drain', nodes: { names: nodes } } },
      });
    }
    return 'The plan is kept; below is how far it is.';
  } catch (error) {
    return told(error);
  }
}

/** The plans that the server carries out, and how far they are. */
export function KeptPlans({ cluster }: { cluster: string }) {
  const [tick, setTick] = useState(0);
  useEvery(EVERY_MILLISECONDS, () => setTick((count) => count + 1));
  const path = clusterPath(cluster, 'plans');
  const answer = useAnswer((signal) => read<Schemas['PlanList']>(path, signal), [path, tick]);
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

function KeptPlan({ plan, cluster, again }: { plan: Plan; cluster: string; again: () => void }) {
  const [problem, setProblem] = useState('');
  const name = plan.metadata.name ?? '';
  const progress = plan.status ?? {};
  const { phase = 'Running', waitingPods = [] } = progress;
  const isOver = phase === 'Succeeded' || phase === 'Cancelled';
  const { share, lines } = howFar(plan.spec.goal, progress, isOver);
  const act = (verb: string): void => {
    setProblem('');
    post(clusterPath(cluster, 'plans', name, verb), {}).then(again, (error: unknown) => setProblem(told(error)));
  };
  return (
    <div class="card">
      <div class="heading">
        <h4>{name}</h4><span class="tag">{phase}</span>
        {!isOver && (
          <span class="actions">
            {plan.spec.state === 'Paused'
              ? <button aria-label={`Resume ${name}`} onClick={() => act('resume')}>Resume</button>
              : <button aria-label={`Pause ${name}`} onClick={() => act('pause')}>Pause</button>}
            <button aria-label={`Cancel ${name}`} onClick={() => act('cancel')}>Cancel</button>
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
      {problem && <p class="problem" role="alert">{problem}</p>}
    </div>
  );
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
