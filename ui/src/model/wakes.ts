/** After which changes the server tries a waiting pod again, in words: what each plugin's queueing hints say, in short. */

const WAKES: readonly (readonly [RegExp, string])[] = [
  [/scheduling gates/, 'its last scheduling gate is removed'],
  [/Insufficient|Too many pods/, 'a pod leaves, or a node gets room'],
  [/pod anti-affinity/, 'a pod that is not to be beside it leaves'],
  [/pod affinity/, 'a pod that it has to be beside is placed'],
  [/topology spread/, 'pods that it is counted with come or leave'],
  [/node affinity|node selector|affinity\/selector/, 'a node gets other labels'],
  [/taint/, 'a node loses a taint'],
  [/unschedulable/, 'a node is uncordoned'],
];

/** Empty if the reasons are none of these. */
export function wakesOf(reason: string): string {
  const found = WAKES.filter(([pattern]) => pattern.test(reason)).map(([, words]) => words);
  return found.length > 0 ? `Tried again when ${found.join(', or when ')}${/gates/.test(reason) ? '' : ', or when a node comes'}.` : '';
}
