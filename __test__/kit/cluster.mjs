// Duty: servers that share a PostgreSQL database or an object store of a test's own, each in a process of its own.

import { once } from "node:events";
import { kill, spawnServer } from "../server/children.mjs";
import { freePort } from "./port.mjs";
import { sharedPostgres } from "./postgres.mjs";
import { until } from "./time.mjs";

const adminToken = "the-admin-token-of-all";

/** Free ports that are tried for a server. */
const FREE_PORTS_MAX = 3;

/** Servers that share one place. */
export class Cluster {
  #postgres;
  #database;
  #engine;
  #running = new Set();

  /** On this server of PostgreSQL; without one, on that of all tests. */
  static async create(postgres) {
    const cluster = new Cluster();
    cluster.#postgres = postgres ?? (await sharedPostgres());
    cluster.#database = await cluster.#postgres.newDatabase();
    cluster.#engine = `postgres://postgres@127.0.0.1:${cluster.#postgres.port}/${cluster.#database}`;
    return cluster;
  }

  /** At the URL of an engine. */
  static at(engine) {
    const cluster = new Cluster();
    cluster.#engine = engine;
    return cluster;
  }

  /** The URL of the engine of the servers. */
  get engine() {
    return this.#engine;
  }

  /** Starts a server, at a given port or any; answers its child process and its URL. */
  async start({ port, ...options } = {}) {
    if (port !== undefined) return this.#startAt(port, options);
    // Another test may take a free port first.
    for (let left = FREE_PORTS_MAX - 1; left > 0; left--) {
      const started = await this.#startAt(await freePort(), options).catch(() => undefined);
      if (started !== undefined) return started;
    }
    return this.#startAt(await freePort(), options);
  }

  async #startAt(port, options) {
    const own = { listen: `127.0.0.1:${port}`, advertise: `http://127.0.0.1:${port}` };
    const server = await spawnServer({ engine: this.engine, adminToken, ...own, ...options });
    this.#running.add(server);
    return server;
  }

  /** Ends a server in order. */
  async stop(server) {
    this.#running.delete(server);
    const exited = once(server.child, "exit");
    server.child.stdin.write("close\n");
    await exited;
  }

  /** Ends a server as a power cut would. */
  async kill(server) {
    this.#running.delete(server);
    await kill(server);
  }

  /** Ends all servers. */
  async close() {
    await Promise.all([...this.#running].map((server) => this.kill(server)));
  }

  /** Runs SQL in the PostgreSQL database. */
  sql(text) {
    return this.#postgres.sql(text, { database: this.#database });
  }
}

/** Sends a request of the admin API; answers its status, its text, and the fields of its JSON. */
export async function admin({ url }, method, path, body) {
  const answer = await fetch(`${url}/v1/admin/databases${path}`, {
    method,
    headers: { authorization: `Bearer ${adminToken}` },
    body: body && JSON.stringify(body),
  });
  const text = await answer.text();
  return { status: answer.status, text, ...(text.startsWith("{") && JSON.parse(text)) };
}

/** Creates a database at the first server, and waits until the others know it; answers its token. */
export async function createAt(servers, name) {
  const { token } = await admin(servers[0], "POST", "", { name });
  for (const server of servers) {
    const isKnown = async () => (await metadata(server, name, token)).status === 200;
    await until(isKnown, `${name} is at ${server.url}`);
  }
  return token;
}

/** The metadata of a database at a server, and the status of its answer. */
export async function metadata({ url }, name, token) {
  const answer = await fetch(`${url}/${name}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    body: JSON.stringify({ supportedVersions: [2, 3] }),
  });
  return { status: answer.status, ...(answer.ok && (await answer.json())) };
}

/** Consistency and URL of each endpoint. */
export async function endpointsOf(server, name, token) {
  const { endpoints } = await metadata(server, name, token);
  return endpoints.map(({ url, consistency }) => `${consistency} ${url}`);
}
