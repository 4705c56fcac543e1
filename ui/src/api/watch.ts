/** Reads a cluster's watch. `EventSource` cannot send a token, so the stream is read with `fetch`. */
import { clusterPath, Refusal, send, type Schemas } from './client';

export interface WatchedEvent {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  revision: number;
  kind: string;
  object: Record<string, unknown>;
}

/** A server sends a bookmark every few seconds, so a stream that is silent for so long is dead. */
const SILENT_MILLISECONDS = 30_000;

/**
 * Yields the changes after a revision until the stream ends.
 *
 * @throws Refusal if the server refuses the watch, or ends it with an error; 410 means: list again.
 */
export async function* watch(
  cluster: string,
  since: number,
  signal: AbortSignal,
  opened: () => void,
): AsyncGenerator<WatchedEvent> {
  const silence = new AbortController();
  const either = AbortSignal.any([signal, silence.signal]);
  const path = `${clusterPath(cluster, 'watch')}?kind=Node,Pod&sinceRevision=${since}`;
  const answer = await send(path, { headers: { Accept: 'text/event-stream' }, signal: either });
  if (!answer.body) return;
  opened();
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const timer = setTimeout(() => silence.abort(), SILENT_MILLISECONDS);
      const piece = await reader.read().finally(() => clearTimeout(timer));
      if (piece.done) return;
      const frames = (rest + piece.value).split('\n\n');
      rest = frames.pop() ?? '';
      for (const frame of frames) {
        const event = parsed(frame);
        if (event) yield event;
      }
    }
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}

function parsed(frame: string): WatchedEvent | null {
  const fields = new Map<string, string>();
  for (const line of frame.split('\n')) {
    const colon = line.indexOf(': ');
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 2));
  }
  const data = fields.get('data');
  if (data === undefined) return null;
  if (fields.get('event') === 'ERROR') {
    const problem = JSON.parse(data) as Schemas['Problem'];
    // Whoever may read no longer learns why from the answer to the next request: its token ended, or its rights did.
    const status = problem.status === 410 ? 410 : 0;
    throw new Refusal(status, problem.code, problem.detail ?? problem.title);
  }
  const { kind, object } = JSON.parse(data) as { kind: string; object: Record<string, unknown> };
  const type = fields.get('event') as WatchedEvent['type'];
  return { type, revision: Number(fields.get('id')), kind, object };
}
