/** Prometheus' text format, as far as the view of the server's health reads it. */

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export type Scrape = ReadonlyMap<string, readonly Sample[]>;

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

export function parseMetrics(text: string): Scrape {
  const found = new Map<string, Sample[]>();
  for (const line of text.split('\n')) {
    const match = line.startsWith('#') ? null : LINE.exec(line);
    const name = match?.[1];
    if (!match || name === undefined) continue;
    const labels: Record<string, string> = {};
    for (const [, key = '', value = ''] of (match[2] ?? '').matchAll(LABEL)) labels[key] = value;
    const samples = found.get(name) ?? [];
    samples.push({ labels, value: Number(match[3]) });
    found.set(name, samples);
  }
  return found;
}

export function sum(scrape: Scrape, name: string, labels: Readonly<Record<string, string>> = {}): number {
  let total = 0;
  for (const sample of scrape.get(name) ?? []) {
    if (Object.entries(labels).every(([key, value]) => sample.labels[key] === value)) total += sample.value;
  }
  return total;
}

/** A quantile of what was observed between two scrapes, linear within its bucket; null if nothing was. */
export function quantile(before: Scrape | null, after: Scrape, name: string, share: number): number | null {
  const buckets = new Map<number, number>();
  const gather = (scrape: Scrape, sign: number): void => {
    for (const { labels, value } of scrape.get(`${name}_bucket`) ?? []) {
      const bound = labels.le === '+Inf' ? Infinity : Number(labels.le);
      buckets.set(bound, (buckets.get(bound) ?? 0) + sign * value);
    }
  };
  gather(after, 1);
  if (before) gather(before, -1);
  const bounds = [...buckets].sort(([a], [b]) => a - b);
  const total = bounds.at(-1)?.[1] ?? 0;
  if (total <= 0) return null;
  let [low, below] = [0, 0];
  for (const [bound, count] of bounds) {
    if (count >= share * total) {
      return bound === Infinity ? low : low + ((bound - low) * (share * total - below)) / Math.max(1, count - below);
    }
    [low, below] = [bound, count];
  }
  return low;
}
