export const dynamic = "force-dynamic";

const options = { cache: "force-cache", next: { tags: ["fetched"], revalidate: 3600 } };

export const GET = async () =>
  new Response(await (await fetch(process.env.UPSTREAM, options)).text());
