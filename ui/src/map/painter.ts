/**
 * Draws the map on a canvas that shows the visible part of a tall document.
 *
 * The document is drawn into tiles, which are kept: scrolling copies them, and a change draws only
 * the cells of the nodes that changed. So a frame costs little however many pods there are.
 */
import type { Cluster } from '../model/cluster';
import type { NodeRow, PodRow } from '../model/rows';
import type { Colouring, Theme } from './colours';
import { drawLinks, type Link } from './links';
import { cellOf, gridOf, hasLabel, podBox, type Box, type Grid, type Layout } from './layout';

const TILE_HEIGHT = 128;
/** The time that one frame may spend on new tiles; the others follow in the next frames. */
const BUDGET_MILLISECONDS = 7;
const FONT = 'system-ui, sans-serif';

export interface Scene {
  readonly cluster: Cluster;
  readonly layout: Layout;
  readonly colouring: Colouring;
  readonly theme: Theme;
  readonly violating: ReadonlySet<string>;
}

export interface Marks {
  readonly hovered: string | null;
  readonly focused: string | null;
  readonly selectedNode: string | null;
  /** Pods that stand out while all others step back; null if nothing is singled out. */
  readonly pods: ReadonlySet<PodRow> | null;
  /** Nodes that stand out in the same way. */
  readonly nodes: ReadonlySet<string> | null;
  readonly links: readonly Link[];
}

interface Tile {
  readonly canvas: HTMLCanvasElement;
  readonly context: CanvasRenderingContext2D;
  readonly top: number;
  /** What the tile shows; that may be an earlier scene with the same layout. */
  scene: Scene;
  stale: Set<string>;
}

export class Painter {
  private scene: Scene | null = null;
  private marks: Marks = { hovered: null, focused: null, selectedNode: null, pods: null, nodes: null, links: [] };
  private readonly tiles = new Map<number, Tile>();
  private frame = 0;
  private readonly context: CanvasRenderingContext2D;
  private ratio = 1;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly scroller: HTMLElement,
  ) {
    const context = canvas.getContext('2d');
    if (!context) throw new Error('This browser has no canvas.');
    this.context = context;
  }

  /** Shows another scene; tiles of the same layout are shown until they are drawn anew. */
  show(scene: Scene): void {
    const isResized = this.resize();
    if (isResized || this.scene?.layout !== scene.layout || this.scene.theme !== scene.theme) this.tiles.clear();
    this.scene = scene;
    this.soon();
  }

  mark(marks: Marks): void {
    this.marks = marks;
    this.soon();
  }

  /** Draws the cells of these nodes again. */
  refresh(nodes: Iterable<string>): void {
    if (!this.scene) return;
    for (const name of nodes) {
      const cell = cellOf(this.scene.layout, name);
      if (!cell) continue;
      for (const at of tilesOf(cell)) this.tiles.get(at)?.stale.add(name);
    }
    this.soon();
  }

  soon = (): void => {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  };

  close(): void {
    cancelAnimationFrame(this.frame);
    this.tiles.clear();
  }

  private resize(): boolean {
    this.ratio = Math.min(2, window.devicePixelRatio || 1);
    const [w, h] = [this.scroller.clientWidth, this.scroller.clientHeight];
    const [width, height] = [Math.round(w * this.ratio), Math.round(h * this.ratio)];
    if (this.canvas.width === width && this.canvas.height === height) return false;
    this.canvas.width = width;
    this.canvas.height = height;
    this.canvas.style.width = `${w}px`;
    this.canvas.style.height = `${h}px`;
    return true;
  }

  private draw(): void {
    const { scene, context } = this;
    if (!scene) return;
    const top = this.scroller.scrollTop;
    const bottom = top + this.scroller.clientHeight;
    const started = performance.now();
    const { ratio } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    for (let at = Math.floor(top / TILE_HEIGHT); at * TILE_HEIGHT < bottom; at++) {
      if (at * TILE_HEIGHT > scene.layout.height) break;
      const inTime = performance.now() - started < BUDGET_MILLISECONDS;
      const tile = this.tile(scene, at, inTime);
      if (tile) context.drawImage(tile.canvas, 0, Math.round((tile.top - top) * ratio));
      if (!inTime) this.soon();
    }
    context.setTransform(ratio, 0, 0, ratio, 0, Math.round(-top * ratio));
    this.drawMarks(scene, top, bottom);
  }

  private tile(scene: Scene, at: number, mayDraw: boolean): Tile | undefined {
    let tile = this.tiles.get(at);
    if (!mayDraw) return tile;
    if (tile?.scene === scene) {
      for (const name of tile.stale) this.drawInto(tile, scene, name);
    } else {
      tile ??= this.newTile(scene, at);
      this.tiles.set(at, tile);
      tile.scene = scene;
      drawDomains(scene, tile);
      for (const name of nodesIn(scene.layout, tile)) this.drawInto(tile, scene, name);
    }
    tile.stale.clear();
    return tile;
  }

  private newTile(scene: Scene, at: number): Tile {
    const canvas = document.createElement('canvas');
    canvas.width = this.canvas.width;
    canvas.height = Math.round(TILE_HEIGHT * this.ratio);
    const context = canvas.getContext('2d');
    if (!context) throw new Error('This browser has no canvas.');
    const top = at * TILE_HEIGHT;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, -top * this.ratio);
    return { canvas, context, top, scene, stale: new Set() };
  }

  private drawInto(tile: Tile, scene: Scene, name: string): void {
    const cell = cellOf(scene.layout, name);
    const node = scene.cluster.nodes.get(name);
    if (cell && node) drawNode(tile.context, scene, node, cell);
  }

  private drawMarks(scene: Scene, top: number, bottom: number): void {
    const { context, marks } = this;
    if (marks.pods || marks.nodes) {
      context.fillStyle = scene.theme.veil;
      context.fillRect(0, top, scene.layout.width, Math.min(bottom, scene.layout.height) - top);
      for (const name of marks.nodes ?? []) this.again(scene, name, top, bottom, scene.theme.accent);
      if (marks.pods) this.drawPods(scene, marks.pods, top, bottom);
    }
    for (const [name, colour, width] of [
      [marks.hovered, scene.theme.text, 1.5],
      [marks.selectedNode, scene.theme.accent, 3],
      [marks.focused, scene.theme.accent, 3],
    ] as const) {
      const cell = name ? cellOf(scene.layout, name) : null;
      if (cell) outline(context, cell, colour, width);
    }
    drawLinks(context, scene.cluster, scene.layout, scene.theme, marks.links);
  }

  private again(scene: Scene, name: string, top: number, bottom: number, colour: string): void {
    const cell = cellOf(scene.layout, name);
    const node = scene.cluster.nodes.get(name);
    if (!cell || !node || cell.y > bottom || cell.y + cell.h < top) return;
    drawNode(this.context, scene, node, cell);
    outline(this.context, cell, colour, 2);
  }

  private drawPods(scene: Scene, pods: ReadonlySet<PodRow>, top: number, bottom: number): void {
    const { context } = this;
    const drawn = new Set<string>();
    for (const pod of pods) {
      if (!pod.node || drawn.has(pod.node)) continue;
      drawn.add(pod.node);
      const cell = cellOf(scene.layout, pod.node);
      if (!cell || cell.y > bottom || cell.y + cell.h < top) continue;
      const { ordered } = scene.cluster.bucket(pod.node);
      const grid = gridOf(cell, ordered.length);
      ordered.forEach((each, at) => {
        if (at >= grid.room || !pods.has(each)) return;
        context.fillStyle = scene.theme.accent;
        fill(context, podBox(grid, at));
        if (grid.named) drawName(context, each.name, podBox(grid, at), inkOn(scene.theme.accent, scene.theme));
      });
      outline(context, cell, scene.theme.accent, cell.w >= 24 ? 1.5 : 1);
    }
  }
}

function* tilesOf(box: Box): Generator<number> {
  for (let at = Math.floor(box.y / TILE_HEIGHT); at * TILE_HEIGHT < box.y + box.h; at++) yield at;
}

function* nodesIn(layout: Layout, tile: Tile): Generator<string> {
  const { h, gap } = layout.cell;
  for (const domain of layout.domains) {
    if (domain.y > tile.top + TILE_HEIGHT || domain.y + domain.h < tile.top) continue;
    const first = domain.nodes[0];
    const start = first === undefined ? null : cellOf(layout, first);
    if (!start) continue;
    const from = Math.max(0, Math.floor((tile.top - start.y - h) / (h + gap)));
    const to = Math.max(0, Math.ceil((tile.top + TILE_HEIGHT - start.y) / (h + gap)) + 1);
    yield* domain.nodes.slice(from * domain.columns, to * domain.columns);
  }
}

function drawDomains(scene: Scene, { context, top }: Tile): void {
  const { theme, layout } = scene;
  for (const domain of layout.domains) {
    if (domain.y > top + TILE_HEIGHT || domain.y + domain.h < top) continue;
    context.fillStyle = theme.surface;
    context.strokeStyle = theme.edge;
    context.lineWidth = 1;
    context.beginPath();
    context.roundRect(domain.x + 0.5, domain.y + 0.5, domain.w - 1, domain.h - 1, 8);
    context.fill();
    context.stroke();
    const count = domain.nodes.length.toLocaleString('en');
    context.font = `600 12px ${FONT}`;
    context.textBaseline = 'middle';
    context.fillStyle = theme.text;
    const room = domain.w - 28 - context.measureText(count).width;
    context.fillText(fitted(context, domain.value || 'without the label', room), domain.x + 10, domain.y + 14);
    context.font = `12px ${FONT}`;
    context.fillStyle = theme.quiet;
    context.textAlign = 'right';
    context.fillText(count, domain.x + domain.w - 10, domain.y + 14);
    context.textAlign = 'left';
  }
}

function drawNode(context: CanvasRenderingContext2D, scene: Scene, node: NodeRow, cell: Box): void {
  const { theme, colouring, cluster } = scene;
  context.fillStyle = theme.surface;
  context.fillRect(cell.x - 0.5, cell.y - 0.5, cell.w + 1, cell.h + 1);
  context.fillStyle = colouring.node(node);
  if (cell.w >= 24) {
    context.beginPath();
    context.roundRect(cell.x, cell.y, cell.w, cell.h, cell.w >= 60 ? 6 : 3);
    context.fill();
  } else context.fillRect(cell.x, cell.y, cell.w, cell.h);
  const { ordered } = cluster.bucket(node.name);
  const grid = gridOf(cell, ordered.length);
  const isBroken = drawPods(context, scene, ordered, grid);
  if (hasLabel(cell)) drawLabel(context, scene, node, cell);
  if (isBroken) outline(context, cell, theme.alarm, cell.w >= 24 ? 2 : 1);
}

/** Draws the pods of a node, and returns whether one of them breaks a rule. */
function drawPods(
  context: CanvasRenderingContext2D,
  scene: Scene,
  pods: readonly PodRow[],
  grid: Grid,
): boolean {
  const { colouring, violating, theme } = scene;
  let isBroken = false;
  let last = '';
  pods.slice(0, grid.room).forEach((pod, at) => {
    const breaks = violating.size > 0 && violating.has(pod.key);
    isBroken ||= breaks;
    const colour = breaks ? theme.alarm : colouring.pod(pod);
    if (colour !== last) context.fillStyle = last = colour;
    if (pod.leaving || pod.over) context.globalAlpha = 0.35;
    fill(context, podBox(grid, at));
    if (grid.named) {
      drawName(context, pod.name, podBox(grid, at), inkOn(colour, theme));
      last = '';
    }
    context.globalAlpha = 1;
  });
  return isBroken;
}

function fill(context: CanvasRenderingContext2D, { x, y, w, h }: Box): void {
  if (w < 9) {
    context.fillRect(x, y, w, h);
    return;
  }
  context.beginPath();
  context.roundRect(x, y, w, h, 3);
  context.fill();
}

function drawLabel(context: CanvasRenderingContext2D, scene: Scene, node: NodeRow, cell: Box): void {
  context.font = `600 12px ${FONT}`;
  context.textBaseline = 'middle';
  context.fillStyle = inkOn(scene.colouring.node(node), scene.theme);
  context.fillText(withEnd(context, node.name, cell.w - 14), cell.x + 7, cell.y + 13);
}

function drawName(context: CanvasRenderingContext2D, name: string, box: Box, ink: string): void {
  context.font = `11.5px ${FONT}`;
  context.textBaseline = 'middle';
  context.fillStyle = ink;
  context.fillText(withEnd(context, name, box.w - 12), box.x + 6, box.y + box.h / 2 + 0.5);
}

const DARK_INK = '#0d161d';
const LIGHT_INK = '#ffffff';

/** The ink that can be read on a colour `#rrggbb`; on others, which let the ground through, it is that of texts. */
function inkOn(colour: string, theme: Theme): string {
  const parts = /^#(..)(..)(..)$/.exec(colour);
  if (!parts) return theme.text;
  const [red = 0, green = 0, blue = 0] = parts.slice(1).map((each) => (parseInt(each, 16) / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.2 ? DARK_INK : LIGHT_INK;
}

function fitted(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  let kept = text.length;
  while (kept > 1 && context.measureText(`${text.slice(0, kept)}…`).width > room) kept--;
  return `${text.slice(0, kept)}…`;
}

/** Names of nodes and pods often differ only at their end, so that is what is kept of them. */
function withEnd(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  let cut = 1;
  while (cut < text.length - 1 && context.measureText(`…${text.slice(cut)}`).width > room) cut++;
  return `…${text.slice(cut)}`;
}

function outline(context: CanvasRenderingContext2D, cell: Box, colour: string, width: number): void {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  context.roundRect(cell.x, cell.y, cell.w, cell.h, cell.w >= 60 ? 6 : cell.w >= 24 ? 3 : 1);
  context.stroke();
}
