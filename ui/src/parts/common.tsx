import type { ComponentChildren } from 'preact';
import { percent } from '../model/quantity';

export function Notice(props: { tone?: 'quiet' | 'alarm'; title: string; children?: ComponentChildren }) {
  return (
    <div class={`notice ${props.tone ?? 'quiet'}`} role={props.tone === 'alarm' ? 'alert' : 'status'}>
      <p class="notice-title">{props.title}</p>
      {props.children}
    </div>
  );
}

export function Loading(props: { what: string }) {
  return (
    <div class="notice quiet" role="status">
      <span class="spinner" aria-hidden="true" />
      <p class="notice-title">{props.what}</p>
    </div>
  );
}

/** A bar whose length is a share; the number beside it says the same. */
export function Share(props: { share: number; text?: string; label?: string }) {
  const width = `${Math.min(100, Math.max(0, props.share * 100))}%`;
  return (
    <span class="share">
      <span class="share-track" aria-hidden="true">
        <span class={`share-fill${props.share > 0.95 ? ' full' : ''}`} style={{ width }} />
      </span>
      <span class="share-text">{props.text ?? percent(props.share)}</span>
    </span>
  );
}

export function Swatch(props: { colour: string }) {
  return <span class="swatch" aria-hidden="true" style={{ background: props.colour }} />;
}

export function Choice(props: {
  label: string;
  value: string;
  options: readonly (readonly [string, string])[];
  choose: (value: string) => void;
}) {
  return (
    <label class="field">
      <span>{props.label}</span>
      <select value={props.value} onChange={(event) => props.choose(event.currentTarget.value)}>
        {props.options.map(([value, text]) => (
          <option key={value} value={value} selected={value === props.value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
