/** A slider through the revisions that can still be read, and the map of the cluster as it was at one of them. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { clusterPath, isRefusal, read, told, type Schemas } from '../api/client';
import { readPast, type Past } from '../model/past';
import { Loading, Notice } from '../parts/common';
import { useAnswer, type Answer } from '../parts/hooks';
import { setParams, type Route } from '../route';
import { MapView } from './map';

/** So long nothing is asked for while the slider moves. */
const REST_MILLISECONDS = 200;
const SLIDER = 'revision-slider';

export const COMPACTED = 'What was at this revision is no longer known: the log does not reach back so far.';

export interface Readable {
  readonly oldest: number;
  readonly newest: number;
}

/** The revisions at which all nodes and pods can be read, up to the latest one that was seen; asked for anew at the present. */
export function useReadable(cluster: string, seen: number, revision: number | null): Answer<Readable> {
  const path = clusterPath(cluster, 'revisions');
  const answer = useAnswer((signal) => read<Schemas['ReadableRevisions']>(path, signal), [path, revision === null]);
  if (answer.state !== 'here') return answer;
  const { revision: newest, oldestByKind: { Node = 0, Pod = 0 } } = answer.value;
  return { state: 'here', value: { oldest: Math.max(Node, Pod), newest: Math.max(newest, seen) } };
}

/** Chooses a revision; the newest one is the present, which is followed again. */
export function Slider(props: { route: Route; revision: number | null; readable: Readable }) {
  const { route, revision, readable: { oldest, newest } } = props;
  const [moved, setMoved] = useState<number | null>(null);
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const at = Math.max(oldest, Math.min(moved ?? revision ?? newest, newest));
  const isNow = moved === null ? revision === null : at === newest;
  const go = (to: number): void => {
    setMoved(to);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => {
      setMoved(null);
      setParams(route, { revision: to >= newest ? null : String(to) });
    }, REST_MILLISECONDS);
  };
  const said = isNow ? `now, revision ${newest}` : `revision ${at} of ${newest}`;
  return (
    <div class="slider">
      <button aria-label="One revision back" disabled={at <= oldest} onClick={() => go(at - 1)}>‹</button>
      <input type="range" id={SLIDER} aria-label="Revision" aria-valuetext={said} min={oldest} max={newest} step={1} value={at}
        disabled={oldest >= newest} onInput={(event) => go(Number(event.currentTarget.value))} />
      <button aria-label="One revision on" disabled={isNow} onClick={() => go(at + 1)}>›</button>
      <output aria-hidden="true">{isNow ? 'now' : at.toLocaleString('en')}</output>
    </div>
  );
}

/** Leads to the slider, from where the arrow keys go on. */
export function toSlider(): void {
  scrollTo(0, 0);
  document.getElementById(SLIDER)?.focus({ preventScroll: true });
}

/** What could not be read, and why. */
interface Unread {
  readonly revision: number;
  readonly error: unknown;
}

/** The map as of a revision, under a banner that says so. */
export function PastMap(props: { route: Route; revision: number }) {
  const { route, revision } = props;
  const { cluster } = route;
  const answer = useAnswer<Past | Unread>(
    (signal) => readPast(cluster, revision, signal).catch((error: unknown) => ({ revision, error })),
    [cluster, revision],
  );
  const value = answer.state === 'here' ? answer.value : null;
  const past = value && 'cluster' in value ? value : null;
  const unread = value && 'error' in value && value.revision === revision ? value : null;
  return (
    <section class="past" aria-label="The cluster as it was">
      <AsOf revision={revision} past={past} back={() => present(route)} />
      {past && <MapView route={route} live={{ cluster: past.cluster, loaded: true }} />}
      {unread && <Unreadable route={route} error={unread.error} />}
      {!past && !unread && <Loading what={`Reading revision ${revision}`} />}
    </section>
  );
}

/** Back to what is now, with the same colours; what was selected may no longer be there. */
function present(route: Route): void {
  setParams(route, { revision: null, select: null });
  toSlider();
}

function AsOf(props: { revision: number; past: Past | null; back: () => void }) {
  const { revision, past } = props;
  const isRead = past?.revision === revision;
  return (
    <div class="as-of">
      <p role="status">
        <b>As of revision {revision.toLocaleString('en')}</b>
        {isRead && past.at && <Moment at={past.at} />}
        {past && !isRead && <span class="quiet"> Reading it; the map still shows revision {past.revision.toLocaleString('en')}.</span>}
      </p>
      <button onClick={props.back}>Back to now</button>
    </div>
  );
}

function Moment({ at }: { at: string }) {
  const text = new Date(at).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
  return <span>, committed <time dateTime={at}>{text}</time></span>;
}

function Unreadable({ route, error }: { route: Route; error: unknown }) {
  const readable = useReadable(route.cluster, 0, null);
  if (!isRefusal(error, 410)) return <Notice tone="alarm" title={told(error)} />;
  const oldest = readable.state === 'here' ? readable.value.oldest : null;
  return (
    <Notice tone="alarm" title={COMPACTED}>
      {oldest !== null && (
        <button onClick={() => setParams(route, { revision: String(oldest), select: null })}>
          Go to revision {oldest.toLocaleString('en')}, the oldest that can be read
        </button>
      )}
    </Notice>
  );
}
