// Duty: says that a place is empty, and what to do next.

interface EmptyProps {
  /** What is not there, a sentence. */
  readonly what: string;
  /** What to do next, a sentence. */
  readonly next: string;
}

export function Empty({ what, next }: EmptyProps) {
  return (
    <p class="empty">
      <strong>{what}</strong> {next}
    </p>
  );
}
