// The client of bench/http.mjs. Its argument is `{ url, method, accessToken, seconds, keys }`. Prints a line
// when it is warm; told to measure, it prints the requests that were answered and their time.
//
// It writes HTTP/1.1 onto sockets itself: a client that costs as much as the server would measure
// itself. Every answer is checked.

import { once } from "node:events";
import { connect } from "node:net";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";

const CONNECTIONS = 64;
const WARM_MS = 1000;
/** Coprime to the number of keys, so that all are asked for. */
const STEP = 7919;
const END_OF_HEAD = Buffer.from("\r\n\r\n");

const { url, method, accessToken, seconds, keys } = JSON.parse(process.argv[2]);
const { hostname, port, host } = new URL(url);
let [answered, at] = [0, 0];

/** The next request, and a text that its answer must have. */
function next() {
  at = (at + STEP) % keys;
  const head =
    `${method} /api/keys/users/${at} HTTP/1.1\r\nhost: ${host}\r\n` +
    `authorization: Bearer ${accessToken}\r\n`;
  if (method === "GET") return [`${head}\r\n`, `"id":${at},`];
  const body = JSON.stringify({
    id: at,
    name: `name ${answered}`,
    email: `user${answered}@example.com`,
    age: answered % 90,
    ok: true,
  });
  const type = `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
  return [head + type + body, '"ok":true'];
}

class Connection {
  #socket = connect({ host: hostname, port: Number(port), noDelay: true });
  #rest = Buffer.alloc(0);
  #wanted;

  constructor() {
    this.#socket.on("connect", () => this.#send());
    this.#socket.on("data", (piece) => this.#receive(piece));
    this.#socket.on("close", () => fail("the server has closed a connection"));
  }

  #send() {
    const [request, wanted] = next();
    this.#wanted = wanted;
    this.#socket.write(request);
  }

  #receive(piece) {
    this.#rest = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece]);
    const end = this.#rest.indexOf(END_OF_HEAD);
    if (end === -1) return;
    const head = this.#rest.latin1Slice(0, end);
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1]);
    const whole = end + END_OF_HEAD.length + length;
    if (!(this.#rest.length >= whole)) return;
    const body = this.#rest.latin1Slice(end + END_OF_HEAD.length, whole);
    if (!head.startsWith("HTTP/1.1 200") || !body.includes(this.#wanted)) fail(`${head}\n${body}`);
    this.#rest = this.#rest.subarray(whole);
    answered++;
    this.#send();
  }
}

function fail(why) {
  console.error(why);
  process.exit(1);
}

for (let n = 0; n < CONNECTIONS; n++) new Connection();
await sleep(WARM_MS);
console.log("warm");
await once(process.stdin, "data");
const [before, start] = [answered, performance.now()];
await sleep(seconds * 1000);
console.log(JSON.stringify({ requests: answered - before, ms: performance.now() - start }));
