export const dynamic = "force-dynamic";

export const GET = () => new Response(null, { status: 204 });
