// Duty: a proxy to a server whose connections break after some bytes, or open late.

import { once } from "node:events";
import { connect, createServer } from "node:net";
import { after } from "node:test";

const ways = [];

/** A way to the server behind a URL. `patience()` says after how many bytes a connection is cut. */
export async function startWay(url, options) {
  const way = new Way(new URL(url), options);
  way.server.listen(0, "127.0.0.1");
  await once(way.server, "listening");
  way.url = `http://127.0.0.1:${way.server.address().port}`;
  ways.push(way);
  return way;
}

class Way {
  cuts = 0;
  /** How late connections begin, in ms. */
  lateMs = 0;
  #sockets = new Set();

  constructor(target, { patience = () => Infinity } = {}) {
    this.server = createServer(async (near) => {
      this.#keep(near);
      if (this.lateMs > 0) await new Promise((resolve) => setTimeout(resolve, this.lateMs));
      const far = connect(Number(target.port), target.hostname);
      this.#keep(far);
      near.on("close", () => far.destroy());
      far.on("close", () => near.destroy());
      near.pipe(far);
      let left = patience();
      far.on("data", (bytes) => {
        if (bytes.length < left) {
          left -= bytes.length;
          // Who does not take it holds up the server.
          if (!near.write(bytes)) far.pause();
          return;
        }
        this.cuts++;
        near.write(bytes.subarray(0, left), () => near.destroy());
        far.destroy();
      });
      near.on("drain", () => far.resume());
    });
  }

  /** Cuts all connections. */
  cut() {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close() {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }

  #keep(socket) {
    this.#sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => this.#sockets.delete(socket));
  }
}

after(async () => {
  for (const way of ways) await way.close();
});
