/** What may go wrong with a request, as errors that can be told apart. */

import type { components } from "./schema.js";

export type Problem = components["schemas"]["Problem"];

const TOO_MANY_REQUESTS = 429;
const SERVER_FAULT = 500;

/** The server refused, or is in trouble; `document` is its problem document (RFC 9457). */
export class ProblemError extends Error {
  constructor(readonly document: Problem) {
    super(document.detail || document.title);
    this.name = "ProblemError";
  }

  get status(): number {
    return this.document.status;
  }

  /** A stable name of what went wrong, in CamelCase. */
  get code(): string {
    return this.document.code;
  }

  /** Each wrong field of the request, with its path. */
  get errors(): NonNullable<Problem["errors"]> {
    return this.document.errors ?? [];
  }

  /** Whether it may be gone after a while: the server is overloaded, restarting or in trouble. */
  get isPassing(): boolean {
    return this.status === TOO_MANY_REQUESTS || this.status >= SERVER_FAULT;
  }
}

/** There was no answer, or only a part of one. */
export class NoAnswerError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "NoAnswerError";
  }
}

/** The error for an answer, be it a problem document or that of a proxy. */
export function problemOf(response: Response, body: unknown): ProblemError {
  const told = typeof body === "object" && body !== null ? body : {};
  const fallback = { type: "about:blank", code: "", title: response.statusText, status: response.status, detail: "" };
  return new ProblemError({ ...fallback, ...told } as Problem);
}
