/** Lines on the map between pods or nodes: moves of a plan, and what affinity ties together or keeps apart. */
import type { Cluster } from '../model/cluster';
import type { Theme } from './colours';
import { cellOf, gridOf, podBox, type Layout } from './layout';

export const LINK_KINDS = ['move', 'together', 'apart'] as const;
export type LinkKind = (typeof LINK_KINDS)[number];

export interface End {
  readonly node: string;
  /** `namespace/name` of a pod on that node; without it the line ends in the middle of the node. */
  readonly pod?: string;
}

export interface Link {
  readonly kind: LinkKind;
  readonly from: End;
  readonly to: End;
  /** What is only preferred has a dashed line. */
  readonly isSoft: boolean;
}

const BEND = 0.14;
const HEAD = 7;

export function drawLinks(
  context: CanvasRenderingContext2D,
  cluster: Cluster,
  layout: Layout,
  theme: Theme,
  links: readonly Link[],
): void {
  for (const link of links) {
    const [from, to] = [point(cluster, layout, link.from), point(cluster, layout, link.to)];
    if (!from || !to) continue;
    const middle = bent(from, to);
    const path = new Path2D();
    path.moveTo(from[0], from[1]);
    path.quadraticCurveTo(middle[0], middle[1], to[0], to[1]);
    context.strokeStyle = theme.surface;
    context.lineWidth = 3.5;
    context.stroke(path);
    context.strokeStyle = context.fillStyle = link.kind === 'apart' ? theme.alarm : theme.text;
    context.lineWidth = 1.5;
    context.setLineDash(link.isSoft ? [4, 4] : []);
    context.stroke(path);
    context.setLineDash([]);
    if (link.kind === 'move') drawHead(context, middle, to);
  }
}

function point(cluster: Cluster, layout: Layout, end: End): [number, number] | null {
  const cell = cellOf(layout, end.node);
  if (!cell) return null;
  const { ordered } = cluster.bucket(end.node);
  const at = end.pod === undefined ? -1 : ordered.findIndex((each) => each.key === end.pod);
  const grid = gridOf(cell, ordered.length);
  const box = at >= 0 && at < grid.room ? podBox(grid, at) : cell;
  return [box.x + box.w / 2, box.y + box.h / 2];
}

/** Lines are bent a little, so that those to and from one place can be told apart. */
function bent([x, y]: readonly [number, number], [tx, ty]: readonly [number, number]): [number, number] {
  return [(x + tx) / 2 - (ty - y) * BEND, (y + ty) / 2 + (tx - x) * BEND];
}

function drawHead(context: CanvasRenderingContext2D, from: readonly [number, number], to: readonly [number, number]): void {
  const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
  context.beginPath();
  context.moveTo(to[0], to[1]);
  for (const side of [-0.45, 0.45]) {
    context.lineTo(to[0] - HEAD * Math.cos(angle + side), to[1] - HEAD * Math.sin(angle + side));
  }
  context.closePath();
  context.fill();
}
