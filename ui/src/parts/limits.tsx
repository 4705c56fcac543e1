/** The limits that are set, beside what is used of them as far as that is known. */
import type { ComponentChildren } from 'preact';
import { clusterPath, read, type Schemas } from '../api/client';
import { sum, type Scrape } from '../model/metrics';
import { Share } from './common';
import { useAnswer } from './hooks';

interface Use {
  readonly title: string;
  readonly used: number | null;
  readonly limit: number;
  readonly bytes?: boolean;
}

/** What a limit is for each of, in the order in which the page shows them. */
const SCOPES: readonly (readonly [string, string])[] = [
  ['database', 'All clusters together'],
  ['cluster', 'Each cluster'],
  ['process', 'Each worker process'],
  ['principal', 'Each caller, in each worker'],
  ['object', 'Each object'],
  ['request', 'Each request'],
];

export function Limits({ scrape, cluster }: { scrape: Scrape; cluster: string }) {
  const clusters = useCount<Schemas['ClusterList']>('/v1/clusters');
  const webhooks = useCount<Schemas['WebhookList']>(clusterPath(cluster, 'webhooks'));
  const limits = new Map((scrape.get('moorage_configured_limit') ?? []).map((each) => [each.labels.setting ?? '', each]));
  if (limits.size === 0) return null;
  const workers = Math.max(1, sum(scrape, 'moorage_worker_processes'));
  const set = (setting: string): number => limits.get(setting)?.value ?? 0;
  const uses: Use[] = [
    { title: 'Clusters', used: clusters, limit: set('clusters_max') },
    { title: 'Objects of the largest cluster', used: sum(scrape, 'moorage_cluster_objects'), limit: set('objects_max') },
    { title: `Webhooks of ${cluster}`, used: webhooks, limit: set('webhooks_max') },
    { title: 'Watches', used: sum(scrape, 'moorage_watch_streams'), limit: workers * set('watchers_max') },
    { title: 'Bodies and answers in memory', used: sum(scrape, 'moorage_bytes_in_flight'), limit: workers * set('bytes_in_flight_max'), bytes: true },
    { title: 'Open files', used: known(scrape, 'process_open_fds'), limit: workers * sum(scrape, 'process_max_fds') },
    ...['commits', 'reads'].map((pool) => ({
      title: `Database connections for ${pool}`,
      used: sum(scrape, 'moorage_database_connections', { pool, state: 'borrowed' }),
      limit: sum(scrape, 'moorage_database_connections_max', { pool }),
    })),
  ];
  return (
    <section class="card" aria-labelledby="limits">
      <h2 id="limits">Limits</h2>
      <dl class="uses">
        {uses.filter((each) => each.limit > 0).map((each) => (
          <div key={each.title}>
            <dt>{each.title}</dt>
            <dd>{each.used === null ? <span class="share-text">at most {shown(each.limit, each.bytes)}</span> : (
              <Share share={each.used / each.limit} text={`${shown(each.used, each.bytes)} of ${shown(each.limit, each.bytes)}`} />
            )}</dd>
          </div>
        ))}
      </dl>
      <details>
        <summary>All limits as they are set</summary>
        <div class="table-scroll" tabIndex={0} role="region" aria-label="All limits">
          <table>
            <thead><tr><th scope="col">Setting</th><th scope="col" class="number">Limit</th></tr></thead>
            {SCOPES.map(([scope, title]) => (
              <tbody key={scope}>
                <tr><th colSpan={2} scope="rowgroup" class="scope">{title}</th></tr>
                {[...limits.values()].filter((each) => each.labels.scope === scope).map((each) => (
                  <Setting key={each.labels.setting} name={each.labels.setting ?? ''}>{ofSetting(each.labels.setting ?? '', each.value)}</Setting>
                ))}
              </tbody>
            ))}
          </table>
        </div>
        <p class="small quiet">What each of them means is on the page of <a href="/docs/settings.html">settings</a>.</p>
      </details>
    </section>
  );
}

function Setting({ name, children }: { name: string; children: ComponentChildren }) {
  return <tr><th scope="row"><code>MOORAGE_{name.toUpperCase()}</code></th><td class="number">{children}</td></tr>;
}

/** How many items a list has; null as long as that is not known, or if the caller may not read it. */
function useCount<T extends { items: readonly unknown[] }>(path: string): number | null {
  const answer = useAnswer((signal) => read<T>(path, signal), [path]);
  return answer.state === 'here' ? answer.value.items.length : null;
}

function known(scrape: Scrape, name: string): number | null {
  return scrape.has(name) ? sum(scrape, name) : null;
}

function ofSetting(setting: string, value: number): string {
  return `${shown(value, /bytes/.test(setting))}${/_seconds_max$/.test(setting) ? ' s' : ''}`;
}

function shown(value: number, isBytes = false): string {
  if (!isBytes) return value.toLocaleString('en');
  for (const [unit, factor] of [['MiB', 2 ** 20], ['KiB', 2 ** 10]] as const) {
    if (value >= factor) return `${Math.round((value / factor) * 10) / 10} ${unit}`;
  }
  return `${value} B`;
}
