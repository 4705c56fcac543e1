/** A question before something happens that cannot be taken back. */
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useId, useRef } from 'preact/hooks';

/**
 * A modal dialog. Escape and the first button only close it, and the focus returns to where it was.
 * The focus begins on the first button, and the second click of a double click counts for nothing, so that
 * neither the key nor the click that opened the dialog can confirm it.
 */
export function Confirm(props: {
  title: string;
  /** What the button says that does it. */
  act: string;
  /** What the button says that does not. */
  decline?: string;
  problem: string;
  isBusy: boolean;
  confirm: () => void;
  close: () => void;
  children: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const decline = useRef<HTMLButtonElement>(null);
  const title = useId();
  useLayoutEffect(() => {
    const opened = dialog.current;
    const before = document.activeElement;
    opened?.showModal();
    decline.current?.focus();
    return () => {
      opened?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const cancel = (event: Event): void => {
    event.preventDefault();
    if (!props.isBusy) props.close();
  };
  const say = (event: MouseEvent): void => {
    const isSecondOfTwo = event.detail > 1;
    if (!props.isBusy && !isSecondOfTwo) props.confirm();
  };
  return (
    <dialog ref={dialog} class="confirm" aria-labelledby={title} aria-live="off" onCancel={cancel} onClose={props.close}
      onKeyDown={keepInside}>
      <h2 id={title}>{props.title}</h2>
      {props.children}
      {props.problem && <p class="problem" role="alert">{props.problem}</p>}
      <div class="actions">
        <button ref={decline} type="button" disabled={props.isBusy} onClick={props.close}>{props.decline ?? 'Cancel'}</button>
        <button type="button" class="danger" aria-disabled={props.isBusy} onClick={say}>{props.act}</button>
      </div>
    </dialog>
  );
}

/** Leads Tab from the last element to the first one, and back, where it would leave the page. */
function keepInside(event: KeyboardEvent & { currentTarget: HTMLDialogElement }): void {
  if (event.key !== 'Tab') return;
  const stops = [...event.currentTarget.querySelectorAll<HTMLElement>('a[href], button:enabled, [tabindex="0"]')];
  const from = event.shiftKey ? stops.at(0) : stops.at(-1);
  const to = event.shiftKey ? stops.at(-1) : stops.at(0);
  if (document.activeElement !== from) return;
  event.preventDefault();
  to?.focus();
}
