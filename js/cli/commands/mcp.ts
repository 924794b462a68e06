// Duty: mcp: gives the database to a model, by the Model Context Protocol, until its client ends.
// Invariant: standard output has messages of the protocol alone, unless it is served over HTTP.

import type { Command } from "commander";
import type { OpenKvOptions } from "../../model/types.js";
import { isElsewhere, isServer } from "../../arguments/location.js";
import { type GlobalOptions, isMemory, located, withDatabaseAt } from "../database.js";
import { MCP_PATH, onHttp, onStreams } from "../mcp/server.js";
import { loadSdk } from "../mcp/sdk.js";
import { WrongUsage, untilInterrupted } from "../outcome.js";
import { note, print } from "../output.js";
import { address } from "./serve.js";

export function addMcpCommand(program: Command): void {
  program
    .command("mcp")
    .description(
      "give the database to a model by the Model Context Protocol, on the standard streams; needs the package " +
        "@modelcontextprotocol/sdk",
    )
    .argument("[file]", "the database, a file or URL (default: --db)")
    .option("--write", "also let the model set and delete entries")
    .option(
      "--listen <host:port>",
      `instead of the standard streams: HTTP, at ${MCP_PATH}`,
      address,
    )
    .option(
      "--mcp-token <token>",
      "with --listen: requests must have it as bearer; needed beyond this machine (env: OPENKV_MCP_TOKEN)",
    )
    .action(async (file: string | undefined, options: McpOptions, command: Command) => {
      const { db } = command.optsWithGlobals<GlobalOptions>();
      await run(file ?? db, options, command);
    });
}

interface McpOptions {
  write?: boolean;
  listen?: string;
  mcpToken?: string;
}

const LOOPBACK = /^(?:localhost|127\.0\.0\.1|\[?::1\]?)$/;

async function run(path: string | undefined, options: McpOptions, command: Command): Promise<void> {
  const { write = false, listen, mcpToken: token = process.env.OPENKV_MCP_TOKEN } = options;
  const sdk = loadSdk();
  const { version } = require("../../../package.json") as { version: string };
  const { signal, release } = untilInterrupted();
  try {
    const work = async (kv: Parameters<Parameters<typeof withDatabaseAt>[3]>[0]) => {
      const served = { sdk, kv, version, write };
      if (listen === undefined) return await onStreams(served, signal);
      const endpoint = endpointOf(listen, token || undefined);
      await onHttp(served, endpoint, signal, (url) => {
        void print(url);
        const who = endpoint.token === undefined ? "of this machine" : "with the token";
        note(`any program ${who} can ${write ? "write" : "read"}; Ctrl-C ends it`);
      });
    };
    if (listen !== undefined) endpointOf(listen, token || undefined);
    await withDatabaseAt(path, command, write ? "existing" : "read", work, opening(path, write));
  } finally {
    release();
  }
}

/** A local database is opened for reading, so that nothing can write it. A server decides by its token. */
function opening(path: string | undefined, write: boolean): OpenKvOptions {
  const at = located(path);
  return write || isServer(at) || isMemory(at) || isElsewhere(at) ? {} : { readonly: true };
}

function endpointOf(listen: string, token: string | undefined) {
  const colon = listen.lastIndexOf(":");
  const host = listen.slice(0, colon).replace(/^\[|\]$/g, "");
  if (token === undefined && !LOOPBACK.test(host)) {
    throw new WrongUsage(
      `--listen ${listen} is reached from other machines: give --mcp-token or OPENKV_MCP_TOKEN`,
    );
  }
  return { host, port: Number(listen.slice(colon + 1)), token };
}
