// Duty: the message of an error in the words of the command line: its commands and options instead of
// the methods and options of the library, times in ISO 8601.
// Never: changes what an error says, or the code of one; a part of a key, a name or a path.

/** A command for each method that a message of the library names, with its usual arguments. */
const COMMANDS: Readonly<Record<string, string>> = {
  archive: "archive run FILE TARGET",
  count: "count",
  createIndex: "index create PREFIX FIELD",
  deleteMany: "delete --prefix PREFIX",
  dropIndex: "index drop PREFIX",
  enqueue: "enqueue VALUE",
  history: "history KEY",
  list: "list",
  listIndexes: "index list",
  search: "search PREFIX QUERY",
  stats: "stats",
};

/** The options of `openKv` that commands have too. */
const OPTIONS: Readonly<Record<string, string>> = {
  accessToken: "--token",
  encoding: "--encoding",
};

/** The options of the methods of a queue, and those of the commands. */
const QUEUE_OPTIONS: Readonly<Record<string, string>> = {
  backoffSchedule: "--backoff",
  deadRetention: "--dead-retention",
  deduplication: "--deduplication",
  deduplicationKey: "--key",
  delay: "--delay",
  group: "--group",
  keepResult: "--keep-result",
  lockDuration: "--lock",
  name: "the name of the queue",
  priority: "--priority",
  timeout: "--handler-timeout",
  wait: "--wait",
};

/** The options of `serve` with more than one word, which no text has by chance. */
const SERVE_OPTION =
  /\b(?:accessToken|readToken|adminToken|replicaToken|replicaOf|publicUrl|corsOrigin|dataTokenMs|connectionsMax|maxOpen|keyvalStrings|keyvalLockDuration|tls\.cert|tls\.key|archive\.snapshotEvery|archive\.retention|archive\.to)\b/g;
/** The others, where a message names the argument. */
const SERVE_WORD =
  /(?:(?<=^|; |: )(?:path|engine|cache|advertise|region|forward|listen|readonly|archive)(?= (?:is|must|turns|and)\b)|(?<=\b(?:give|leave out|or) )(?:path|engine|archive|readonly)\b)/g;

interface Rule {
  readonly from: RegExp;
  readonly to: string | ((found: string, ...groups: string[]) => string);
}

/** In this order. */
const RULES: readonly Rule[] = [
  {
    from: /^kv\.queue(?:\(\))?((?:\.\w+)*): (\w+)/,
    to: (_, methods, option) => {
      const command = `queue${methods}`.replaceAll(".", " ").replace(/^queue (?=enqueue|dead)/, "");
      return `${command}: ${Object.hasOwn(QUEUE_OPTIONS, option) ? QUEUE_OPTIONS[option] : option}`;
    },
  },
  {
    from: /^kv\.(\w+): /,
    to: (found, name) =>
      name === "at" ? "--at: " : Object.hasOwn(COMMANDS, name) ? `${commandOf(name)}: ` : found,
  },
  {
    from: /\bkv\.createIndex\(\{ prefix, type: "value"[^()]*\)/,
    to: "'openkv index create PREFIX FIELD --type value'",
  },
  {
    from: /(?<![\w./\\-])kv\.(\w+)(?:\([^()]*\))?/g,
    to: (found, name) => (Object.hasOwn(COMMANDS, name) ? `'openkv ${COMMANDS[name]}'` : found),
  },
  {
    from: /\b(?:the|with the) option (\w+)\b/g,
    to: (found, name) => OPTIONS[name] ?? `${found} of openKv()`,
  },
  { from: /(?<![\w./\\-])accessToken\b(?![./\\-]\w)/g, to: "--token" },
  // The command line sets no limits of its own that a caller could raise.
  { from: /; raise limits\.\w+ of openKv to allow it/g, to: "" },
  // Nor a time that a command waits for a file.
  { from: /; raise busyTimeout\b/g, to: "; try again when that has ended" },
  { from: /\bsort says how orderBy is executed: give orderBy\b/, to: "--sort needs --order-by" },
  { from: /\bgive sort: true\b/, to: "give --sort" },
  { from: /\bopen it with lead: "\d+" to create one\b/, to: "a command that writes creates one" },
  { from: /\(force: true, --force\)/, to: "(--force)" },
  // Commands have no such option: those that only read open a file so by themselves.
  { from: /\breadonly: true reads (it|a file there)/, to: "commands that only read can open $1" },
  // The words of a library that values pass in Deno.
  { from: /^serde_v8 error: (?:invalid type; expected: )?/, to: "a wrong type: expected " },
  {
    from: /(?:the time )?(-?\d+) \(ms since the epoch\)/g,
    to: (found, ms) => {
      const time = new Date(Number(ms));
      return Number.isNaN(time.getTime()) ? found : time.toISOString();
    },
  },
  {
    from: /^(E[A-Z]+): [^,]+, \w+ '(.+)'$/,
    to: (found, code, path) =>
      Object.hasOwn(FILE_FAULTS, code) ? `${path}: ${FILE_FAULTS[code]} (${code})` : found,
  },
  // The message of a server ends with a full stop, and so does the sentence around it.
  { from: /([\p{L}\d)])\.\.(?=\s|$)/gu, to: "$1." },
];

/** What is wrong with a file, by the codes of Node.js. */
const FILE_FAULTS: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file or folder",
  EISDIR: "it is a folder: name a file",
  ENOTDIR: "a part of the path is a file, not a folder",
  EACCES: "you may not open it",
};

/** A text in quotes: what a user has named, such as a part of a key. */
const QUOTED = /"(?:[^"\\]|\\.)*"/g;
/** The type of an index, which advice has in quotes. */
const INDEX_TYPE = '"value"';

/** A message of the library, as a command prints it. */
export function inWords(message: string): string {
  const named: string[] = [];
  const bare = message.replace(QUOTED, (text) =>
    text === INDEX_TYPE ? text : `"${named.push(text) - 1}"`,
  );
  const told = RULES.reduce((text, { from, to }) => text.replace(from, to as string), bare);
  return told.replace(/"(\d+)"/g, (_, at) => named[at]!);
}

/** A message about the options of a server, with the options of `openkv serve`. */
export function inFlags(message: string): string {
  const flag = (name: string): string => `--${FLAGS[name] ?? kebab(name)}`;
  const flags = message.replace(SERVE_OPTION, flag).replace(SERVE_WORD, flag);
  return flags.replace(/\breadonly: true (?=reads\b)/, "--readonly ");
}

/** The options whose names are not those of the library. */
const FLAGS: Readonly<Record<string, string>> = { "archive.to": "archive" };

/** dataTokenMs as data-token-ms, tls.cert as tls-cert. */
function kebab(name: string): string {
  return name.replace(/\.?([A-Z])/g, (_, c: string) => `-${c.toLowerCase()}`).replace(".", "-");
}

/** The words of a command before its arguments. */
function commandOf(name: string): string {
  return COMMANDS[name]!.replace(/ (?:--|[A-Z]).*$/, "");
}
