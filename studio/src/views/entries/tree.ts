// Duty: the tree of keys: what is loaded, open and counted, as rows.

import { signal } from "@preact/signals";
import { count } from "../../api/entries";
import { isAborted } from "../../api/request";
import { report } from "../../shell/toasts";
import { type Key, sameNode } from "../../values/node";
import { printKey } from "../../values/print";
import { type Child, childrenOf } from "./children";

/** A key of the tree, and what is known of those below it. */
export interface Branch extends Child {
  readonly key: Key;
  readonly id: string;
  readonly level: number;
  readonly parent: Branch | undefined;
  isOpen: boolean;
  children: Branch[];
  state: "new" | "loading" | "part" | "failed" | "whole";
  next: Key | undefined;
  /** Entries below; `null` while they are counted. */
  count: number | null | undefined;
}

/** The place behind the loaded children of a branch: more are loaded when it is shown, or, after a failure, pressed. */
export interface More {
  readonly more: Branch;
}

export type Row = Branch | More;

/** Counts of branches under way at one time. */
const COUNTS_MAX = 2;

export class Tree {
  readonly rows = signal<readonly Row[]>([]);
  readonly root: Branch;
  readonly #ending = new AbortController();
  #waiting: Branch[] = [];
  #counting = 0;

  constructor(prefix: Key) {
    this.root = {
      ...{ key: prefix, id: printKey(prefix), level: 0, parent: undefined, part: prefix.at(-1)! },
      ...{ entry: undefined, hasBelow: true, isOpen: true, children: [], state: "new" },
      ...{ next: undefined, count: undefined },
    };
    void this.load(this.root);
  }

  end(): void {
    this.#ending.abort();
  }

  /** Loads the children of a branch, or the next of them. */
  async load(branch: Branch): Promise<void> {
    if (branch.state === "loading" || branch.state === "whole") return;
    branch.state = "loading";
    try {
      for await (const step of childrenOf(branch.key, branch.next, this.#ending.signal)) {
        this.#add(branch, step.found);
        branch.next = step.next;
        this.#show();
      }
      branch.state = branch.next === undefined ? "whole" : "part";
    } catch (error) {
      if (isAborted(error)) return;
      report(error);
      branch.state = "failed";
    }
    this.#show();
  }

  #add(branch: Branch, found: readonly Child[]): void {
    for (const child of found) {
      const last = branch.children.at(-1);
      if (last !== undefined && sameNode(last.part, child.part)) last.hasBelow ||= child.hasBelow;
      else branch.children.push(this.#branch(branch, child));
    }
  }

  #branch(parent: Branch, child: Child): Branch {
    const key = [...parent.key, child.part];
    return {
      ...{ ...child, key, id: printKey(key), level: parent.level + 1, parent, isOpen: false },
      ...{ children: [], state: "new", next: undefined, count: undefined },
    };
  }

  toggle(branch: Branch, open = !branch.isOpen): void {
    if (!branch.hasBelow || branch.isOpen === open) return;
    branch.isOpen = open;
    if (open && branch.state === "new") void this.load(branch);
    this.#show();
  }

  /** Counts what is below a branch, some at a time, the last requested ones first. */
  countOf(branch: Branch): void {
    if (branch.count !== undefined || !branch.hasBelow) return;
    branch.count = null;
    this.#waiting.push(branch);
    void this.#countNext();
  }

  async #countNext(): Promise<void> {
    if (this.#counting >= COUNTS_MAX) return;
    const branch = this.#waiting.pop();
    if (branch === undefined) return;
    this.#counting++;
    try {
      branch.count = await count(branch.key, this.#ending.signal);
      this.rows.value = [...this.rows.value];
    } catch (error) {
      branch.count = undefined;
      report(error);
      return;
    } finally {
      this.#counting--;
    }
    void this.#countNext();
  }

  #show(): void {
    const rows: Row[] = [];
    const visit = (branch: Branch): void => {
      for (const child of branch.children) {
        rows.push(child);
        if (child.isOpen) visit(child);
      }
      if (branch.state !== "whole") rows.push({ more: branch });
    };
    visit(this.root);
    this.rows.value = rows;
  }
}
