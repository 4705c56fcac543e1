/** Asks the server's API with the token of this tab, and turns problem documents into errors. */
import type { components } from './schema';

export type Schemas = components['schemas'];

const TOKEN = 'moorage.token';

/** An answer that is no success, or none at all (status 0). */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

export function isRefusal(error: unknown, ...statuses: number[]): error is Refusal {
  return error instanceof Refusal && (statuses.length === 0 || statuses.includes(error.status));
}

export function told(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The token lives as long as the tab: nothing is left on disk, and other tabs ask for their own. */
export const session = {
  get token(): string | null {
    return sessionStorage.getItem(TOKEN);
  },
  set token(token: string | null) {
    if (token) sessionStorage.setItem(TOKEN, token);
    else sessionStorage.removeItem(TOKEN);
  },
  /** It is called when the server does not, or no longer, accept the token. */
  whenRefused: (_refusal: Refusal): void => undefined,
};

export function clusterPath(cluster: string, ...segments: string[]): string {
  return ['/v1/clusters', cluster, ...segments].map((each, at) => (at ? encodeURIComponent(each) : each)).join('/');
}

/** A pod, or what is said of it, now or at an earlier revision. */
export function podPath(
  cluster: string,
  namespace: string,
  name: string,
  revision: number | null,
  ...segments: string[]
): string {
  const path = clusterPath(cluster, 'namespaces', namespace, 'pods', name, ...segments);
  return revision === null ? path : `${path}?revision=${revision}`;
}

/** Sends a request and returns its answer, which is a success; others are thrown as `Refusal`. */
export async function send(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (session.token) headers.set('Authorization', `Bearer ${session.token}`);
  let answer: Response;
  try {
    answer = await fetch(path, { ...init, headers, credentials: 'omit', cache: 'no-store' });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new Refusal(0, 'Unreachable', 'The server cannot be reached.');
  }
  if (answer.ok) return answer;
  const refusal = await refusalOf(answer);
  if (refusal.status === 401) session.whenRefused(refusal);
  throw refusal;
}

export async function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  const answer = await send(path, signal ? { signal } : {});
  return (await answer.json()) as T;
}

export function post<T>(path: string, body: unknown): Promise<T> {
  return write<T>('POST', path, body);
}

export function put<T>(path: string, body: unknown): Promise<T> {
  return write<T>('PUT', path, body);
}

async function write<T>(method: string, path: string, body: unknown): Promise<T> {
  const answer = await send(path, {
    method,
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
  return (await answer.json()) as T;
}

/** The token of the next page, which a page has before its items. */
const CONTINUE = /"continue":"([^"]+)"/;
const ITEMS = '"items":[';

/** The objects of a list, page by page; the next page is under way while one is worked on. */
export async function* pages<T>(
  path: string,
  signal: AbortSignal,
  params: Readonly<Record<string, string>> = {},
): AsyncGenerator<{ items: T[]; revision: number }> {
  const ask = async (token: string): Promise<string> => {
    const query = new URLSearchParams({ limit: '5000', ...params, ...(token ? { continue: token } : {}) });
    return (await send(`${path}?${query}`, { signal })).text();
  };
  let next: Promise<string> | null = ask('');
  while (next) {
    const text: string = await next;
    const token = CONTINUE.exec(text.slice(0, text.indexOf(ITEMS)))?.[1];
    next = token ? ask(token) : null;
    next?.catch(() => undefined);
    const page = JSON.parse(text) as { items: T[]; metadata: Schemas['ListMeta'] };
    yield { items: page.items, revision: Number(page.metadata.resourceVersion) };
  }
}

async function refusalOf(answer: Response): Promise<Refusal> {
  try {
    const problem = (await answer.json()) as Schemas['Problem'];
    const fields = (problem.errors ?? []).map((each) => `${each.field} ${each.message}`);
    const message = [problem.detail ?? problem.title, ...fields].filter(Boolean).join('\n');
    return new Refusal(answer.status, problem.code, message);
  } catch {
    return new Refusal(answer.status, 'Unknown', `The server answered with status ${answer.status}.`);
  }
}
