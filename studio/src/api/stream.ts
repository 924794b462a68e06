// Duty: server-sent events, by `fetch`: `EventSource` cannot send a token in a header.
// Invariant: a stream that breaks goes on behind its last event; a token never is in a URL.

import { ApiError, type ApiRequest, TYPED, ask } from "./request";
import type { Path } from "./routes";

export interface StreamEvent {
  readonly type: string;
  readonly id: string;
  readonly data: string;
}

const RETRY_MS = 1500;

/** Calls `on` for each event until the signal ends it. */
export async function follow(
  path: Path,
  query: ApiRequest["query"],
  signal: AbortSignal,
  on: (event: StreamEvent) => void,
  onBreak: (error: unknown) => void,
): Promise<void> {
  let last = "";
  while (!signal.aborted) {
    try {
      const headers: Record<string, string> = last === "" ? {} : { "last-event-id": last };
      const accept = `text/event-stream, ${TYPED}`;
      // The present entries come once, at the beginning.
      const rest = last === "" ? query : { ...query, initial: undefined };
      const response = await ask(path, { query: rest ?? {}, headers, accept, signal });
      for await (const event of events(response.body!)) {
        if (event.id !== "") last = event.id;
        on(event);
      }
      onBreak(new Error("The server has ended the stream."));
    } catch (error) {
      if (signal.aborted) return;
      onBreak(error);
      // The user has closed the dialog for a token, which does not open again.
      if (error instanceof ApiError && error.status === 401) return;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent> {
  const reader = body.pipeThrough(new TextDecoderStream() as never).getReader();
  let open = "";
  try {
    for (;;) {
      const { done, value } = (await reader.read()) as { done: boolean; value?: string };
      if (done) return;
      open += value;
      for (let end = open.indexOf("\n\n"); end !== -1; end = open.indexOf("\n\n")) {
        yield eventOf(open.slice(0, end));
        open = open.slice(end + 2);
      }
    }
  } finally {
    // Also if the caller failed: else the connection stays open.
    reader.cancel().catch(() => {});
  }
}

function eventOf(text: string): StreamEvent {
  const event = { type: "message", id: "", data: "" };
  const data: string[] = [];
  for (const line of text.split("\n")) {
    const [, name, value = ""] = /^(\w+): ?(.*)$/s.exec(line) ?? [];
    if (name === "event") event.type = value;
    else if (name === "id") event.id = value;
    else if (name === "data") data.push(value);
  }
  return { ...event, data: data.join("\n") };
}
