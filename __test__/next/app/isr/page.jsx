import { unstable_cache } from "next/cache";

export const revalidate = 3600;

const tagged = unstable_cache(async () => crypto.randomUUID(), ["of the page"], { tags: ["page"] });

export default async () => <p>{`made ${crypto.randomUUID()} tagged ${await tagged()} end`}</p>;
