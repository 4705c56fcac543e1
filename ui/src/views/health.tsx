import { useRef, useState } from 'preact/hooks';
import { send, told } from '../api/client';
import { parseMetrics, quantile, sum, type Scrape } from '../model/metrics';
import { Loading, Notice } from '../parts/common';
import { useEvery } from '../parts/hooks';
import { Limits } from '../parts/limits';

const EVERY_MILLISECONDS = 2000;
const KEPT = 60;
const PLACEMENT = 'scheduler_pod_scheduling_sli_duration_seconds';
const REQUEST = 'moorage_http_request_duration_seconds';

interface Point {
  readonly at: number;
  readonly scrape: Scrape;
}

interface Figure {
  readonly title: string;
  readonly unit: string;
  readonly text: string;
  readonly values: readonly (number | null)[];
  readonly isWrong?: boolean;
}

/** What the server says of itself, by its own metrics, for as long as the view is open. */
export function HealthView({ cluster }: { cluster: string }) {
  const [points, setPoints] = useState<readonly Point[]>([]);
  const [problem, setProblem] = useState('');
  const isAsking = useRef(false);
  useEvery(EVERY_MILLISECONDS, () => {
    if (isAsking.current) return;
    isAsking.current = true;
    scrape().then(
      (point) => {
        setProblem('');
        setPoints((known) => [...known.slice(-KEPT), point]);
      },
      (error: unknown) => setProblem(told(error)),
    ).finally(() => (isAsking.current = false));
  });
  const last = points.at(-1);
  if (!last) return problem ? <Notice tone="alarm" title={problem} /> : <Loading what="Reading the server’s metrics" />;
  return (
    <div class="column wide">
      <h1>Health of the server</h1>
      {problem && <Notice tone="alarm" title={problem} />}
      <div class="tiles">{figures(points).map((each) => <Tile key={each.title} figure={each} />)}</div>
      <p class="small quiet">
        All worker processes together, from <a href="/metrics">/metrics</a>, every two seconds; the lines show the last
        two minutes.
      </p>
      <Limits scrape={last.scrape} cluster={cluster} />
    </div>
  );
}

async function scrape(): Promise<Point> {
  const answer = await send('/metrics');
  return { at: performance.now(), scrape: parseMetrics(await answer.text()) };
}

function figures(points: readonly Point[]): Figure[] {
  const pending = points.map(({ scrape: each }) => sum(each, 'scheduler_pending_pods'));
  const lag = points.map(({ scrape: each }) => sum(each, 'moorage_replica_lag_seconds'));
  const revisions = points.map(({ scrape: each }) => sum(each, 'moorage_replica_lag_revisions'));
  return [
    rate(points, 'Pods placed', 'a second', 'scheduler_schedule_attempts_total', { result: 'scheduled' }),
    latency(points, 'Placement, median', PLACEMENT, 0.5),
    latency(points, 'Placement, 99th percentile', PLACEMENT, 0.99),
    rate(points, 'Requests', 'a second', `${REQUEST}_count`),
    latency(points, 'Request, 99th percentile', REQUEST, 0.99),
    rate(points, 'Commits', 'a second', 'moorage_commits_total'),
    rate(points, 'Lost races', 'a second', 'moorage_commit_conflicts_total'),
    present('Replica lag', 's', lag, (lag.at(-1) ?? 0) > 5),
    present('Replica lag', 'revisions', revisions),
    present('Pending pods', '', pending),
    present('Watches', '', points.map(({ scrape: each }) => sum(each, 'moorage_watch_streams'))),
    rate(points, 'Evictions', 'a second', 'moorage_evictions_total'),
  ];
}

function rate(points: readonly Point[], title: string, unit: string, name: string, labels = {}): Figure {
  const values = points.slice(1).map(({ at, scrape: each }, index) => {
    const before = points[index];
    const seconds = before ? (at - before.at) / 1000 : 1;
    return before ? Math.max(0, (sum(each, name, labels) - sum(before.scrape, name, labels)) / seconds) : 0;
  });
  return { title, unit, values, text: number(values.at(-1) ?? 0) };
}

/** A quantile of the last two minutes, and since the server's start if nothing happened in them. */
function latency(points: readonly Point[], title: string, name: string, share: number): Figure {
  const values = points.slice(1).map(({ scrape: each }, index) =>
    quantile(points[index]?.scrape ?? null, each, name, share));
  const [first, last] = [points[0], points.at(-1)];
  const recent = first && last ? quantile(first.scrape, last.scrape, name, share) : null;
  const value = recent ?? (last ? quantile(null, last.scrape, name, share) : null);
  return { title, unit: value === null ? '' : 'ms', values, text: value === null ? '–' : number(value * 1000) };
}

function present(title: string, unit: string, values: readonly number[], isWrong = false): Figure {
  return { title, unit, values, text: number(values.at(-1) ?? 0), isWrong };
}

function number(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en');
  return String(Math.round(value * 10) / 10);
}

function Tile({ figure }: { figure: Figure }) {
  return (
    <section class={`card tile${figure.isWrong ? ' alarm' : ''}`}>
      <h2>{figure.title}</h2>
      <p class="big">{figure.text} <span class="unit">{figure.unit}</span></p>
      <Line values={figure.values} />
    </section>
  );
}

function Line({ values }: { values: readonly (number | null)[] }) {
  const most = Math.max(...values.map((each) => each ?? 0), 1e-9);
  const start = KEPT - values.length;
  const path = values
    .map((each, at) => `${at ? 'L' : 'M'}${(((start + at) / (KEPT - 1)) * 100).toFixed(1)},${(27 - ((each ?? 0) / most) * 25).toFixed(1)}`)
    .join('');
  return (
    <svg viewBox="0 0 100 28" preserveAspectRatio="none" aria-hidden="true">
      <path class="base" d="M0,27H100" />
      {values.length > 1 && <path class="line" d={path} />}
    </svg>
  );
}
