/** Kubernetes' quantities as numbers, and numbers as people read them. */

const FACTORS: Record<string, number> = {
  n: 1e-9, u: 1e-6, m: 1e-3, '': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
};
const QUANTITY = /^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([numkMGTPE]|[KMGTPE]i)?$/;

/** The value in the resource's unit (cores, bytes, pieces); 0 for what is no quantity. */
export function quantity(text: unknown): number {
  const match = QUANTITY.exec(String(text ?? ''));
  return match ? Number(match[1]) * (FACTORS[match[2] ?? ''] ?? 1) : 0;
}

export function amount(resource: string, value: number): string {
  if (!isMemory(resource)) return String(Math.round(value * 1000) / 1000);
  for (const unit of ['Ti', 'Gi', 'Mi', 'Ki']) {
    const factor = FACTORS[unit] ?? 1;
    if (value >= factor) return `${Math.round((value / factor) * 10) / 10} ${unit}B`;
  }
  return `${Math.round(value)} B`;
}

function isMemory(resource: string): boolean {
  return /memory|storage|hugepages/.test(resource);
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

export function ago(since: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - since) / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** Names in a sentence: the first ones, and how many more. */
export function named(names: readonly string[], most = 5): string {
  if (names.length > most) return `${names.slice(0, most).join(', ')} and ${(names.length - most).toLocaleString('en')} more`;
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

export function counted(count: number, word: string): string {
  return `${count.toLocaleString('en')} ${word}${count === 1 ? '' : 's'}`;
}
