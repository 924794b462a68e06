// Duty: the SDK of the Model Context Protocol, an optional package that the user installs: what `openkv mcp`
// uses of it.

import { createRequire } from "node:module";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { NotDone } from "../outcome.js";

const PACKAGE = "@modelcontextprotocol/sdk";

/** A server of the protocol. */
export interface McpServer {
  setRequestHandler(schema: unknown, handle: (request: any) => unknown): void;
  connect(transport: McpTransport): Promise<void>;
  close(): Promise<void>;
}

export interface McpTransport {
  onclose?: (() => void) | undefined;
}

export interface HttpTransport extends McpTransport {
  handleRequest(request: IncomingMessage, response: ServerResponse, body?: unknown): Promise<void>;
  close(): Promise<void>;
}

/** The classes and schemas of the SDK. */
export interface McpSdk {
  readonly Server: new (info: object, options: object) => McpServer;
  readonly StdioServerTransport: new () => McpTransport;
  readonly StreamableHTTPServerTransport: new (options: object) => HttpTransport;
  readonly ListToolsRequestSchema: unknown;
  readonly CallToolRequestSchema: unknown;
}

/** Loads the SDK, as openkv finds it or the folder in which the command runs. */
export function loadSdk(): McpSdk {
  for (const from of [__filename, join(process.cwd(), "package.json")]) {
    const load = createRequire(from);
    try {
      load.resolve(`${PACKAGE}/types.js`);
    } catch {
      continue;
    }
    return {
      ...load(`${PACKAGE}/server/index.js`),
      ...load(`${PACKAGE}/server/stdio.js`),
      ...load(`${PACKAGE}/server/streamableHttp.js`),
      ...load(`${PACKAGE}/types.js`),
    } as McpSdk;
  }
  throw new NotDone(
    `openkv mcp needs the package ${PACKAGE}: npm install ${PACKAGE}, or run ` +
      `npx -p openkv -p ${PACKAGE} openkv mcp …`,
  );
}
