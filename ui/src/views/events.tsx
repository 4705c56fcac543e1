import { useState } from 'preact/hooks';
import { clusterPath, read, type Schemas } from '../api/client';
import type { Live } from '../model/live';
import { ago } from '../model/quantity';
import { Loading, Notice } from '../parts/common';
import { useAnswer, useEvery, type Answer } from '../parts/hooks';
import { addressOf, mapAddress, revisionOf, whyAddress, type Route } from '../route';
import { PastMap, Slider, toSlider, useReadable, type Readable } from './past';

const SHOWN = 200;

type Happened = Schemas['Event'];

/** What happened to pods lately, the latest first, and what the cluster was like then. */
export function EventsView({ route, live }: { route: Route; live: Live }) {
  const revision = revisionOf(route);
  const readable = useReadable(route.cluster, live.revision, revision);
  return (
    <div class="column wide">
      <h1>What happened</h1>
      <Revisions route={route} revision={revision} readable={readable} />
      {revision !== null && <PastMap route={route} revision={revision} />}
      <Timeline route={route} revision={revision} oldest={readable.state === 'here' ? readable.value.oldest : null} />
    </div>
  );
}

function Revisions(props: { route: Route; revision: number | null; readable: Answer<Readable> }) {
  const { route, revision, readable } = props;
  if (readable.state === 'waiting') return <p class="quiet" role="status">Asking how far back one can read</p>;
  if (readable.state === 'failed') return <p class="problem" role="alert">{readable.message}</p>;
  const { oldest, newest } = readable.value;
  const can = oldest >= newest
    ? 'No earlier revision can be read.'
    : `The slider shows the cluster as it was: revisions ${oldest.toLocaleString('en')} to ${newest.toLocaleString('en')} can be read.`;
  return (
    <div class="revisions" role="group" aria-label="Earlier revisions">
      <Slider route={route} revision={revision} readable={readable.value} />
      <p class="small quiet">{can}</p>
    </div>
  );
}

/** Links to earlier revisions appear once it is known which ones can be read, and with that the slider they lead to. */
function Timeline({ route, revision, oldest }: { route: Route; revision: number | null; oldest: number | null }) {
  const [tick, setTick] = useState(0);
  const [reason, setReason] = useState('');
  useEvery(3000, () => revision === null && setTick((count) => count + 1));
  const path = clusterPath(route.cluster, 'events');
  const answer = useAnswer((signal) => read<Schemas['EventList']>(path, signal), [path, tick]);
  if (answer.state === 'waiting') return <Loading what="Reading the events" />;
  if (answer.state === 'failed') return <Notice tone="alarm" title={answer.message} />;
  const { items } = answer.value;
  const reasons = [...new Set(items.map((each) => each.reason))].sort();
  const shown = items.filter((each) => !reason || each.reason === reason).sort((a, b) => at(b) - at(a) || made(b) - made(a));
  return (
    <>
      {items.length === 0 && <Notice title="Nothing happened in the last hour." />}
      {reasons.length > 1 && (
        <div class="filters" role="group" aria-label="Reasons">
          {['', ...reasons].map((each) => (
            <button key={each} aria-pressed={each === reason} onClick={() => setReason(each)}>{each || 'all'}</button>
          ))}
        </div>
      )}
      <ol class="timeline">
        {shown.slice(0, SHOWN).map((each) => (
          <Line key={each.metadata.name} event={each} route={route} revision={revision}
            isReadable={oldest !== null && made(each) >= oldest} />
        ))}
      </ol>
      {shown.length > SHOWN && <p class="small quiet">and {(shown.length - SHOWN).toLocaleString('en')} earlier ones</p>}
    </>
  );
}

/** What an explanation answers of a decision; the other events are about pods that had been placed long before. */
const QUESTIONS: Readonly<Record<string, string>> = {
  Scheduled: 'Why there?',
  BindingForced: 'Why there?',
  FailedScheduling: 'Why not?',
};

function Line(props: { event: Happened; route: Route; revision: number | null; isReadable: boolean }) {
  const { event, route, revision } = props;
  const { namespace, name } = event.involvedObject;
  const pod = `${namespace}/${name}`;
  const question = QUESTIONS[event.reason];
  const isLater = revision !== null && made(event) > revision;
  return (
    <li class={`${event.type === 'Warning' ? 'warning' : ''}${isLater ? ' later' : ''}`}
      aria-current={made(event) === revision ? 'step' : undefined}>
      <time dateTime={event.lastTimestamp} title={event.lastTimestamp}>{ago(at(event), Date.now())} ago</time>
      <b>{event.reason}</b>
      <a href={addressOf('why', route.cluster, [namespace, name])}>{pod}</a>
      <div class="told">
        <span class="message">{event.message}{event.count > 1 && ` (${event.count} times)`}</span>
        {props.isReadable && (
          <span class="then small">
            <a href={mapAddress(route.cluster, `pod:${pod}`, made(event))} onClick={toSlider}>
              Map at revision {made(event).toLocaleString('en')}<span class="hidden"> with {pod}</span>
            </a>
            {question && (
              <a href={whyAddress(route.cluster, namespace, name, made(event))}>
                {question}<span class="hidden"> {pod} at revision {made(event)}</span>
              </a>
            )}
          </span>
        )}
      </div>
    </li>
  );
}

function at(event: Happened): number {
  return Date.parse(event.lastTimestamp) || 0;
}

/** The revision that the event was decided on, or that it made. */
function made(event: Happened): number {
  return Number(event.metadata.resourceVersion ?? 0);
}
