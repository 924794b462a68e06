// Duty: servers of the Model Context Protocol over a database: on the standard streams, or over HTTP without
// sessions, each request on its own.
// Never: an answer to a request without the token, where there is one; or of a web page of another host.

import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import { createHash, timingSafeEqual } from "node:crypto";
import type { AddressInfo } from "node:net";
import type { Kv } from "../../api/kv.js";
import { inWords } from "../advice.js";
import { BadArgument } from "./arguments.js";
import type { McpSdk, McpServer } from "./sdk.js";
import { READING, type Tool, WRITING } from "./tools.js";

/** The path of the HTTP endpoint. */
export const MCP_PATH = "/mcp";
/** Bytes of a request. */
const MCP_REQUEST_BYTES_MAX = 1024 * 1024;
/** How long a request may take to arrive. */
const MCP_REQUEST_MS_MAX = 30_000;
/** Requests that are answered at one time; others are refused. */
const MCP_REQUESTS_MAX = 100;

/** A database that is served. */
export interface Served {
  readonly sdk: McpSdk;
  readonly kv: Kv;
  readonly version: string;
  readonly write: boolean;
}

const INSTRUCTIONS =
  "The entries of an openkv database. Keys are arrays, sorted part by part; entries of one kind share a prefix, " +
  'such as ["users"]. `list` of the prefix [] with keysOnly shows which there are.';

/** A server with the tools of a database. */
export function makeServer({ sdk, kv, version, write }: Served): McpServer {
  const tools = write ? [...READING, ...WRITING] : READING;
  const info = { name: "openkv", version };
  const server = new sdk.Server(info, { capabilities: { tools: {} }, instructions: INSTRUCTIONS });
  server.setRequestHandler(sdk.ListToolsRequestSchema, () => ({
    tools: tools.map(({ run: _, ...tool }) => tool),
  }));
  server.setRequestHandler(sdk.CallToolRequestSchema, ({ params }) => answer(tools, kv, params));
  return server;
}

interface CallParams {
  readonly name: string;
  readonly arguments?: Readonly<Record<string, unknown>>;
}

/** The result of a call. An error is a result too, which the model reads. */
async function answer(tools: readonly Tool[], kv: Kv, params: CallParams): Promise<object> {
  const text = (text: string, isError: boolean) => ({ content: [{ type: "text", text }], isError });
  const tool = tools.find(({ name }) => name === params.name);
  if (tool === undefined) {
    return text(`There is no tool ${params.name}: ${tools.map(({ name }) => name)}`, true);
  }
  const { arguments: given = {} } = params;
  try {
    const { properties } = tool.inputSchema as { properties: object };
    const unknown = Object.keys(given).find((name) => !Object.hasOwn(properties, name));
    if (unknown !== undefined) {
      throw new BadArgument(`unknown argument ${unknown}: known are ${Object.keys(properties)}`);
    }
    return text(JSON.stringify(await tool.run(kv, given)), false);
  } catch (error) {
    return text(error instanceof Error ? inWords(error.message) : String(error), true);
  }
}

/** Serves the standard streams until the client closes them. */
export async function onStreams(served: Served, signal: AbortSignal): Promise<void> {
  const server = makeServer(served);
  const transport = new served.sdk.StdioServerTransport();
  const ended = new Promise<void>((resolve) => {
    process.stdin.once("end", resolve);
    process.stdin.once("close", resolve);
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
  await server.connect(transport);
  await ended;
  await server.close();
}

/** Where a server listens, and whom it answers. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
  /** Requests have it as bearer; undefined: requests of this machine need none. */
  readonly token: string | undefined;
}

/** Serves HTTP until the signal; calls back with the URL once it listens. */
export async function onHttp(
  served: Served,
  endpoint: Endpoint,
  signal: AbortSignal,
  ready: (url: string) => void,
): Promise<void> {
  let running = 0;
  const http = createServer((request, response) => {
    if (running >= MCP_REQUESTS_MAX) {
      refuse(response, 503, `The server answers ${MCP_REQUESTS_MAX} requests: try again later.`);
      return;
    }
    running++;
    response.once("close", () => running--);
    serveOne(served, endpoint, request, response).catch((error: Error) => {
      if (response.headersSent) response.destroy();
      else refuse(response, 500, inWords(error.message));
    });
  });
  http.requestTimeout = MCP_REQUEST_MS_MAX;
  await new Promise<void>((resolve, reject) => {
    http.once("error", reject);
    http.listen(endpoint.port, endpoint.host, resolve);
  });
  const { port } = http.address() as AddressInfo;
  const host = endpoint.host.includes(":") ? `[${endpoint.host}]` : endpoint.host;
  ready(`http://${host}:${port}${MCP_PATH}`);
  await new Promise<void>((resolve) => {
    const end = () => {
      http.close(() => resolve());
      http.closeAllConnections();
    };
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
}

async function serveOne(
  served: Served,
  { token }: Endpoint,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { pathname } = new URL(request.url ?? "/", "http://localhost");
  if (pathname !== MCP_PATH) return refuse(response, 404, `The endpoint is ${MCP_PATH}.`);
  if (token === undefined && !isOfThisMachine(request)) {
    return refuse(response, 403, "Without a token only programs of this machine are answered.");
  }
  if (token !== undefined && !hasToken(request, token)) {
    response.setHeader("www-authenticate", "Bearer");
    return refuse(response, 401, "Send 'Authorization: Bearer TOKEN'.");
  }
  if (request.method !== "POST") {
    response.setHeader("allow", "POST");
    return refuse(response, 405, "Requests are POST: the server keeps no sessions.");
  }
  const body = await bodyOf(request);
  if (body === null) {
    return refuse(response, 413, `A request has at most ${MCP_REQUEST_BYTES_MAX} bytes.`);
  }
  let message: unknown;
  try {
    message = JSON.parse(body);
  } catch {
    return refuse(response, 400, "Parse error: the body is no JSON.", -32700);
  }
  const server = makeServer(served);
  const transport = new served.sdk.StreamableHTTPServerTransport({
    sessionIdGenerator: undefined,
    enableJsonResponse: true,
  });
  response.once("close", () => void server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response, message);
}

const LOOPBACK = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/i;

/** Whether a request comes to and from this machine by name: no page of another site, also after a change of DNS. */
function isOfThisMachine({ headers }: IncomingMessage): boolean {
  const { host = "", origin } = headers;
  return LOOPBACK.test(host) && (origin === undefined || LOOPBACK.test(hostOf(origin)));
}

function hostOf(origin: string): string {
  return URL.canParse(origin) ? new URL(origin).host : origin;
}

/** Compares in constant time. */
function hasToken({ headers }: IncomingMessage, token: string): boolean {
  const hash = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(headers.authorization ?? ""), hash(`Bearer ${token}`));
}

/** The body; null if it is too long. */
async function bodyOf(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MCP_REQUEST_BYTES_MAX) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** Refuses a request, by an error of JSON-RPC. */
function refuse(response: ServerResponse, status: number, message: string, code = -32000): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", error: { code, message }, id: null }));
}
