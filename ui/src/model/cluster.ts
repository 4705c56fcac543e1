/** The cluster that is shown: nodes and pods, kept up to date by changes in any order. */
import { nodeRow, podRow, type NodeRow, type PodRow } from './rows';
import type { Schemas } from '../api/client';

/** The pods that name one node, whether that node is there or not, and what they ask for together. */
export class Bucket {
  readonly pods = new Set<PodRow>();
  readonly used: Record<string, number> = {};
  private order: PodRow[] | null = null;

  put(pod: PodRow): void {
    this.pods.add(pod);
    this.count(pod, 1);
  }

  take(pod: PodRow): void {
    if (this.pods.delete(pod)) this.count(pod, -1);
  }

  /** The pods side by side, those of a workload together. */
  get ordered(): readonly PodRow[] {
    this.order ??= [...this.pods].sort(
      (a, b) => compare(a.workload, b.workload) || compare(a.name, b.name),
    );
    return this.order;
  }

  private count(pod: PodRow, sign: number): void {
    this.order = null;
    if (pod.over) return;
    for (const name in pod.requests) {
      this.used[name] = (this.used[name] ?? 0) + sign * (pod.requests[name] ?? 0);
    }
  }
}

export interface Changes {
  /** The nodes whose pods, labels or resources changed. */
  readonly nodes: ReadonlySet<string>;
  /** Whether nodes came, went or changed, so that the layout is another one. */
  readonly layout: boolean;
}

type Listener = (changes: Changes) => void;

export class Cluster {
  readonly nodes = new Map<string, NodeRow>();
  readonly pods = new Map<string, PodRow>();
  readonly pending = new Set<PodRow>();
  /** Rises with every change that listeners were told of. */
  version = 0;
  private sorted: readonly NodeRow[] | null = null;
  private readonly buckets = new Map<string, Bucket>();
  private readonly listeners = new Set<Listener>();
  private touched = new Set<string>();
  private relaid = false;
  private changed = false;

  constructor(readonly name: string) {}

  bucket(node: string): Bucket {
    let bucket = this.buckets.get(node);
    if (!bucket) this.buckets.set(node, (bucket = new Bucket()));
    return bucket;
  }

  /** The nodes by name. */
  get ordered(): readonly NodeRow[] {
    this.sorted ??= [...this.nodes.values()].sort((a, b) => compare(a.name, b.name));
    return this.sorted;
  }

  share(node: NodeRow, resource: string): number {
    const of = node.allocatable[resource] ?? 0;
    return of > 0 ? (this.bucket(node.name).used[resource] ?? 0) / of : 0;
  }

  putNode(manifest: Schemas['Node']): void {
    this.putNodeRow(nodeRow(manifest));
  }

  putNodeRow(row: NodeRow): void {
    const known = this.nodes.get(row.name);
    if (known && known.version >= row.version) return;
    this.nodes.set(row.name, row);
    this.touch(row.name);
    this.relayout();
  }

  removeNode(name: string, revision: number): void {
    const known = this.nodes.get(name);
    if (!known || known.version > revision) return;
    this.nodes.delete(name);
    this.touch(name);
    this.relayout();
  }

  putPod(manifest: Schemas['Pod']): void {
    this.putPodRow(podRow(manifest));
  }

  putPodRow(row: PodRow): void {
    const known = this.pods.get(row.key);
    if (known && known.version >= row.version) return;
    if (known) this.drop(known);
    this.pods.set(row.key, row);
    if (row.node) {
      this.bucket(row.node).put(row);
      this.touch(row.node);
    } else {
      if (!row.over) this.pending.add(row);
      this.changed = true;
    }
  }

  removePod(key: string, revision: number): void {
    const known = this.pods.get(key);
    if (!known || known.version > revision) return;
    this.pods.delete(key);
    this.drop(known);
  }

  listen(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Tells the listeners what has changed since they were last told. */
  tell(): void {
    if (!this.changed) return;
    const changes = { nodes: this.touched, layout: this.relaid };
    [this.touched, this.relaid, this.changed] = [new Set(), false, false];
    this.version += 1;
    for (const listener of this.listeners) listener(changes);
  }

  private relayout(): void {
    this.relaid = true;
    this.sorted = null;
  }

  private drop(pod: PodRow): void {
    this.changed = true;
    this.pending.delete(pod);
    if (!pod.node) return;
    this.bucket(pod.node).take(pod);
    this.touch(pod.node);
  }

  private touch(node: string): void {
    this.touched.add(node);
    this.changed = true;
  }
}

const NAMES = new Intl.Collator('en', { numeric: true });

export function compare(a: string, b: string): number {
  return a === b ? 0 : NAMES.compare(a, b);
}
