/** A client of one Moorage server: the types of its OpenAPI document, and what is the same in every program. */

import createClient, { type Client } from "openapi-fetch";
import { eventsIn } from "./events.js";
import { NoAnswerError, ProblemError, problemOf } from "./problems.js";
import { type Retries, retrying, RETRIES } from "./retries.js";
import type { components, paths } from "./schema.js";

export { NoAnswerError, ProblemError } from "./problems.js";
export { RETRIES, type Retries } from "./retries.js";
export type { components, paths } from "./schema.js";

export type Schemas = components["schemas"];

/** A path whose GET answers a list that has pages. */
export type ListPath = {
  [P in keyof paths]: paths[P] extends { get: { parameters: { query?: { continue?: string } } } } ? P : never;
}[keyof paths];

type GetOf<P extends ListPath> = paths[P] extends { get: infer G } ? G : never;

/** The answer of such a path: one page. */
export type ListOf<P extends ListPath> =
  GetOf<P> extends { responses: { 200: { content: { "application/json": infer L } } } } ? L : never;

/** What is in such a list. */
export type ItemOf<P extends ListPath> = ListOf<P> extends { items: (infer I)[] } ? I : never;

type ParametersOf<P extends ListPath> = GetOf<P> extends { parameters: infer G } ? G : never;

/** The parameters of a list, without those that turn its pages. */
export type ListParameters<P extends ListPath> = {
  path: ParametersOf<P> extends { path: infer T } ? T : Record<string, never>;
  query?: ParametersOf<P> extends { query?: infer Q } ? Omit<NonNullable<Q>, "continue"> : never;
};

export interface Page<P extends ListPath> {
  items: ItemOf<P>[];
  /** The revision of the first page: who watches from there misses nothing. */
  revision: number;
}

/** A change, at the revision that made it. */
export type Change = Schemas["WatchEvent"] & {
  type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";
  revision: number;
};

/** All that is there: at the beginning, and again whenever changes were missed. */
export interface Listed<P extends ListPath> {
  type: "LISTED";
  items: ItemOf<P>[];
  revision: number;
}

export interface WatchOptions {
  /** Only changes after this revision; those after the present one if there is none. */
  since?: number;
  /** Kinds, separated by commas. */
  kind?: string;
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  signal?: AbortSignal;
}

export interface MoorageOptions {
  /** The server, such as `http://127.0.0.1:8080`. */
  url: string;
  /** The bearer token, if the server wants one. */
  token?: string;
  retries?: Partial<Retries>;
  /** How requests are sent; proxies and tests may want another way. */
  fetch?: (request: Request) => Promise<Response>;
}

const PAGE_SIZE = 500;
const SILENCE_SECONDS_MAX = 60;
const GONE = 410;
const WATCH = "/v1/clusters/{cluster}/watch";

export class Moorage {
  /** Every operation, typed; requests are repeated where that does nothing twice. */
  readonly api: Client<paths>;
  readonly #retries: Retries;

  constructor(options: MoorageOptions) {
    this.#retries = { ...RETRIES, ...options.retries };
    this.api = createClient<paths>({
      baseUrl: options.url.replace(/\/$/, ""),
      headers: options.token === undefined ? {} : { authorization: `Bearer ${options.token}` },
      fetch: retrying(options.fetch ?? ((request) => fetch(request)), this.#retries),
    });
  }

  /** The pages of a list, each as it is needed. */
  async *pages<P extends ListPath>(path: P, params: ListParameters<P>): AsyncGenerator<Page<P>, void> {
    let token: string | null | undefined;
    do {
      const query = { limit: PAGE_SIZE, ...params.query, ...(token ? { continue: token } : {}) };
      const page = (await ok(this.api.GET(path as never, { params: { ...params, query } } as never))) as {
        items: ItemOf<P>[];
        metadata: { resourceVersion: string; continue?: string | null };
      };
      yield { items: page.items, revision: Number(page.metadata.resourceVersion) };
      token = page.metadata.continue;
    } while (token);
  }

  /** The objects of a list, page after page as they are needed. */
  async *list<P extends ListPath>(path: P, params: ListParameters<P>): AsyncGenerator<ItemOf<P>, void> {
    for await (const page of this.pages(path, params)) yield* page.items;
  }

  /**
   * Changes as they are committed, without end, in the order of their revisions.
   *
   * A stream that ends or breaks is taken up where it ended. A ProblemError with the status 410 says that the log
   * does not reach back that far: `follow` lists again then.
   */
  async *watch(cluster: string, options: WatchOptions = {}): AsyncGenerator<Change, void> {
    const { signal, since, ...filters } = options;
    let revision = since;
    let waited = 0;
    let pause = this.#retries.pauseSeconds;
    while (!signal?.aborted) {
      try {
        const query = { ...filters, ...(revision === undefined ? {} : { sinceRevision: revision }) };
        for await (const change of this.#changes(cluster, query, signal)) {
          waited = 0;
          pause = this.#retries.pauseSeconds;
          revision = change.revision;
          yield change;
        }
      } catch (error) {
        if (signal?.aborted) return;
        const isPassing = error instanceof NoAnswerError || (error instanceof ProblemError && error.isPassing);
        if (!isPassing || waited + pause > this.#retries.secondsMax) throw error;
      }
      await this.#retries.sleep(pause);
      waited += pause;
      pause = Math.min(2 * pause, this.#retries.pauseSecondsMax);
    }
  }

  /**
   * All objects of a list, and then their changes without end.
   *
   * Where changes were missed, because the log no longer reaches back far enough, all objects come again as
   * `LISTED`: what is not among them is gone. `options` have to be the filters of the list.
   */
  async *follow<P extends ListPath>(
    path: P,
    params: ListParameters<P>,
    options: Omit<WatchOptions, "since">,
  ): AsyncGenerator<Listed<P> | Change, void> {
    const cluster = (params.path as { cluster: string }).cluster;
    while (!options.signal?.aborted) {
      const listed = await this.#listed(path, params);
      yield listed;
      try {
        yield* this.watch(cluster, { ...options, since: listed.revision });
      } catch (error) {
        if (!(error instanceof ProblemError) || error.status !== GONE) throw error;
      }
    }
  }

  async #listed<P extends ListPath>(path: P, params: ListParameters<P>): Promise<Listed<P>> {
    const items: ItemOf<P>[] = [];
    let revision: number | undefined;
    for await (const page of this.pages(path, params)) {
      items.push(...page.items);
      revision ??= page.revision;
    }
    return { type: "LISTED", items, revision: revision ?? 0 };
  }

  async *#changes(cluster: string, query: object, signal?: AbortSignal): AsyncGenerator<Change, void> {
    const stop = new AbortController();
    const signals = signal ? [signal, stop.signal] : [stop.signal];
    try {
      const answer = await this.api.GET(WATCH, {
        params: { path: { cluster }, query: query as never },
        parseAs: "stream",
        signal: AbortSignal.any(signals),
      });
      if (answer.error !== undefined || !answer.data) throw problemOf(answer.response, answer.error);
      for await (const event of eventsIn(answer.data, SILENCE_SECONDS_MAX)) {
        const data = JSON.parse(event.data) as Schemas["WatchEvent"];
        if (event.name === "ERROR") throw problemOf(answer.response, data);
        yield { ...data, type: event.name as Change["type"], revision: Number(event.id) };
      }
    } finally {
      stop.abort();
    }
  }
}

/**
 * What an operation answers: `const pod = await ok(moorage.api.GET(…))`.
 *
 * Throws a ProblemError if the server refuses.
 */
export async function ok<T>(answer: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await answer;
  if (!response.ok) throw problemOf(response, error);
  return data as T;
}
