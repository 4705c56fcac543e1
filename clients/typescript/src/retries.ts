/** Which requests are sent again, when, and how often. */

import { NoAnswerError } from "./problems.js";

/** How patient a client is. */
export interface Retries {
  /** All pauses of one request together; 0 repeats nothing. */
  secondsMax: number;
  /** The least pause; it is doubled each time. */
  pauseSeconds: number;
  /** The longest pause that the server does not ask for. */
  pauseSecondsMax: number;
  /** The longest pause that is made because `Retry-After` asks for it. */
  retryAfterSecondsMax: number;
  /** How long to wait for an answer to begin. */
  timeoutSeconds: number;
  /** Lets time pass. */
  sleep: (seconds: number) => Promise<void>;
}

export const RETRIES: Retries = {
  secondsMax: 60,
  pauseSeconds: 0.25,
  pauseSecondsMax: 5,
  retryAfterSecondsMax: 60,
  timeoutSeconds: 60,
  sleep: (seconds) => new Promise((resume) => setTimeout(resume, 1000 * seconds)),
};

export type Send = (request: Request) => Promise<Response>;

const KEY = "idempotency-key";
const TOO_MANY_REQUESTS = 429;
/** The code of a refusal that lasts until somebody does something. */
const STANDING = /"code":\s*"EvictionBlocked"/;
const PASSING = new Set([TOO_MANY_REQUESTS, 502, 503, 504]);

const COLLECTION = "/v1/clusters/[^/]+/(namespaces/[^/]+/)?[a-z]+";
/** What takes effect once under an idempotency key; a POST on `plans` keeps nothing. */
const KEYED: Record<string, RegExp> = {
  POST: new RegExp(`^(?!.*/plans$)(${COLLECTION}|.*/(binding|eviction)|.*/pods/statuses)$`),
  DELETE: new RegExp(`^${COLLECTION}$`),
};
/** What does the same however often it is sent. */
const HARMLESS = /\/(cordon|uncordon|drain|pause|resume|cancel|plans|simulations|binding:confirm)$/;

/** A fetch that repeats what may be repeated, and throws NoAnswerError where there is no answer. */
export function retrying(send: Send, retries: Retries): Send {
  return async (original) => {
    const request = keyed(original);
    const isRepeatable = await mayBeRepeated(request);
    let waited = 0;
    for (let pause = retries.pauseSeconds; ; pause = Math.min(2 * pause, retries.pauseSecondsMax)) {
      const { response, error } = await tried(send, request, retries.timeoutSeconds);
      if (request.signal.aborted) request.signal.throwIfAborted();
      const isWorthIt = isRepeatable || response?.status === TOO_MANY_REQUESTS;
      const wanted = response ? retryAfter(response) : undefined;
      const isOver = response !== undefined && (await isFinal(response, wanted));
      const next = wanted === undefined ? pause : Math.max(Math.min(wanted, retries.retryAfterSecondsMax), pause);
      if (isOver || !isWorthIt || waited + next > retries.secondsMax) {
        if (response) return response;
        throw new NoAnswerError(`There was no answer from ${request.url}: ${String(error)}`, { cause: error });
      }
      await response?.body?.cancel();
      await retries.sleep(next);
      waited += next;
    }
  };
}

function keyed(request: Request): Request {
  const path = new URL(request.url).pathname;
  if (!KEYED[request.method]?.test(path) || request.headers.has(KEY)) return request;
  const headers = new Headers(request.headers);
  headers.set(KEY, crypto.randomUUID());
  return new Request(request, { headers });
}

/** A PUT with preconditions is not repeated: if it was heard, they do not hold any more. */
async function mayBeRepeated(request: Request): Promise<boolean> {
  if (request.method === "GET" || request.headers.has(KEY)) return true;
  if (request.method === "POST") return HARMLESS.test(new URL(request.url).pathname);
  if (request.method !== "PUT") return false;
  if (request.headers.has("if-match") || request.headers.has("if-none-match")) return false;
  return !(await request.clone().text()).includes('"resourceVersion"');
}

async function tried(
  send: Send,
  request: Request,
  timeoutSeconds: number,
): Promise<{ response?: Response; error?: unknown }> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new Error("no answer in time")), 1000 * timeoutSeconds);
  try {
    const signal = AbortSignal.any([request.signal, late.signal]);
    return { response: await send(new Request(request.clone(), { signal })) };
  } catch (error) {
    return { error };
  } finally {
    clearTimeout(timer);
  }
}

async function isFinal(response: Response, wanted: number | undefined): Promise<boolean> {
  if (!PASSING.has(response.status)) return wanted === undefined;
  return response.status === TOO_MANY_REQUESTS && STANDING.test(await response.clone().text());
}

function retryAfter(response: Response): number | undefined {
  if (response.ok) return undefined;
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined;
}
