/** Where domains, nodes and pods are on the map, in CSS pixels. */
import { compare, type Cluster } from '../model/cluster';

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

export interface Domain extends Box {
  /** The value of the topology key; empty for the nodes that lack it. */
  readonly value: string;
  readonly columns: number;
  /** Large cells share the width of their domain. */
  readonly cellWidth: number;
  readonly nodes: readonly string[];
}

export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly cell: { readonly w: number; readonly h: number; readonly gap: number };
  readonly domains: readonly Domain[];
  /** Node to domain and place in it. */
  readonly places: ReadonlyMap<string, readonly [Domain, number]>;
}

/** Instead of a topology key: all nodes together. */
export const ALL_NODES = '-';
const PAD = 10;
const HEAD = 26;
const GUTTER = 12;
const DOMAIN_WIDTH_MIN = 140;
const UNLIKE = 4;
/** So many more rows than are needed are tried, with which cells may be larger. */
const ROWS_MORE = 3;
const CELL_MIN = 11;
const CELL_MAX = 170;
/** Large cells are wider than high, as names are. */
const FLATNESS = 0.62;
const STRETCHED_FROM = 40;

export interface Wanted {
  readonly key: string;
  readonly width: number;
  readonly height: number;
  readonly zoom: number;
}

/** The domains of a topology key with their nodes, by name; the nodes that lack the label come last. */
export function domainsOf(cluster: Cluster, key: string): [string, string[]][] {
  const found = new Map<string, string[]>();
  for (const node of cluster.ordered) {
    const value = key === ALL_NODES ? 'all nodes' : (node.labels[key] ?? '');
    const nodes = found.get(value);
    if (nodes) nodes.push(node.name);
    else found.set(value, [node.name]);
  }
  return [...found].sort(([a], [b]) => Number(a === '') - Number(b === '') || compare(a, b));
}

/** The layout with the largest cells with which everything fits into the height, or can be scrolled to. */
export function layOut(cluster: Cluster, wanted: Wanted): Layout {
  const { width } = wanted;
  const domains = bySize(domainsOf(cluster, wanted.key));
  const perRow = Math.max(1, Math.floor((width + GUTTER) / (DOMAIN_WIDTH_MIN + GUTTER)));
  const fewest = Math.ceil(domains.length / perRow);
  let [best, rows] = [0, fewest];
  for (let tried = fewest; tried <= Math.min(domains.length, fewest + ROWS_MORE); tried++) {
    const size = largest(domains, wanted, tried);
    if (size > best + 1) [best, rows] = [size, tried];
  }
  const free = Math.min(best * wanted.zoom, width - 2 * PAD);
  const size = free > 24 ? Math.floor(free) : free;
  const { boxes, height } = withCells(domains, width, rows, size);
  const places = new Map<string, readonly [Domain, number]>();
  for (const box of boxes) box.nodes.forEach((name, at) => places.set(name, [box, at]));
  return { width, height, cell: cellSize(size), domains: boxes, places };
}

/** The largest cells with which so many rows of domains fit into the height. */
function largest(domains: [string, string[]][], wanted: Wanted, rows: number): number {
  let low = CELL_MIN;
  let high = CELL_MAX;
  while (high - low > 0.5) {
    const middle = (low + high) / 2;
    if (withCells(domains, wanted.width, rows, middle).height <= wanted.height) low = middle;
    else high = middle;
  }
  return low;
}

/** Domains of very different sizes stand by size, so that those side by side are about as high. */
function bySize(domains: [string, string[]][]): [string, string[]][] {
  const sizes = domains.map(([, nodes]) => nodes.length);
  if (Math.max(...sizes) <= UNLIKE * Math.min(...sizes)) return domains;
  return [...domains].sort(([, a], [, b]) => b.length - a.length);
}

function cellSize(size: number): Layout['cell'] {
  const gap = size >= 60 ? 8 : size >= 24 ? 4 : 2;
  return { w: size, h: Math.max(CELL_MIN, Math.round(size * (size >= STRETCHED_FROM ? FLATNESS : 1))), gap };
}

function withCells(
  domains: [string, string[]][],
  width: number,
  rows: number,
  size: number,
): { boxes: Domain[]; height: number } {
  const { h, gap } = cellSize(size);
  const boxes: Domain[] = [];
  let y = 0;
  for (const row of rowsOf(domains, width, rows, size + gap)) {
    let [x, height] = [0, 0];
    for (const { value, nodes, columns, w } of row) {
      const lines = Math.ceil(nodes.length / columns);
      const inner = w - 2 * PAD;
      const cellWidth = size >= STRETCHED_FROM ? Math.floor((inner - (columns - 1) * gap) / columns) : size;
      const box: Domain = { value, nodes, columns, cellWidth, x, y, w, h: HEAD + lines * (h + gap) - gap + PAD };
      boxes.push(box);
      x += w + GUTTER;
      height = Math.max(height, box.h);
    }
    y += height + GUTTER;
  }
  return { boxes, height: Math.max(0, y - GUTTER) };
}

interface Sized {
  value: string;
  nodes: string[];
  columns: number;
  w: number;
}

/** Rows of domains side by side; within a row widths follow the number of nodes, so that heights are alike. */
function* rowsOf(
  domains: [string, string[]][],
  width: number,
  rows: number,
  step: number,
): Generator<Sized[]> {
  const each = Math.ceil(domains.length / Math.max(1, rows));
  for (let at = 0; at < domains.length; at += each) {
    const row = domains.slice(at, at + each);
    const widths = widthsOf(row.map(([, nodes]) => nodes.length), width - GUTTER * (row.length - 1));
    yield row.map(([value, nodes], place) => {
      const w = widths[place] ?? width;
      const columns = Math.max(1, Math.floor((w - 2 * PAD + 2) / step));
      return { value, nodes, w, columns: step >= STRETCHED_FROM ? Math.min(columns, nodes.length) : columns };
    });
  }
}

/** Widths in proportion to numbers of nodes, but for those that would be too narrow for their name. */
function widthsOf(nodes: readonly number[], width: number): number[] {
  const narrow = new Set<number>();
  for (;;) {
    const free = width - narrow.size * DOMAIN_WIDTH_MIN;
    const total = nodes.reduce((sum, count, at) => (narrow.has(at) ? sum : sum + count), 0);
    const widths = nodes.map((count, at) => (narrow.has(at) ? DOMAIN_WIDTH_MIN : Math.floor((free * count) / total)));
    const tooNarrow = widths.findIndex((each, at) => each < DOMAIN_WIDTH_MIN && !narrow.has(at));
    if (tooNarrow < 0 || narrow.size + 1 === nodes.length) return widths;
    narrow.add(tooNarrow);
  }
}

export function cellOf(layout: Layout, node: string): Box | null {
  const place = layout.places.get(node);
  if (!place) return null;
  const [domain, at] = place;
  const { h, gap } = layout.cell;
  const w = domain.cellWidth;
  return {
    x: domain.x + PAD + (at % domain.columns) * (w + gap),
    y: domain.y + HEAD + Math.floor(at / domain.columns) * (h + gap),
    w,
    h,
  };
}

/** The node at a point of the map. */
export function nodeAt(layout: Layout, x: number, y: number): string | null {
  const { h, gap } = layout.cell;
  const domain = layout.domains.find((d) => x >= d.x && x < d.x + d.w && y >= d.y && y < d.y + d.h);
  if (!domain) return null;
  const w = domain.cellWidth;
  const [dx, dy] = [x - domain.x - PAD, y - domain.y - HEAD];
  const column = Math.floor(dx / (w + gap));
  if (dx < 0 || dy < 0 || column >= domain.columns || dx % (w + gap) > w || dy % (h + gap) > h) return null;
  return domain.nodes[Math.floor(dy / (h + gap)) * domain.columns + column] ?? null;
}

/** How the pods of a node stand in its cell. */
export interface Grid {
  readonly columns: number;
  readonly x: number;
  readonly y: number;
  /** From one pod to the next, to the right and downwards. */
  readonly dx: number;
  readonly dy: number;
  readonly w: number;
  readonly h: number;
  /** How many pods there is room for; in a tiny cell that may be fewer than there are. */
  readonly room: number;
  /** Whether there is room for the pods' names. */
  readonly named: boolean;
}

const LABEL = 24;
const POD_MAX = 22;
const CHIP = { w: 84, h: 20, gap: 4 };

export function hasLabel(cell: { w: number; h: number }): boolean {
  return cell.w >= 84 && cell.h >= 44;
}

/** The pods of a node with their names if there is room, else as squares as large as there is room. */
export function gridOf(cell: Box, pods: number): Grid {
  const margin = cell.w >= 60 ? 7 : cell.w >= 24 ? 3 : 1;
  const top = hasLabel(cell) ? LABEL : margin;
  const [x, y] = [cell.x + margin, cell.y + top];
  const [w, h] = [cell.w - 2 * margin, cell.h - top - margin];
  const columns = Math.floor((w + CHIP.gap) / (CHIP.w + CHIP.gap));
  const lines = Math.floor((h + CHIP.gap) / (CHIP.h + CHIP.gap));
  if (hasLabel(cell) && columns * lines >= pods) {
    const dx = (w + CHIP.gap) / columns;
    return { columns, x, y, dx, dy: CHIP.h + CHIP.gap, w: dx - CHIP.gap, h: CHIP.h, room: columns * lines, named: true };
  }
  let step = Math.min(POD_MAX + 3, w, h);
  while (step > 1 && Math.floor(w / step) * Math.floor(h / step) < pods) step -= step > 6 ? 0.5 : 0.25;
  step = Math.max(1, step);
  const size = Math.max(1, step - (step >= 12 ? 3 : step >= 4 ? 1 : 0.4));
  const across = Math.max(1, Math.floor(w / step));
  const room = across * Math.max(1, Math.floor(h / step));
  return { columns: across, x, y, dx: step, dy: step, w: size, h: size, room, named: false };
}

export function podBox(grid: Grid, at: number): Box {
  return {
    x: grid.x + (at % grid.columns) * grid.dx,
    y: grid.y + Math.floor(at / grid.columns) * grid.dy,
    w: grid.w,
    h: grid.h,
  };
}
