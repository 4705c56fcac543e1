/** What the colours of the map mean. All palettes can be told apart by people who are colour-blind. */
import type { Cluster } from '../model/cluster';
import type { NodeRow, PodRow } from '../model/rows';

export const MODES = ['used', 'priority', 'owner', 'rule', 'violation'] as const;
export type Mode = (typeof MODES)[number];

export const MODE_NAMES: Record<Mode, string> = {
  used: 'used share',
  priority: 'priority',
  owner: 'owner',
  rule: 'rule',
  violation: 'violation',
};

/** The colours of the page, which differ between light and dark. */
export interface Theme {
  readonly surface: string;
  readonly cell: string;
  readonly edge: string;
  readonly text: string;
  readonly quiet: string;
  readonly accent: string;
  readonly alarm: string;
  readonly pod: string;
  readonly podOnShare: string;
  readonly veil: string;
  readonly shares: readonly string[];
  readonly steps: readonly string[];
  readonly kinds: readonly string[];
}

export function themeOf(element: Element): Theme {
  const style = getComputedStyle(element);
  const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  const several = (name: string, count: number): string[] =>
    Array.from({ length: count }, (_, at) => colour(`${name}-${at}`));
  return {
    surface: colour('raised'),
    cell: colour('cell'),
    edge: colour('edge'),
    text: colour('text'),
    quiet: colour('quiet'),
    accent: colour('accent'),
    alarm: colour('alarm'),
    pod: colour('pod'),
    podOnShare: colour('pod-on-share'),
    veil: colour('veil'),
    shares: several('share', 7),
    steps: several('step', 5),
    kinds: several('kind', 8),
  };
}

export interface Legend {
  /** What has to be known to read the colours. */
  readonly note?: string;
  readonly entries: readonly { readonly colour: string; readonly text: string; readonly workload?: string }[];
}

export interface Colouring {
  node(node: NodeRow): string;
  pod(pod: PodRow): string;
  readonly legend: Legend;
  /** Colourings with equal parts here give everything the same colours. */
  readonly meaning: readonly unknown[];
}

const SHARE_BOUNDS = [0.05, 0.25, 0.5, 0.7, 0.85, 0.95];
const SHARE_TEXTS = ['under 5 %', '5–25 %', '25–50 %', '50–70 %', '70–85 %', '85–95 %', '95 % and more'];

export function colouring(
  mode: Mode,
  cluster: Cluster,
  theme: Theme,
  resource: string,
  violating: ReadonlySet<string>,
): Colouring {
  switch (mode) {
    case 'used':
      return byShare(cluster, theme, resource);
    case 'priority':
      return byPriority(cluster, theme);
    case 'owner':
      return byOwner(cluster, theme);
    case 'rule':
      return byRule(cluster, theme);
    case 'violation':
      return byViolation(theme, violating);
  }
}

function byShare(cluster: Cluster, theme: Theme, resource: string): Colouring {
  const colour = (share: number): string => theme.shares[SHARE_BOUNDS.filter((each) => share >= each).length] ?? '';
  return {
    node: (node) => (node.allocatable[resource] ? colour(cluster.share(node, resource)) : theme.cell),
    pod: () => theme.podOnShare,
    meaning: ['used', cluster, theme, resource],
    legend: { entries: SHARE_TEXTS.map((text, at) => ({ text, colour: theme.shares[at] ?? '' })) },
  };
}

function byPriority(cluster: Cluster, theme: Theme): Colouring {
  const values = [...new Set([...cluster.pods.values()].map((pod) => pod.priority))].sort((a, b) => a - b);
  const last = Math.max(1, values.length - 1);
  const colours = new Map(
    values.map((value, at) => [value, theme.steps[Math.round((at / last) * (theme.steps.length - 1))] ?? '']),
  );
  const shown = values.length > 12 ? values.filter((_, at) => at % Math.ceil(values.length / 12) === 0) : values;
  return {
    node: () => theme.cell,
    pod: (pod) => colours.get(pod.priority) ?? theme.pod,
    meaning: ['priority', cluster, theme, ...values],
    legend: { entries: shown.reverse().map((value) => ({ text: String(value), colour: colours.get(value) ?? '' })) },
  };
}

/** The largest workloads have colours of their own, the others share one. */
function byOwner(cluster: Cluster, theme: Theme): Colouring {
  const counts = new Map<string, number>();
  for (const pod of cluster.pods.values()) counts.set(pod.workload, (counts.get(pod.workload) ?? 0) + 1);
  const largest = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, theme.kinds.length);
  const colours = new Map(largest.map(([workload], at) => [workload, theme.kinds[at] ?? '']));
  const others = counts.size - colours.size;
  return {
    node: () => theme.cell,
    pod: (pod) => colours.get(pod.workload) ?? theme.pod,
    meaning: ['owner', cluster, theme, others > 0, ...colours.keys()],
    legend: {
      entries: [
        ...largest.map(([workload]) => ({ text: workload, colour: colours.get(workload) ?? '', workload })),
        ...(others > 0 ? [{ text: `${others} others`, colour: theme.pod }] : []),
      ],
    },
  };
}

/** The kinds of rules that bind most pods have colours of their own; pods without a rule step back. */
function byRule(cluster: Cluster, theme: Theme): Colouring {
  const counts = new Map<string, number>();
  for (const { rules } of cluster.pods.values()) counts.set(rules, (counts.get(rules) ?? 0) + 1);
  const free = counts.get('') ?? 0;
  counts.delete('');
  const largest = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, theme.kinds.length);
  const colours = new Map(largest.map(([rules], at) => [rules, theme.kinds[at] ?? '']));
  const others = counts.size - colours.size;
  return {
    node: () => theme.cell,
    pod: (pod) => colours.get(pod.rules) ?? theme.pod,
    meaning: ['rule', cluster, theme, others > 0, free > 0, ...colours.keys()],
    legend: {
      note: 'By the rules that each pod carries and that have to hold.',
      entries: [
        ...largest.map(([rules]) => ({ text: rules, colour: colours.get(rules) ?? '' })),
        ...(others > 0 ? [{ text: `${others} other combinations`, colour: theme.pod }] : []),
        ...(free > 0 ? [{ text: 'no rule', colour: theme.pod }] : []),
      ],
    },
  };
}

function byViolation(theme: Theme, violating: ReadonlySet<string>): Colouring {
  return {
    node: () => theme.cell,
    meaning: ['violation', theme, violating],
    pod: (pod) => (violating.has(pod.key) ? theme.alarm : theme.pod),
    legend: {
      entries: [
        { text: 'breaks a required rule', colour: theme.alarm },
        { text: 'breaks none', colour: theme.pod },
      ],
    },
  };
}
