import { useEffect, useReducer, useRef, useState } from 'preact/hooks';
import { Follower, type Live } from '../model/live';
import { told } from '../api/client';

/** Follows a cluster as long as the component is shown and is not held; `null` is a cluster that is not known yet. */
export function useLive(cluster: string | null, isHeld: boolean): Live | null {
  const [, again] = useReducer((count: number) => count + 1, 0);
  const follower = useRef<Follower | null>(null);
  useEffect(() => {
    if (cluster === null) return undefined;
    const made = new Follower(cluster, isHeld, () => again(undefined as never));
    follower.current = made;
    again(undefined as never);
    return () => {
      made.stop();
      follower.current = null;
    };
  }, [cluster]);
  useEffect(() => follower.current?.hold(isHeld), [isHeld]);
  return follower.current?.live ?? null;
}

export type Answer<T> =
  | { readonly state: 'waiting' }
  | { readonly state: 'here'; readonly value: T }
  | { readonly state: 'failed'; readonly message: string };

/** What `ask` answers; it is asked again when one of the inputs changes, and the old answer is kept until then. */
export function useAnswer<T>(ask: (signal: AbortSignal) => Promise<T>, inputs: readonly unknown[]): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>({ state: 'waiting' });
  useEffect(() => {
    const stop = new AbortController();
    ask(stop.signal).then(
      (value) => !stop.signal.aborted && setAnswer({ state: 'here', value }),
      (error: unknown) => !stop.signal.aborted && setAnswer({ state: 'failed', message: told(error) }),
    );
    return () => stop.abort();
  }, inputs);
  return answer;
}

/** Calls `act` now and then every so often, while the tab can be seen. */
export function useEvery(milliseconds: number, act: () => void): void {
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    latest.current();
    const timer = setInterval(() => document.hidden || latest.current(), milliseconds);
    return () => clearInterval(timer);
  }, [milliseconds]);
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Moorage`;
  }, [title]);
}
