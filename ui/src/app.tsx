import { useEffect, useState } from 'preact/hooks';
import { isRefusal, read, session, told, type Schemas } from './api/client';
import type { Live } from './model/live';
import { Loading, Notice } from './parts/common';
import { useLive, useTitle } from './parts/hooks';
import { Login } from './parts/login';
import { addressOf, revisionOf, useRoute, type Route, type View } from './route';
import { EventsView } from './views/events';
import { HealthView } from './views/health';
import { MapView } from './views/map';
import { WaitingView } from './views/waiting';
import { WhatIfView } from './views/what-if';
import { WhyView } from './views/why';

const TABS: readonly (readonly [View, string])[] = [
  ['map', 'Map'],
  ['why', 'Why'],
  ['waiting', 'Waiting'],
  ['what-if', 'What if'],
  ['events', 'Events'],
  ['health', 'Health'],
];
const ASKS_FOR_TOKEN = 'This server asks for a token.';

export function App() {
  const [caller, setCaller] = useState<Schemas['Caller'] | null>(null);
  const [refused, setRefused] = useState('');
  const [problem, setProblem] = useState('');

  const ask = (): void => {
    setProblem('');
    read<Schemas['Caller']>('/v1/whoami').then(setCaller, (error: unknown) => {
      if (!isRefusal(error, 401)) setProblem(told(error));
    });
  };
  useEffect(() => {
    session.whenRefused = () => {
      setRefused(session.token ? 'The token is not, or no longer, valid. Enter another one.' : ASKS_FOR_TOKEN);
      session.token = null;
      setCaller(null);
    };
    ask();
  }, []);

  if (caller) return <Inside caller={caller} leave={() => {
    sessionStorage.clear();
    setRefused(ASKS_FOR_TOKEN);
    setCaller(null);
  }} />;
  if (refused) return <Login reason={refused} entered={(who) => {
    setRefused('');
    setCaller(who);
  }} />;
  if (problem) {
    return (
      <main class="login" id="main">
        <Notice tone="alarm" title={problem}>
          <button class="primary" onClick={ask}>Try again</button>
        </Notice>
      </main>
    );
  }
  return <main class="login" id="main"><Loading what="Connecting" /></main>;
}

function Inside(props: { caller: Schemas['Caller']; leave: () => void }) {
  const route = useRoute();
  const live = useLive(route.cluster, revisionOf(route) !== null);
  const [clusters, setClusters] = useState<readonly string[]>([]);
  useEffect(() => {
    read<Schemas['ClusterList']>('/v1/clusters').then(
      (list) => setClusters(list.items.map((each) => each.name)),
      () => setClusters([]),
    );
  }, []);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        document.getElementById('main')?.focus();
      }}>Skip to the content</a>
      <Header route={route} live={live} clusters={clusters} caller={props.caller} leave={props.leave} />
      <main id="main" tabIndex={-1} class={`view ${route.view}`}>
        {live ? <Content route={route} live={live} /> : <Loading what="Connecting" />}
      </main>
    </>
  );
}

function Header(props: {
  route: Route;
  live: Live | null;
  clusters: readonly string[];
  caller: Schemas['Caller'];
  leave: () => void;
}) {
  const { route, live } = props;
  const names = props.clusters.includes(route.cluster) ? props.clusters : [route.cluster, ...props.clusters];
  const pending = live?.cluster.pending.size ?? 0;
  return (
    <header class="top">
      <a class="brand" href={addressOf('map', route.cluster)}>
        <img src="/page/icon.svg" alt="" width="24" height="24" />
        <span>Moorage</span>
      </a>
      <label class="cluster">
        <span class="hidden">Cluster</span>
        <select value={route.cluster} onChange={(event) => {
          location.hash = addressOf(route.view, event.currentTarget.value);
        }}>
          {names.map((name) => <option key={name} value={name} selected={name === route.cluster}>{name}</option>)}
        </select>
      </label>
      <nav aria-label="Views">
        {TABS.map(([view, text]) => (
          <a key={view} href={addressOf(view, route.cluster)} aria-current={view === route.view ? 'page' : undefined}>
            {text}
            {view === 'waiting' && pending > 0 && <span class="badge">{pending.toLocaleString('en')}</span>}
          </a>
        ))}
      </nav>
      <div class="status">
        {live && <State live={live} />}
        <a href="/docs">Docs</a>
        {session.token && (
          <button class="plain" onClick={props.leave} title={`Signed in as ${props.caller.name}`}>Sign out</button>
        )}
      </div>
    </header>
  );
}

function State({ live }: { live: Live }) {
  const texts = { loading: 'Loading', live: 'Live', held: 'Paused', lost: 'Reconnecting', refused: 'Refused' };
  return (
    <span class={`state ${live.connection}`} role="status" title={live.message || `Revision ${live.revision}`}>
      <span class="dot" aria-hidden="true" />
      <span>{texts[live.connection]}</span>
      {live.loaded && <span class="revision" aria-hidden="true">{live.revision.toLocaleString('en')}</span>}
    </span>
  );
}

function Content({ route, live }: { route: Route; live: Live }) {
  useTitle(TABS.find(([view]) => view === route.view)?.[1] ?? 'Map');
  if (live.connection === 'refused') return <Notice tone="alarm" title={live.message} />;
  switch (route.view) {
    case 'map':
      return <MapView route={route} live={live} />;
    case 'why':
      return <WhyView route={route} live={live} />;
    case 'waiting':
      return <WaitingView route={route} live={live} />;
    case 'what-if':
      return <WhatIfView route={route} live={live} />;
    case 'events':
      return <EventsView key={route.cluster} route={route} live={live} />;
    case 'health':
      return <HealthView cluster={route.cluster} />;
  }
}
