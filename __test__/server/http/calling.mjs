// Duty: requests to the HTTP API of a server of a test.

import { accessToken, serveFile } from "../serving.mjs";

export const readToken = "a token that reads".replaceAll(" ", "-");
export const TYPED = "application/vnd.openkv+json";

/** A server of one file, and a function that sends a request to its API. */
export async function serveApi(options) {
  const server = await serveFile({ readToken, ...options });
  return { server, call: caller(`${server.url}/api`) };
}

/**
 * A function that sends a request: `(method, path, { body, type, token, headers })`. A body that is no
 * text is sent as JSON.
 */
export function caller(base, usual = accessToken) {
  return async (method, path, { body, type, token = usual, headers = {} } = {}) => {
    const isJson = body !== undefined && typeof body !== "string" && !(body instanceof Uint8Array);
    const response = await fetch(base + path, {
      method,
      body: isJson ? JSON.stringify(body) : body,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "content-type": type ?? "application/json" }),
        ...headers,
      },
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    const isText = /[/+]json/.test(response.headers.get("content-type") ?? "");
    return {
      status: response.status,
      headers: response.headers,
      bytes,
      body: isText && bytes.length > 0 ? JSON.parse(bytes.toString()) : bytes.toString(),
    };
  };
}
