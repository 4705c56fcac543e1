import { useState } from 'preact/hooks';
import { clusterPath, read, type Schemas } from '../api/client';
import type { Live } from '../model/live';
import { ago } from '../model/quantity';
import { Loading, Notice } from '../parts/common';
import { useAnswer, useEvery } from '../parts/hooks';
import { addressOf, type Route } from '../route';

const SHOWN = 200;

type Happened = Schemas['Event'];

/** What happened to pods lately, the latest first. */
export function EventsView({ route }: { route: Route; live: Live }) {
  const [tick, setTick] = useState(0);
  const [reason, setReason] = useState('');
  useEvery(3000, () => setTick((count) => count + 1));
  const path = clusterPath(route.cluster, 'events');
  const answer = useAnswer((signal) => read<Schemas['EventList']>(path, signal), [path, tick]);
  if (answer.state === 'waiting') return <Loading what="Reading the events" />;
  if (answer.state === 'failed') return <Notice tone="alarm" title={answer.message} />;
  const { items } = answer.value;
  const reasons = [...new Set(items.map((each) => each.reason))].sort();
  const shown = items.filter((each) => !reason || each.reason === reason).sort((a, b) => at(b) - at(a));
  return (
    <div class="column wide">
      <h1>What happened</h1>
      {items.length === 0 && <Notice title="Nothing happened in the last hour." />}
      {reasons.length > 1 && (
        <div class="filters" role="group" aria-label="Reasons">
          {['', ...reasons].map((each) => (
            <button key={each} aria-pressed={each === reason} onClick={() => setReason(each)}>{each || 'all'}</button>
          ))}
        </div>
      )}
      <ol class="timeline">
        {shown.slice(0, SHOWN).map((each) => <Line key={each.metadata.name} event={each} route={route} />)}
      </ol>
      {shown.length > SHOWN && <p class="small quiet">and {(shown.length - SHOWN).toLocaleString('en')} earlier ones</p>}
    </div>
  );
}

function Line({ event, route }: { event: Happened; route: Route }) {
  const { namespace, name } = event.involvedObject;
  return (
    <li class={event.type === 'Warning' ? 'warning' : ''}>
      <time dateTime={event.lastTimestamp} title={event.lastTimestamp}>{ago(at(event), Date.now())} ago</time>
      <b>{event.reason}</b>
      <a href={addressOf('why', route.cluster, [namespace, name])}>{namespace}/{name}</a>
      <span class="message">{event.message}{event.count > 1 && ` (${event.count} times)`}</span>
    </li>
  );
}

function at(event: Happened): number {
  return Date.parse(event.lastTimestamp) || 0;
}
