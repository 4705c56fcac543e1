import { useEffect, useRef, useState } from 'preact/hooks';
import { read, session, told, type Schemas } from '../api/client';

/** Asks for a token, and goes on only with one that the server accepts. */
export function Login(props: { reason: string; entered: (caller: Schemas['Caller']) => void }) {
  const [problem, setProblem] = useState('');
  const [isAsking, setAsking] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);

  const enter = async (event: Event): Promise<void> => {
    event.preventDefault();
    const token = input.current?.value.trim() ?? '';
    if (!token) return;
    setAsking(true);
    session.token = token;
    try {
      props.entered(await read<Schemas['Caller']>('/v1/whoami'));
    } catch (error) {
      session.token = null;
      setProblem(told(error));
      setAsking(false);
      input.current?.select();
    }
  };

  return (
    <main class="login" id="main">
      <form class="card" onSubmit={(event) => void enter(event)}>
        <img src="/page/icon.svg" alt="" width="40" height="40" />
        <h1>Moorage</h1>
        <p class="quiet">{props.reason}</p>
        <label class="field stacked">
          <span>Token</span>
          <input ref={input} type="password" name="token" autocomplete="off" spellcheck={false} required
            aria-describedby="token-note" />
        </label>
        {problem && <p class="problem" role="alert">{problem}</p>}
        <button class="primary" disabled={isAsking}>Continue</button>
        <p class="small quiet" id="token-note">The token stays in this tab and is forgotten when you close it.</p>
      </form>
    </main>
  );
}
