/** The events of a `text/event-stream`. */

import { NoAnswerError } from "./problems.js";

export interface StreamEvent {
  /** The revision. */
  id: string;
  name: string;
  data: string;
}

/** The events of a stream until it ends; one that is silent for too long throws NoAnswerError. */
export async function* eventsIn(
  stream: ReadableStream<Uint8Array>,
  silenceSecondsMax: number,
): AsyncGenerator<StreamEvent, void> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let fields: Record<string, string> = {};
  while (true) {
    const { done, value } = await inTime(reader.read(), silenceSecondsMax);
    if (done) return;
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") {
        if (fields["data"] !== undefined) {
          yield { id: fields["id"] ?? "", name: fields["event"] ?? "message", data: fields["data"] };
        }
        fields = {};
        continue;
      }
      const colon = line.indexOf(":");
      if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).replace(/^ /, "");
    }
  }
}

async function inTime<T>(reading: Promise<T>, seconds: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new NoAnswerError("The stream is silent.")), 1000 * seconds);
  });
  try {
    return await Promise.race([reading, silence]);
  } catch (error) {
    throw error instanceof NoAnswerError ? error : new NoAnswerError(`The stream broke: ${String(error)}`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}
