// Duty: a proxy to a server that drops selected answers: requests arrive and are executed, but
// their answers are lost. It can also hold a request, which then arrives long after its client has gone.

import { once } from "node:events";
import http from "node:http";
import { buffer } from "node:stream/consumers";

/** Starts one in front of `url`. Close it when it is no longer needed. */
export async function lossy(url) {
  const link = new Lossy(new URL(url));
  await link.listen();
  return link;
}

class Lossy {
  /** The paths of all requests. */
  paths = [];
  /** Asked with each path: whether this answer is to be lost. */
  loses = () => false;
  /** Asked with each path: a status to answer with instead of asking the server. */
  refuses = () => undefined;
  /** Asked with each path: how long it is held back before it is sent on, in ms. */
  delays = () => 0;
  #holds = () => undefined;
  #target;
  #server;

  constructor(target) {
    this.#target = target;
  }

  async listen() {
    // HTTP/1.1: a request and its answer are alone on their connection.
    this.#server = http.createServer((request, response) => this.#forward(request, response));
    await new Promise((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${this.#server.address().port}${this.#target.pathname}`;
  }

  /** Loses the answers of the next `count` requests whose path ends so. */
  loseNext(end, count = 1) {
    let left = count;
    this.loses = (path) => path.endsWith(end) && left-- > 0;
  }

  /** Holds the next request whose path ends so, and cuts its client. Answers the request. */
  holdNext(end) {
    const held = new Held();
    this.#holds = (path) => {
      if (!path.endsWith(end)) return undefined;
      this.#holds = () => undefined;
      return held;
    };
    return held;
  }

  #forward(request, response) {
    const { method, headers, url: path } = request;
    this.paths.push(path);
    const held = this.#holds(path);
    if (held) {
      held.take(request);
      return;
    }
    const status = this.refuses(path);
    if (status !== undefined) {
      request.resume();
      response.writeHead(status, { "content-type": "text/plain" }).end("refused on the way");
      return;
    }
    const { hostname, port } = this.#target;
    const asked = http.request({ hostname, port, method, path, headers }, (answer) => {
      if (this.loses(path)) {
        // The server has answered, so it has happened.
        answer.resume().on("end", () => request.socket.destroy());
        return;
      }
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    asked.on("error", () => request.socket.destroy());
    // Who has gone is gone for the server too.
    response.on("close", () => asked.destroy());
    setTimeout(() => request.pipe(asked), this.delays(path));
  }

  /** Cuts all connections. */
  cut() {
    this.#server.closeAllConnections();
  }

  async close() {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** A request that has not arrived yet. */
class Held {
  #request;

  /** Takes all of a request, and cuts its client. */
  take(request) {
    this.#request = buffer(request).then((body) => {
      request.socket.destroy();
      const { method, url: path, headers } = request;
      return { method, path, headers, body };
    });
  }

  /** Sends it to a server; answers the bytes of the answer. */
  async release(url) {
    const { body, ...head } = await this.#request;
    const { hostname, port } = new URL(url);
    const asked = http.request({ hostname, port, ...head });
    asked.end(body);
    const [answer] = await once(asked, "response");
    return buffer(answer);
  }
}
