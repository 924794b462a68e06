// Duty: the fields of a check and of a mutation.

import { read } from "../../api/entries";
import { queueName } from "../../parts/depths";
import { report } from "../../shell/toasts";
import { parseKey } from "../../values/parse";
import { type CheckDraft, KINDS, type Kind, type MutationDraft } from "./draft";

interface CheckRowProps {
  readonly check: CheckDraft;
  readonly at: number;
  readonly isFailed: boolean;
  onChange(to: Partial<CheckDraft> | undefined): void;
  /** The versionstamp that the entry of a key has. */
  onStamp(key: string, versionstamp: string): void;
}

export function CheckRow({ check, at, isFailed, onChange, onStamp }: CheckRowProps) {
  const fetchStamp = async (): Promise<void> => {
    const entry = await read(parseKey(check.key));
    onStamp(check.key, entry?.versionstamp ?? "");
  };
  const name = `check ${at + 1}`;
  return (
    <div class="part-row">
      <input
        class="mono grow"
        aria-label={`Key of ${name}`}
        aria-invalid={isFailed}
        value={check.key}
        onInput={(event) => onChange({ key: event.currentTarget.value })}
      />
      <input
        class="mono stamp"
        aria-label={`Versionstamp of ${name}`}
        placeholder="no entry"
        value={check.versionstamp}
        onInput={(event) => onChange({ versionstamp: event.currentTarget.value })}
      />
      <button
        type="button"
        title="Fill in the versionstamp that the entry has now"
        onClick={() => {
          fetchStamp().catch(report);
        }}
      >
        Present one
      </button>
      <RemoveButton name={name} onRemove={() => onChange(undefined)} />
    </div>
  );
}

interface MutationRowProps {
  readonly mutation: MutationDraft;
  readonly at: number;
  onChange(to: Partial<MutationDraft> | undefined): void;
}

export function MutationRow({ mutation, at, onChange }: MutationRowProps) {
  const { kind, key, value, seconds } = mutation;
  const name = `mutation ${at + 1}`;
  const isQueue = kind === "enqueue";
  return (
    <div class="part-row">
      <select
        aria-label={`Type of ${name}`}
        value={kind}
        onChange={(event) => onChange({ kind: event.currentTarget.value as Kind })}
      >
        {KINDS.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
      <input
        class="mono grow"
        aria-label={`${isQueue ? "Queue" : "Key"} of ${name}`}
        placeholder={isQueue ? queueName("") : ""}
        value={key}
        onInput={(event) => onChange({ key: event.currentTarget.value })}
      />
      {kind !== "delete" && (
        <textarea
          class="mono grow"
          rows={1}
          aria-label={`Value of ${name}`}
          value={value}
          onInput={(event) => onChange({ value: event.currentTarget.value })}
        />
      )}
      {kind !== "delete" && !isQueue && (
        <input
          class="seconds"
          type="number"
          min="1"
          aria-label={`Seconds until ${name} expires`}
          placeholder="expires, s"
          value={seconds}
          onInput={(event) => onChange({ seconds: event.currentTarget.value })}
        />
      )}
      <RemoveButton name={name} onRemove={() => onChange(undefined)} />
    </div>
  );
}

function RemoveButton({ name, onRemove }: { readonly name: string; onRemove(): void }) {
  return (
    <button type="button" class="plain icon" aria-label={`Remove ${name}`} onClick={onRemove}>
      ×
    </button>
  );
}
