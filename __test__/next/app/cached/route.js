import { cacheLife, cacheTag } from "next/cache";

export const dynamic = "force-dynamic";

async function made(key) {
  "use cache";
  cacheTag("cached");
  cacheLife("hours");
  return { key, made: crypto.randomUUID() };
}

export const GET = async (request) =>
  Response.json(await made(new URL(request.url).searchParams.get("key")));
