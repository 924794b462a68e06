// Duty: a conflict: what was shown, what is there now, what the user wanted; and the choice.

import { ChangesView } from "../../parts/changes-view";
import { Dialog } from "../../parts/dialog";
import type { Entry, Node } from "../../values/node";
import { printNode } from "../../values/print";

export interface ConflictOf {
  readonly shown: Node | null;
  readonly mine: Node;
  readonly present: Entry | undefined;
}

interface ConflictProps extends ConflictOf {
  onTheirs(): void;
  onMine(): void;
  onClose(): void;
}

const print = (node: Node | null | undefined): string =>
  node == null ? "(no entry)" : printNode(node);

export function ConflictDialog({ shown, mine, present, onTheirs, onMine, onClose }: ConflictProps) {
  const base = print(shown);
  return (
    <Dialog title="The entry has changed" onClose={onClose}>
      <p>Another write was first. Nothing is saved.</p>
      <h3>Their change, from what was shown</h3>
      <ChangesView before={base} after={print(present?.value)} />
      <h3>Your change, from what was shown</h3>
      <ChangesView before={base} after={print(mine)} />
      <div class="row end">
        <button type="button" onClick={onClose}>
          Go on editing
        </button>
        <button type="button" onClick={onTheirs}>
          Take theirs
        </button>
        <button type="button" class="danger" onClick={onMine}>
          Replace it by mine
        </button>
      </div>
    </Dialog>
  );
}
