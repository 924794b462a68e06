import { revalidateTag } from "next/cache";

export async function POST(request) {
  revalidateTag(new URL(request.url).searchParams.get("tag"), { expire: 0 });
  return new Response(null, { status: 204 });
}
