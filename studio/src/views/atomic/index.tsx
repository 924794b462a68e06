// Duty: the builder of atomic operations: checks, mutations, their outcome, and the code of it.

import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import "./atomic.css";
import { askJson } from "../../api/request";
import { read } from "../../api/entries";
import { readOnly } from "../../shell/session";
import { report } from "../../shell/toasts";
import { parseKey } from "../../values/parse";
import { copyText } from "../../parts/clipboard";
import { Fault } from "../../parts/fault";
import {
  type CheckDraft,
  type Draft,
  EMPTY_CHECK,
  EMPTY_MUTATION,
  KINDS,
  type Kind,
  type MutationDraft,
  codeOf,
  requestOf,
} from "./draft";

/** Kept while the page is open, so that a look at an entry loses nothing. */
const draft = signal<Draft>({ checks: [], mutations: [EMPTY_MUTATION] });

interface Outcome {
  readonly ok: boolean;
  readonly versionstamp?: string | null;
  readonly failed?: readonly number[] | null;
}

const change = <T,>(list: readonly T[], at: number, to: Partial<T> | undefined): T[] =>
  list.flatMap((one, place) =>
    place !== at ? [one] : to === undefined ? [] : [{ ...one, ...to }],
  );

export default function Atomic() {
  const [outcome, setOutcome] = useState<Outcome | Error>();
  const { checks, mutations } = draft.value;
  const setChecks = (next: readonly CheckDraft[]): void => {
    draft.value = { checks: next, mutations };
  };
  const setMutations = (next: readonly MutationDraft[]): void => {
    draft.value = { checks, mutations: next };
  };
  const run = async (): Promise<void> => {
    try {
      setOutcome(await askJson<Outcome>("/atomic", { body: requestOf(draft.value) }));
    } catch (error) {
      setOutcome(error as Error);
    }
  };
  const copy = (): void => {
    try {
      copyText(codeOf(draft.value), "Code");
    } catch (error) {
      setOutcome(error as Error);
    }
  };
  const failed = outcome !== undefined && "failed" in outcome ? (outcome.failed ?? []) : [];
  return (
    <div class="view">
      <section class="panel" aria-label="Checks">
        <header>
          <h2 class="grow">Checks</h2>
          <button type="button" onClick={() => setChecks([...checks, EMPTY_CHECK])}>
            Add a check
          </button>
        </header>
        {checks.length === 0 && <p class="empty">Without checks the operation always happens.</p>}
        {checks.map((check, at) => (
          <CheckRow
            key={at}
            {...{ check, at }}
            isFailed={failed.includes(at)}
            onChange={(to) => setChecks(change(checks, at, to))}
          />
        ))}
      </section>
      <section class="panel" aria-label="Mutations">
        <header>
          <h2 class="grow">Mutations</h2>
          <button type="button" onClick={() => setMutations([...mutations, EMPTY_MUTATION])}>
            Add a mutation
          </button>
        </header>
        {mutations.map((mutation, at) => (
          <MutationRow
            key={at}
            {...{ mutation, at }}
            onChange={(to) => setMutations(change(mutations, at, to))}
          />
        ))}
      </section>
      {outcome !== undefined && <OutcomeView outcome={outcome} />}
      <div class="row end">
        <button type="button" onClick={copy}>
          Copy as JavaScript
        </button>
        <button
          type="button"
          class="primary"
          disabled={readOnly.value}
          onClick={() => {
            run().catch(report);
          }}
        >
          Commit
        </button>
      </div>
    </div>
  );
}

function OutcomeView({ outcome }: { readonly outcome: Outcome | Error }) {
  if (outcome instanceof Error) return <Fault text={outcome.message} />;
  if (outcome.ok) {
    return (
      <p class="notice" role="status">
        Committed with the versionstamp <code>{outcome.versionstamp}</code>.
      </p>
    );
  }
  const failed = (outcome.failed ?? []).map((at) => at + 1).join(", ");
  return (
    <p class="notice warn" role="status">
      Nothing happened: check {failed} did not hold.
    </p>
  );
}

interface CheckRowProps {
  readonly check: CheckDraft;
  readonly at: number;
  readonly isFailed: boolean;
  onChange(to: Partial<CheckDraft> | undefined): void;
}

function CheckRow({ check, at, isFailed, onChange }: CheckRowProps) {
  const fetchStamp = async (): Promise<void> => {
    const entry = await read(parseKey(check.key));
    onChange({ versionstamp: entry?.versionstamp ?? "" });
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

function MutationRow({ mutation, at, onChange }: MutationRowProps) {
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
        placeholder={isQueue ? "(default queue)" : ""}
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
