import { useMemo } from 'preact/hooks';
import type { Schemas } from '../api/client';
import { colouring } from '../map/colours';
import { ALL_NODES } from '../map/layout';
import { compare } from '../model/cluster';
import { movesOf, othersOf, wavesOf, type Planned } from '../model/planning';
import { amount, counted, percent, quantity } from '../model/quantity';
import { addressOf, type Route } from '../route';
import { Drain, type Draining } from './drain';
import { Stage } from './map-stage';
import { useTheme } from './map-theme';

type Answer = Schemas['PlanAnswer'];

const SHOWN = 200;
const LINKS_SHOWN = 150;
const ZONE = 'topology.kubernetes.io/zone';
const NOBODY: ReadonlySet<string> = new Set();

type Shown = { answer: Answer; planned: Planned; drained: readonly string[]; route: Route } & Pick<Draining, 'revision' | 'kept' | 'begun'>;

export function PlanAnswerView({ answer, planned, drained, route, ...rest }: Shown) {
  return (
    <section class="plan" aria-live="polite">
      <h3 class="verdict">{verdictOn(answer, planned.isDrain)}</h3>
      <p class="small quiet">At revision {answer.revision.toLocaleString('en')}.</p>
      <Totals answer={answer} />
      {drained.length > 0 && (
        <Drain key={`${answer.revision} ${drained.join()}`} cluster={route.cluster} nodes={drained} answer={answer} {...rest} />
      )}
      <PlannedMap planned={planned} />
      {answer.unplaced.length > 0 && <Unplaced answer={answer} title={planned.isDrain ? 'Who would have to stay' : 'Without a node'} route={route} />}
      <Waves answer={answer} />
    </section>
  );
}

function verdictOn(answer: Answer, isDrain: boolean): string {
  const moves = movesOf(answer);
  const others = othersOf(answer);
  if (isDrain) {
    const leaving = `${counted(moves, 'pod')} would leave`;
    return others === 0 ? `${leaving}, and none would have to stay.` : `${leaving}, and ${counted(others, 'pod')} would have to stay.`;
  }
  const placed = `${counted(moves, 'pod')} would get a node`;
  return others === 0 ? `${placed}, and none would be without one.` : `${counted(others, 'pod')} would have no node, and ${placed}.`;
}

/** A row of the table: what it is about, now and then, and whether something was lost altogether. */
type Row = readonly [name: string, was: string, is: string, isLost?: boolean];

const NONE: Schemas['ResourceTotal'] = { allocatable: '0', requested: '0', utilization: 0, largestFree: '0' };

/** The rows of every resource that nodes have now or then. */
function resourcesOf({ before, after }: Answer): Row[] {
  const names = Object.keys({ ...before.resources, ...after.resources }).filter((name) => name !== 'pods').sort(compare);
  return names.flatMap((name) => {
    const was = before.resources[name] ?? NONE;
    const is = after.resources[name] ?? NONE;
    const isLost = has(was) && !has(is);
    const total: Row = [`${name} on all nodes`, all(name, was), isLost ? 'none' : all(name, is), isLost];
    if (isLost) return [total];
    return [
      ...(was.allocatable === is.allocatable ? [] : [total]),
      [`${name} used`, used(was), used(is)] as const,
      [`${name}, most free on a node`, free(name, was), free(name, is)] as const,
    ];
  });
}

function has(total: Schemas['ResourceTotal']): boolean {
  return quantity(total.allocatable) > 0;
}

function all(resource: string, total: Schemas['ResourceTotal']): string {
  return amount(resource, quantity(total.allocatable));
}

function used(total: Schemas['ResourceTotal']): string {
  return has(total) ? percent(total.utilization) : '–';
}

function Totals({ answer }: { answer: Answer }) {
  const { before, after } = answer;
  const rows: Row[] = [
    ['Nodes', String(before.nodes), String(after.nodes)],
    ['Pods on nodes', String(before.pods), String(after.pods)],
    ['Broken rules', String(before.violations ?? '–'), String(after.violations ?? '–')],
    ...resourcesOf(answer),
  ];
  for (const was of (before.skew ?? []).slice(0, 5)) {
    const is = after.skew?.find((each) => each.namespace === was.namespace && each.topologyKey === was.topologyKey
      && each.whenUnsatisfiable === was.whenUnsatisfiable && each.maxSkew === was.maxSkew);
    rows.push([`Skew by ${was.topologyKey} in ${was.namespace}`, String(was.skew), String(is?.skew ?? '–')]);
  }
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label="Before and after">
      <table class="totals">
        <thead><tr><th scope="col">In all</th><th scope="col" class="number">Now</th><th scope="col" class="number">Then</th></tr></thead>
        <tbody>
          {rows.map(([name, was, is, isLost]) => (
            <tr key={name} class={isLost ? 'changed lost' : was === is ? '' : 'changed'}>
              <th scope="row">{name}</th><td class="number">{was}</td><td class="number">{is}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function free(resource: string, total: Schemas['ResourceTotal']): string {
  return amount(resource, quantity(total.largestFree));
}

/** The cluster as it would be; lines lead from where pods are to where they would go. */
function PlannedMap({ planned: { cluster, moved, nodes, links } }: { planned: Planned }) {
  const theme = useTheme();
  const colours = useMemo(() => colouring('violation', cluster, theme, 'cpu', NOBODY), [cluster, theme]);
  const shown = useMemo(() => links.slice(0, LINKS_SHOWN), [links]);
  const key = [...cluster.nodes.values()].some((node) => ZONE in node.labels) ? ZONE : ALL_NODES;
  return (
    <>
      <div class="planned-map">
        <Stage cluster={cluster} topologyKey={key} zoom={1} colouring={colours} theme={theme} violating={NOBODY}
          pods={moved.size ? moved : null} nodes={nodes.size ? nodes : null} links={shown} selected="" select={() => undefined} />
      </div>
      <p class="small quiet">
        The nodes that the changes are about stand out, and the pods that would be elsewhere, with lines from where they are.
        {links.length > shown.length && ` These are the first ${shown.length} of ${links.length} lines.`}
      </p>
    </>
  );
}

function Unplaced({ answer, title, route }: { answer: Answer; title: string; route: Route }) {
  return (
    <>
      <h3>{title}</h3>
      <ul class="plain-list unplaced">
        {answer.unplaced.slice(0, SHOWN).map((each) => (
          <li key={`${each.namespace}/${each.name}`}>
            <a href={addressOf('why', route.cluster, [each.namespace, each.name])}>{each.namespace}/{each.name}</a>
            {each.from && <span class="quiet"> on {each.from}</span>}: {each.message}
          </li>
        ))}
      </ul>
      <More shown={Math.min(SHOWN, answer.unplaced.length)} total={answer.unplacedTotal + (answer.otherUnplaced ?? 0)} />
    </>
  );
}

function Waves({ answer }: { answer: Answer }) {
  const waves = wavesOf({ ...answer, steps: answer.steps.slice(0, SHOWN) });
  return (
    <>
      <h3>{counted(answer.stepsTotal, 'step')}{waves.length > 1 && ` in ${waves.length} waves`}</h3>
      <ol class="waves">
        {waves.map(([wave, steps]) => (
          <li key={wave}>
            {waves.length > 1 && <b class="small">Wave {wave}</b>}
            <ul class="plain-list">
              {steps.map((step) => (
                <li key={`${step.action}${step.namespace}/${step.name}`}>
                  {step.action} {step.namespace ? `${step.namespace}/` : ''}{step.name}
                  {step.to && <>: {step.from ?? 'no node'} → <b>{step.to}</b></>}
                  <span class="quiet"> · {step.reason}</span>
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ol>
      <More shown={Math.min(SHOWN, answer.steps.length)} total={answer.stepsTotal + (answer.otherSteps ?? 0)} />
    </>
  );
}

function More({ shown, total }: { shown: number; total: number }) {
  return total > shown ? <p class="small quiet">and {(total - shown).toLocaleString('en')} more</p> : null;
}
