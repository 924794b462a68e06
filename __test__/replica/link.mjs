// Duty: a TCP connection to a server that a test can cut, also after a number of bytes, and refuse.

import net from "node:net";
import { after } from "node:test";

/** A link to the server at `url`, closed after the tests. */
export async function linkTo(url) {
  const link = new Link(new URL(url));
  await link.listen();
  after(() => link.close());
  return link;
}

/** A link that begins with `listen()`. */
export class Link {
  /** Bytes from the server after which each connection is cut, also one that is open already. */
  most = Number.POSITIVE_INFINITY;
  /** The number of connections that were cut after `most` bytes. */
  cuts = 0;
  /** How long what the server sends is under way, in ms. */
  delay = 0;
  /** Bytes that the server has sent. */
  bytes = 0;
  /** Where the server is; it may move. */
  port;
  #server;
  #own;
  #sockets = new Set();

  constructor({ port, pathname }) {
    this.port = Number(port);
    this.pathname = pathname;
  }

  async listen() {
    this.#server = net.createServer((near) => this.#connect(near));
    await new Promise((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.#own = this.#server.address().port;
    this.url = `http://127.0.0.1:${this.#own}${this.pathname}`;
  }

  /** Cuts all connections; new ones are refused, as by a machine without the server. */
  async refuse() {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.cut();
    await closed;
  }

  /** Accepts connections again. */
  async accept() {
    await new Promise((resolve) => this.#server.listen(this.#own, "127.0.0.1", resolve));
  }

  #connect(near) {
    const far = net.connect(this.port, "127.0.0.1");
    let sent = 0;
    for (const socket of [near, far]) {
      this.#sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => {});
      socket.on("close", () => {
        this.#sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far);
    far.on("data", (piece) => {
      const carried = piece.subarray(0, Math.max(0, this.most - sent));
      // Timers of one duration run in the order in which they were set.
      if (this.delay === 0) near.write(carried);
      else setTimeout(() => near.write(carried), this.delay);
      this.bytes += piece.length;
      sent += piece.length;
      if (sent < this.most) return;
      this.cuts++;
      near.end();
      far.destroy();
    });
  }

  /** Cuts all connections. */
  cut() {
    for (const socket of this.#sockets) socket.destroy();
  }

  close() {
    this.cut();
    this.#server.close();
  }
}
