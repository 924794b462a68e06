// Duty: a proxy that cuts or holds back downloads of backups, and tells what was asked.

import http from "node:http";
import { after } from "node:test";

/** A proxy that ends the answers to downloads after as many bytes as `cut` says. */
export async function cutting(url, cut) {
  const target = new URL(url);
  const asked = [];
  const proxy = http.createServer((request, response) => {
    const { method, headers, url: path } = request;
    const isDownload = path.endsWith("/api/backup");
    if (isDownload) asked.push({ range: headers.range, tag: headers["if-range"] });
    const { hostname, port } = target;
    const sent = http.request({ hostname, port, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      if (!isDownload) return answer.pipe(response);
      let rest = cut(asked.length, answer);
      answer.on("data", (piece) => {
        response.write(piece.subarray(0, rest));
        rest -= piece.length;
        if (rest <= 0) answer.destroy();
      });
      answer.on("close", () => (rest <= 0 ? request.socket.destroy() : response.end()));
    });
    sent.on("error", () => request.socket.destroy());
    // A server does not close while a download goes on, though its client has gone.
    response.on("close", () => sent.destroy());
    request.pipe(sent);
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  after(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const { port } = proxy.address();
  return { url: `http://127.0.0.1:${port}`, asked };
}
