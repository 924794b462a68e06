// Duty: a TCP link to a server that delays, splits and cuts what goes over it.
// Invariant: bytes of one direction keep their order, and none is lost but at a cut.

import { once } from "node:events";
import { connect, createServer } from "node:net";
import { sleep } from "../../kit/time.mjs";

const DELAY_MS_MAX = 15;
const PIECE_BYTES_MAX = 1400;
/** A connection is cut after this many bytes on average. */
const CUT_BYTES_MEAN = 200_000;
/** Backlog of one direction from which on its sender is paused. */
const BACKLOG_BYTES_MAX = 256 * 1024;

/** A link to the server behind `url`; its own `url` is what clients open. */
export async function startLink(url) {
  const link = new Link(new URL(url));
  link.server.listen(0, "127.0.0.1");
  await once(link.server, "listening");
  link.url = `http://127.0.0.1:${link.server.address().port}`;
  return link;
}

/** Resolves when more can be written, or when there is no sense in it. */
function hasRoom(socket) {
  return new Promise((resolve) => {
    socket.once("drain", resolve);
    socket.once("close", resolve);
  });
}

class Link {
  cuts = 0;
  pieces = 0;
  #sockets = new Set();
  #isDown = false;

  constructor(target) {
    this.server = createServer((near) => {
      if (this.#isDown) {
        near.destroy();
        return;
      }
      const far = connect(Number(target.port), target.hostname);
      for (const socket of [near, far]) this.#keep(socket);
      const cut = () => {
        this.cuts++;
        near.destroy();
        far.destroy();
      };
      // Exponentially distributed, so that a cut comes at any byte alike.
      const left = { bytes: -CUT_BYTES_MEAN * Math.log(1 - Math.random()) };
      this.#carry(near, far, left, cut);
      this.#carry(far, near, left, cut);
    });
  }

  /** Cuts all connections and takes no new ones for so long. */
  async outage(ms) {
    this.#isDown = true;
    for (const socket of this.#sockets) socket.destroy();
    await sleep(ms);
    this.#isDown = false;
  }

  async close() {
    this.server.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(this.server, "close");
  }

  #keep(socket) {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => {});
    socket.on("close", () => this.#sockets.delete(socket));
  }

  #carry(from, to, left, cut) {
    const backlog = [];
    let bytes = 0;
    let carrying = false;
    const carry = async () => {
      carrying = true;
      while (backlog.length > 0) {
        await sleep(Math.random() * DELAY_MS_MAX);
        let rest = backlog.shift();
        bytes -= rest.length;
        if (bytes < BACKLOG_BYTES_MAX) from.resume();
        while (rest.length > 0) {
          const piece = rest.subarray(0, 1 + Math.floor(Math.random() * PIECE_BYTES_MAX));
          rest = rest.subarray(piece.length);
          left.bytes -= piece.length;
          if (left.bytes <= 0) return cut();
          this.pieces++;
          if (!to.destroyed && !to.write(piece)) await hasRoom(to);
        }
      }
      carrying = false;
      if (from.readableEnded) to.end();
    };
    from.on("data", (chunk) => {
      backlog.push(chunk);
      bytes += chunk.length;
      if (bytes >= BACKLOG_BYTES_MAX) from.pause();
      if (!carrying) void carry();
    });
    from.on("end", () => {
      if (!carrying) to.end();
    });
    from.on("close", () => {
      if (!from.readableEnded) to.destroy();
    });
  }
}
