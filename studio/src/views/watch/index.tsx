// Duty: the view of a live feed: a prefix, a pause, a filter, the difference of each change.

import { useEffect, useMemo, useState } from "preact/hooks";
import "./watch.css";
import { ChangesView } from "../../parts/changes-view";
import { Empty } from "../../parts/empty";
import { Fault } from "../../parts/fault";
import { KeyView } from "../../parts/key-view";
import { Time } from "../../parts/time";
import { hrefOf, route, setParams } from "../../shell/router";
import type { Key } from "../../values/node";
import { parseKey } from "../../values/parse";
import { inLine, printNode } from "../../values/print";
import { type Change, Feed } from "./feed";

/** Changes that are drawn; a filter finds older ones. */
const SHOWN_MAX = 200;

export function Watch() {
  const { prefix = "" } = route.value.params;
  const [typed, setTyped] = useState(prefix);
  useEffect(() => setTyped(prefix), [prefix]);
  const key = useMemo((): Key | Error => {
    try {
      return parseKey(prefix);
    } catch (error) {
      return error as Error;
    }
  }, [prefix]);
  return (
    <div class="view">
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          setParams({ prefix: typed });
        }}
      >
        <input
          class="mono grow"
          data-find
          aria-label="Prefix"
          placeholder='Prefix: users, or ["users", 42]; empty for all keys'
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        <button type="submit">Watch</button>
      </form>
      {key instanceof Error ? <Fault text={key.message} /> : <FeedOf key={prefix} prefix={key} />}
    </div>
  );
}

/** The live feed of a prefix. */
function FeedOf({ prefix }: { readonly prefix: Key }) {
  const [words, setWords] = useState("");
  const feed = useMemo(() => new Feed(prefix), []);
  useEffect(() => {
    feed.begin();
    return () => feed.end();
  }, []);
  const isPaused = feed.isPaused.value;
  const matches = ({ literal, value }: Change): boolean =>
    words === "" || literal.includes(words) || (value !== null && inLine(value).includes(words));
  const shown = feed.changes.value.filter(matches).slice(0, SHOWN_MAX);
  return (
    <>
      <div class="row">
        <input
          class="grow"
          aria-label="Filter"
          placeholder="Filter by text"
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
        />
        <button type="button" aria-pressed={isPaused} onClick={() => feed.pause(!isPaused)}>
          {isPaused ? `Resume (${feed.held.value} waiting)` : "Pause"}
        </button>
        <button type="button" onClick={() => feed.clear()}>
          Clear
        </button>
        <span class={`badge ${feed.state.value === "live" ? "" : "warn"}`} role="status">
          {feed.state.value}
        </span>
      </div>
      {shown.length === 0 ? (
        <Empty
          what={
            words === "" ? "Changes appear here as they are committed." : "No change has this text."
          }
          next={
            words === ""
              ? "Write an entry below the prefix, in this page or in a program."
              : "Clear the filter to see all changes."
          }
        />
      ) : (
        <ol class="feed" aria-label="Changes, the newest first">
          {shown.map((change) => (
            <ChangeView key={change.id} change={change} />
          ))}
        </ol>
      )}
    </>
  );
}

function ChangeView({ change }: { readonly change: Change }) {
  const { key, literal, value, before, versionstamp, at, expireAt } = change;
  const kind = expireAt !== undefined ? "expiry" : value === null ? "deleted" : "set";
  return (
    <li class="panel">
      <header>
        <span class={`badge ${kind === "deleted" ? "danger" : ""}`}>{kind}</span>
        <a class="grow" href={hrefOf("entries", { key: literal })}>
          <KeyView value={key} />
        </a>
        <span class="soft mono">{versionstamp}</span>
        <span class="soft">
          <Time at={at} />
        </span>
      </header>
      {expireAt !== undefined ? (
        <p class="body">
          {expireAt === 0 ? (
            "Does not expire now."
          ) : (
            <>
              Expires <Time at={expireAt} />.
            </>
          )}
        </p>
      ) : before === undefined ? (
        value !== null && <pre class="shown">{printNode(value)}</pre>
      ) : (
        <ChangesView
          before={before === null ? "(no entry)" : printNode(before)}
          after={value === null ? "(no entry)" : printNode(value)}
        />
      )}
    </li>
  );
}
