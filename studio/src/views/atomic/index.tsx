// Duty: the builder of atomic operations: checks, mutations, their outcome, and the code of it.

import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import "./atomic.css";
import { askJson } from "../../api/request";
import { route } from "../../shell/router";
import { readOnly } from "../../shell/session";
import { report, say } from "../../shell/toasts";
import { useActing, useGone } from "../../parts/acting";
import { copyText } from "../../parts/clipboard";
import { Fault } from "../../parts/fault";
import {
  type CheckDraft,
  type Draft,
  EMPTY_CHECK,
  EMPTY_MUTATION,
  type MutationDraft,
} from "./draft";
import { codeOf, requestOf } from "./operation";
import { CheckRow, MutationRow } from "./rows";

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

export function Atomic() {
  const [outcome, setOutcome] = useState<Outcome | Error>();
  const { database } = route.value;
  const { isActing, acting } = useActing();
  const isGone = useGone();
  const { checks, mutations } = draft.value;
  // Of the newest draft: a handler may be of a rendering before the last change.
  const changeChecks = (to: (now: readonly CheckDraft[]) => readonly CheckDraft[]): void => {
    draft.value = { ...draft.value, checks: to(draft.value.checks) };
  };
  const changeMutations = (
    to: (now: readonly MutationDraft[]) => readonly MutationDraft[],
  ): void => {
    draft.value = { ...draft.value, mutations: to(draft.value.mutations) };
  };
  /** Fills in a versionstamp that was read, unless the check, or the database, is another one by now. */
  const stamp = (at: number, key: string, versionstamp: string): void => {
    if (route.value.database !== database || draft.value.checks[at]?.key !== key) return;
    changeChecks((now) => change(now, at, { versionstamp }));
  };
  const run = async (): Promise<void> => {
    const end = (found: Outcome | Error): void => (isGone.current ? tell : setOutcome)(found);
    try {
      const body = requestOf(draft.value);
      end(await askJson<Outcome>("/atomic", { database, body }));
    } catch (error) {
      end(error as Error);
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
          <button type="button" onClick={() => changeChecks((now) => [...now, EMPTY_CHECK])}>
            Add a check
          </button>
        </header>
        {checks.length === 0 && <p class="empty">Without checks the operation always happens.</p>}
        {checks.map((check, at) => (
          <CheckRow
            key={at}
            {...{ check, at }}
            isFailed={failed.includes(at)}
            onChange={(to) => changeChecks((now) => change(now, at, to))}
            onStamp={(key, versionstamp) => stamp(at, key, versionstamp)}
          />
        ))}
      </section>
      <section class="panel" aria-label="Mutations">
        <header>
          <h2 class="grow">Mutations</h2>
          <button type="button" onClick={() => changeMutations((now) => [...now, EMPTY_MUTATION])}>
            Add a mutation
          </button>
        </header>
        {mutations.map((mutation, at) => (
          <MutationRow
            key={at}
            {...{ mutation, at }}
            onChange={(to) => changeMutations((now) => change(now, at, to))}
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
          disabled={readOnly.value || isActing}
          onClick={acting(run)}
        >
          Commit
        </button>
      </div>
    </div>
  );
}

/** Names the checks that did not hold. */
function faultOf({ failed }: Outcome): string {
  return `Nothing happened: check ${(failed ?? []).map((at) => at + 1).join(", ")} did not hold.`;
}

/** Tells the outcome once the view is gone. */
function tell(outcome: Outcome | Error): void {
  if (outcome instanceof Error) report(new Error(`Nothing is committed: ${outcome.message}`));
  else if (outcome.ok) say("Committed");
  else report(new Error(faultOf(outcome)));
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
  return (
    <p class="notice warn" role="status">
      {faultOf(outcome)}
    </p>
  );
}
