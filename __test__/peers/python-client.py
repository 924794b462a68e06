"""What the Python client does with our server; opt-in: pip install denokv, then run.mjs --python."""

import asyncio
import os

from denokv import KvU64, open_kv


async def main() -> None:
    async with await open_kv(os.environ["SERVER_URL"], access_token=os.environ["SERVER_TOKEN"]) as kv:
        # It stores a dict as a Map, and numbers in keys as bigints or floats, by the method.
        assert await kv.set(("python", "one"), {"a": [1, "two", None]})
        _, entry = await kv.get(("python", "one"))
        assert entry is not None and list(entry.value["a"].values())[:2] == [1, "two"], entry
        _, found = await kv.get(("deno", "u64"))
        assert found is None or found.value == KvU64(7), found
        count = 0
        async for _ in kv.list(prefix=("python",)):
            count += 1
        assert count == 1, count
    print("python client: ok")


asyncio.run(main())
