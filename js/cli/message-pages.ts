// Duty: the messages or dead letters of a queue, page after page.

/** Messages of one read. */
const PAGE_MESSAGES = 500;

interface Page<T> {
  messages: T[];
  cursor: string | null;
}

/** At most `limit` items. `read` gets the page behind a cursor. */
export async function* paged<T>(
  read: (page: { limit: number; cursor: string | null }) => Promise<Page<T>>,
  limit = Number.POSITIVE_INFINITY,
): AsyncGenerator<T> {
  let cursor: string | null = null;
  for (let left = limit; left > 0; ) {
    const page: Page<T> = await read({ limit: Math.min(PAGE_MESSAGES, left), cursor });
    yield* page.messages;
    left -= page.messages.length;
    cursor = page.cursor;
    if (cursor === null) return;
  }
}
