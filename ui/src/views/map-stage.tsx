import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Colouring, Theme } from '../map/colours';
import { cellOf, gridOf, layOut, nodeAt, podBox, type Layout } from '../map/layout';
import type { Link } from '../map/links';
import { Painter } from '../map/painter';
import type { Cluster } from '../model/cluster';
import { counted, percent } from '../model/quantity';
import type { PodRow } from '../model/rows';

export interface StageProps {
  readonly cluster: Cluster;
  readonly topologyKey: string;
  readonly zoom: number;
  readonly colouring: Colouring;
  readonly theme: Theme;
  readonly violating: ReadonlySet<string>;
  readonly pods: ReadonlySet<PodRow> | null;
  readonly nodes: ReadonlySet<string> | null;
  readonly links: readonly Link[];
  readonly selected: string;
  readonly select: (what: string | null) => void;
  /** Takes what is dropped on a node; absent if nothing can be. */
  readonly drop?: (node: string) => void;
}

interface Under {
  readonly node: string;
  readonly pod: PodRow | null;
  readonly x: number;
  readonly y: number;
}

export function Stage(props: StageProps) {
  const { cluster } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef<Painter | null>(null);
  const size = useSize(scroller);
  const [relaid, setRelaid] = useState(0);
  const [under, setUnder] = useState<Under | null>(null);
  const [focused, setFocused] = useState<string | null>(null);
  const layout = useMemo(
    () => layOut(cluster, { key: props.topologyKey, width: size.w, height: size.h, zoom: props.zoom }),
    [cluster, props.topologyKey, size, props.zoom, relaid],
  );

  useLayoutEffect(() => {
    if (!canvas.current || !scroller.current) return undefined;
    const made = new Painter(canvas.current, scroller.current);
    painter.current = made;
    return () => made.close();
  }, []);
  useEffect(
    () =>
      cluster.listen(({ nodes, layout: isRelaid }) => {
        if (isRelaid) setRelaid((count) => count + 1);
        else painter.current?.refresh(nodes);
      }),
    [cluster],
  );
  useLayoutEffect(() => {
    painter.current?.show({
      cluster, layout, colouring: props.colouring, theme: props.theme, violating: props.violating,
    });
  }, [cluster, layout, props.colouring, props.theme, props.violating, size]);
  useLayoutEffect(() => {
    const selectedNode = props.selected.startsWith('node:') ? props.selected.slice(5) : null;
    painter.current?.mark({
      hovered: under?.node ?? null, focused, selectedNode, pods: props.pods, nodes: props.nodes, links: props.links,
    });
  }, [under, focused, props.selected, props.pods, props.nodes, props.links, layout]);

  const look = (event: MouseEvent): Under | null => {
    const box = scroller.current?.getBoundingClientRect();
    if (!box || !scroller.current) return null;
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const node = nodeAt(layout, x, y + scroller.current.scrollTop);
    if (node === null) return null;
    return { node, pod: podAt(cluster, layout, node, x, y + scroller.current.scrollTop), x, y };
  };
  const over = (event: DragEvent): void => {
    const at = look(event);
    setUnder(at && { ...at, pod: null });
    if (at) event.preventDefault();
  };
  const drop = (event: DragEvent): void => {
    event.preventDefault();
    const at = look(event);
    setUnder(null);
    if (at) props.drop?.(at.node);
  };
  const open = (event: MouseEvent): void => {
    const at = look(event);
    props.select(at === null ? null : at.pod ? `pod:${at.pod.key}` : `node:${at.node}`);
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') props.select(null);
    if (event.key === 'Enter' && focused) props.select(`node:${focused}`);
    const next = neighbour(layout, focused, event.key);
    if (next === null) return;
    event.preventDefault();
    setFocused(next);
    reveal(scroller.current, layout, next);
  };

  return (
    <div class="stage">
      <div class="scroller" ref={scroller} tabIndex={0} role="application" aria-roledescription="map"
        aria-label="Map of the nodes: the arrow keys go from node to node, Enter shows one, Escape goes back"
        aria-describedby="focused-node" onKeyDown={press} onBlur={() => setFocused(null)}
        onScroll={() => painter.current?.soon()} onClick={open} onMouseMove={(event) => setUnder(look(event))}
        onMouseLeave={() => setUnder(null)} onDragOver={props.drop && over} onDrop={props.drop && drop} data-nodes={layout.places.size} data-lines={props.links.length}>
        <canvas ref={canvas} aria-hidden="true" />
        <div class="tall" style={{ height: `${layout.height}px` }} />
      </div>
      <p class="hidden" id="focused-node" aria-live="polite">{focused && description(cluster, layout, focused)}</p>
      {under && (
        <div class="tip" role="presentation" style={{ transform: place(under, size) }}>
          {under.pod ? <b>{under.pod.key}</b> : <b>{under.node}</b>}
          <span>{under.pod ? `on ${under.node}` : counted(cluster.bucket(under.node).pods.size, 'pod')}</span>
        </div>
      )}
    </div>
  );
}

function useSize(element: { readonly current: HTMLElement | null }): { w: number; h: number } {
  const [size, setSize] = useState({ w: 800, h: 500 });
  useLayoutEffect(() => {
    const { current } = element;
    if (!current) return undefined;
    const measure = (): void =>
      setSize((known) => {
        const [w, h] = [current.clientWidth, current.clientHeight];
        return known.w === w && known.h === h ? known : { w, h };
      });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(current);
    return () => observer.disconnect();
  }, []);
  return size;
}

function podAt(cluster: Cluster, layout: Layout, node: string, x: number, y: number): PodRow | null {
  const cell = cellOf(layout, node);
  if (!cell) return null;
  const { ordered } = cluster.bucket(node);
  const grid = gridOf(cell, ordered.length);
  if (grid.w < 4) return null;
  return ordered.find((_, at) => {
    const box = podBox(grid, at);
    return x >= box.x && x < box.x + box.w && y >= box.y && y < box.y + box.h;
  }) ?? null;
}

const STEPS: Readonly<Record<string, (columns: number) => number>> = {
  ArrowRight: () => 1,
  ArrowLeft: () => -1,
  ArrowDown: (columns) => columns,
  ArrowUp: (columns) => -columns,
};

/** The node to which a key leads: within the domain, and past its first and last node to the domains beside it. */
function neighbour(layout: Layout, from: string | null, key: string): string | null {
  const step = STEPS[key];
  if (!step) return null;
  const place = from === null ? undefined : layout.places.get(from);
  if (!place) return layout.domains[0]?.nodes[0] ?? null;
  const [domain, at] = place;
  const next = domain.nodes[at + step(domain.columns)];
  if (next !== undefined) return next;
  const beside = layout.domains[layout.domains.indexOf(domain) + Math.sign(step(1))];
  return (step(1) > 0 ? beside?.nodes[0] : beside?.nodes.at(-1)) ?? null;
}

function reveal(scroller: HTMLElement | null, layout: Layout, node: string): void {
  const cell = cellOf(layout, node);
  if (!scroller || !cell) return;
  const above = cell.y - 8 < scroller.scrollTop;
  const below = cell.y + cell.h + 8 > scroller.scrollTop + scroller.clientHeight;
  if (above) scroller.scrollTop = cell.y - 40;
  else if (below) scroller.scrollTop = cell.y + cell.h + 8 - scroller.clientHeight;
}

function description(cluster: Cluster, layout: Layout, name: string): string {
  const node = cluster.nodes.get(name);
  const domain = layout.places.get(name)?.[0].value;
  if (!node) return name;
  const shares = ['cpu', 'memory']
    .filter((each) => node.allocatable[each])
    .map((each) => `${percent(cluster.share(node, each))} of ${each} used`);
  return [name, domain, counted(cluster.bucket(name).pods.size, 'pod'), ...shares].filter(Boolean).join(', ');
}

function place(under: Under, size: { w: number; h: number }): string {
  const x = Math.min(under.x + 14, Math.max(0, size.w - 230));
  const y = under.y + 60 > size.h ? under.y - 56 : under.y + 16;
  return `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
}
