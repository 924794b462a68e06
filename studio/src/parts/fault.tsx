// Duty: what went wrong, beside what it is about.

/** `text`: the message; nothing is shown if it is empty. */
export function Fault({ text }: { readonly text: string }) {
  if (text === "") return null;
  return (
    <p class="notice error" role="alert">
      {text}
    </p>
  );
}
