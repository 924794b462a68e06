// Duty: imports entries from a file.

import { useState } from "preact/hooks";
import { importFrom } from "../../api/transfer";
import { useGone } from "../../parts/acting";
import { Dialog, DialogEnd } from "../../parts/dialog";
import { route } from "../../shell/router";
import { report, say } from "../../shell/toasts";
import { parseKey } from "../../values/parse";

interface ImportProps {
  onDone(): void;
  onClose(): void;
}

export function ImportDialog({ onDone, onClose }: ImportProps) {
  const { database } = route.value;
  const isGone = useGone();
  const [file, setFile] = useState<File>();
  const [prefix, setPrefix] = useState("");
  const [overwrite, setOverwrite] = useState(false);
  const [fault, setFault] = useState("");
  const [isRunning, setRunning] = useState(false);
  const run = async (): Promise<void> => {
    setRunning(true);
    setFault("");
    try {
      const { imported, skipped } = await importFrom(database, file!, parseKey(prefix), overwrite);
      say(`Imported ${imported}, skipped ${skipped}`);
      onDone();
    } catch (error) {
      if (isGone.current) report(error);
      else setFault((error as Error).message);
    } finally {
      setRunning(false);
    }
  };
  return (
    <Dialog title="Import" isSmall onClose={onClose}>
      <label class="field">
        A file of openkv export, or of kv-utils (NDJSON)
        <input
          type="file"
          accept=".ndjson,.jsonl,.json,.txt"
          onChange={(event) => setFile(event.currentTarget.files?.[0])}
        />
      </label>
      <label class="field">
        Put in front of every key
        <input
          class="mono"
          placeholder="nothing"
          value={prefix}
          onInput={(event) => setPrefix(event.currentTarget.value)}
        />
      </label>
      <label class="check">
        <input
          type="checkbox"
          checked={overwrite}
          onChange={(event) => setOverwrite(event.currentTarget.checked)}
        />
        replace entries that exist
      </label>
      <DialogEnd
        action={isRunning ? "Importing…" : "Import"}
        disabled={file === undefined || isRunning}
        fault={fault}
        onCancel={onClose}
        onAction={run}
      />
    </Dialog>
  );
}
