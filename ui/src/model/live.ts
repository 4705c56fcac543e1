/** Loads a cluster and follows it for as long as it is shown, whatever happens to the connection. */
import { clusterPath, isRefusal, pages, told, type Schemas } from '../api/client';
import { watch, type WatchedEvent } from '../api/watch';
import { Cluster } from './cluster';

export type Connection = 'loading' | 'live' | 'held' | 'lost' | 'refused';

export interface Live {
  cluster: Cluster;
  connection: Connection;
  revision: number;
  loaded: boolean;
  message: string;
}

const RETRY_MILLISECONDS = [250, 500, 1000, 2000, 4000, 8000];
const TOLD_ALL_MILLISECONDS = 250;

/** One life: from the first list to `stop`. It tells `changed` of a new state. */
export class Follower {
  readonly live: Live;
  private readonly stopping = new AbortController();
  /** It ends what is under way, when there is to be a pause. */
  private holding = new AbortController();
  private release: (() => void) | null = null;
  /** Whether everything has to be listed before the watch can go on. */
  private isStale = true;
  private failures = 0;
  private frame = 0;
  private lastTold = 0;

  constructor(
    name: string,
    private isHeld: boolean,
    private readonly changed: () => void,
  ) {
    this.live = { cluster: new Cluster(name), connection: 'loading', revision: 0, loaded: false, message: '' };
    void this.run();
  }

  stop(): void {
    this.stopping.abort();
    this.release?.();
    cancelAnimationFrame(this.frame);
  }

  /** Follows nothing as long as it is held, and then goes on from where it was. */
  hold(isHeld: boolean): void {
    if (isHeld === this.isHeld) return;
    this.isHeld = isHeld;
    if (isHeld) this.holding.abort();
    else this.release?.();
  }

  private async run(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      if (this.isHeld) {
        await this.released();
        continue;
      }
      this.holding = new AbortController();
      const signal = AbortSignal.any([this.stopping.signal, this.holding.signal]);
      try {
        if (this.isStale) await this.load(signal);
        await this.follow(signal);
        this.become('lost', 'The stream of changes ended.');
      } catch (error) {
        if (signal.aborted) continue;
        if (isRefusal(error, 401, 403, 404)) {
          this.become('refused', error.message);
          return;
        }
        this.become('lost', told(error));
        if (isRefusal(error, 410)) this.isStale = true;
      }
      await this.pause(signal);
    }
  }

  /**
   * Lists everything anew; until it is here, what was known before stays to be seen.
   *
   * The watch goes on from the earliest page, and of its changes those are passed over that a later page had already.
   */
  private async load(signal: AbortSignal): Promise<void> {
    this.become('loading', '');
    const name = this.live.cluster.name;
    const cluster = new Cluster(name);
    const earliest = await Promise.all([
      this.list<Schemas['Node']>(clusterPath(name, 'nodes'), (each) => cluster.putNode(each), signal),
      this.list<Schemas['Pod']>(clusterPath(name, 'pods'), (each) => cluster.putPod(each), signal),
    ]);
    this.live.revision = Math.min(...earliest);
    this.live.loaded = true;
    this.isStale = false;
    this.live.cluster = cluster;
    cluster.tell();
    this.become('loading', '');
  }

  private async list<T>(path: string, put: (item: T) => void, signal: AbortSignal): Promise<number> {
    let earliest = Infinity;
    for await (const page of pages<T>(path, signal)) {
      page.items.forEach(put);
      earliest = Math.min(earliest, page.revision);
    }
    return earliest;
  }

  private async follow(signal: AbortSignal): Promise<void> {
    const opened = (): void => {
      this.failures = 0;
      this.become('live', '');
    };
    for await (const event of watch(this.live.cluster.name, this.live.revision, signal, opened)) {
      this.take(event);
      this.live.revision = Math.max(this.live.revision, event.revision);
      this.soon();
    }
  }

  private take({ type, kind, object, revision }: WatchedEvent): void {
    const { cluster } = this.live;
    const { name = '', namespace = '' } = (object.metadata ?? {}) as { name?: string; namespace?: string };
    if (kind === 'Node') {
      if (type === 'DELETED') cluster.removeNode(name, revision);
      else cluster.putNode(object as unknown as Schemas['Node']);
    } else if (kind === 'Pod') {
      if (type === 'DELETED') cluster.removePod(`${namespace}/${name}`, revision);
      else cluster.putPod(object as unknown as Schemas['Pod']);
    }
  }

  /** The map hears of changes with the next frame, everything else four times a second. */
  private soon(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame((now) => {
      this.frame = 0;
      this.live.cluster.tell();
      if (now - this.lastTold >= TOLD_ALL_MILLISECONDS) {
        this.lastTold = now;
        this.changed();
      } else this.soon();
    });
  }

  private become(connection: Connection, message: string): void {
    this.live.connection = connection;
    this.live.message = message;
    this.changed();
  }

  private async released(): Promise<void> {
    this.become('held', '');
    await new Promise<void>((resolve) => (this.release = resolve));
    this.release = null;
  }

  private async pause(signal: AbortSignal): Promise<void> {
    const wait = RETRY_MILLISECONDS[Math.min(this.failures, RETRY_MILLISECONDS.length - 1)] ?? 0;
    this.failures += 1;
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(done, wait);
      function done(): void {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        window.removeEventListener('online', done);
        resolve();
      }
      signal.addEventListener('abort', done);
      window.addEventListener('online', done);
    });
  }
}
