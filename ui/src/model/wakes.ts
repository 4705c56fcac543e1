/** After which changes the server tries a waiting pod again, in words: what each plugin's queueing hints say, in short. */
import { counted } from './quantity';
import type { PodRow } from './rows';

const MEMBERS = /[0-9] members of .* are here/;
const WAKES: readonly (readonly [RegExp, string])[] = [
  [MEMBERS, 'the members of its group come that are missing'],
  [/scheduling gates/, 'its last scheduling gate is removed'],
  [/Insufficient|Too many pods/, 'a pod leaves, or a node gets room'],
  [/pod anti-affinity/, 'a pod that is not to be beside it leaves'],
  [/pod affinity/, 'a pod that it has to be beside is placed'],
  [/topology spread/, 'pods that it is counted with come or leave'],
  [/node affinity|node selector|affinity\/selector/, 'a node gets other labels'],
  [/taint/, 'a node loses a taint'],
  [/unschedulable/, 'a node is uncordoned'],
];

function wakes(reason: string): string[] {
  return WAKES.filter(([pattern]) => pattern.test(reason)).map(([, words]) => words);
}

/** What has to happen before a group is placed: members that are not here have to come, and each that is here needs a place. */
export function groupWakes(members: readonly PodRow[], wanted: number, scheduled: number): string {
  const live = members.filter((each) => !each.over);
  const missing = Math.max(0, wanted - live.length);
  const gated = live.filter((each) => each.gated).length;
  const parts = [
    missing > 0 && `${counted(missing, 'more member')} ${missing === 1 ? 'comes' : 'come'}`,
    gated > 0 && `the scheduling gates of ${counted(gated, 'member')} are removed`,
  ].filter(Boolean);
  if (parts.length > 0) return `It is tried when ${parts.join(' and ')}.`;
  const reasons = new Set(live.filter((each) => !each.node).flatMap((each) => wakes(each.message)));
  const others = [...reasons, 'a node comes'].join(', or when ');
  const goal = scheduled < wanted ? `${wanted} of its members get their places at once, or none does` : 'The others may still get a place';
  return `${goal}. Tried again when ${others}.`;
}

/** Empty if the reasons are none of these. */
export function wakesOf(reason: string): string {
  const found = wakes(reason);
  return found.length > 0 ? `Tried again when ${found.join(', or when ')}${/gates/.test(reason) || MEMBERS.test(reason) ? '' : ', or when a node comes'}.` : '';
}
