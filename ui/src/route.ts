/** Where somebody is on the page is its address, so that every view can be sent as a link. */
import { useEffect, useState } from 'preact/hooks';

export const VIEWS = ['map', 'why', 'waiting', 'what-if', 'events', 'health'] as const;
export type View = (typeof VIEWS)[number];

export interface Route {
  readonly view: View;
  readonly cluster: string;
  /** What follows the cluster, such as a pod's namespace and name. */
  readonly rest: readonly string[];
  readonly params: URLSearchParams;
}

/** The views that can show an earlier revision. */
const OF_PAST: readonly View[] = ['events', 'why'];

/** The earlier revision that the address asks for; null is the present. */
export function revisionOf(route: Route): number | null {
  const text = route.params.get('revision') ?? '';
  return OF_PAST.includes(route.view) && /^[0-9]{1,15}$/.test(text) ? Number(text) : null;
}

/** Where something is on the map, now or at an earlier revision. */
export function mapAddress(cluster: string, select: string, revision: number | null): string {
  if (revision === null) return addressOf('map', cluster, [], new URLSearchParams({ select }));
  return addressOf('events', cluster, [], new URLSearchParams({ revision: String(revision), select }));
}

/** The explanation of a pod, now or as of an earlier revision. */
export function whyAddress(cluster: string, namespace: string, name: string, revision: number | null): string {
  const params = revision === null ? undefined : new URLSearchParams({ revision: String(revision) });
  return addressOf('why', cluster, [namespace, name], params);
}

export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?');
  const [view, cluster, ...rest] = path.split('/').map(decoded);
  const known = VIEWS.find((each) => each === view) ?? 'map';
  return { view: known, cluster: cluster || 'default', rest: rest.filter(Boolean), params: new URLSearchParams(query) };
}

export function addressOf(view: View, cluster: string, rest: readonly string[] = [], params?: URLSearchParams): string {
  const path = [view, cluster, ...rest].map(encodeURIComponent).join('/');
  const query = params?.toString();
  return `#/${path}${query ? `?${query}` : ''}`;
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = (): void => setHash(location.hash);
    window.addEventListener('hashchange', changed);
    return () => window.removeEventListener('hashchange', changed);
  }, []);
  return parseRoute(hash);
}

/** Changes parameters of the address in place: the way back leads to another view, not to another colour. */
export function setParams(route: Route, changes: Readonly<Record<string, string | null>>): void {
  const params = new URLSearchParams(route.params);
  for (const [name, value] of Object.entries(changes)) {
    if (value) params.set(name, value);
    else params.delete(name);
  }
  history.replaceState(null, '', addressOf(route.view, route.cluster, route.rest, params));
  window.dispatchEvent(new HashChangeEvent('hashchange'));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
