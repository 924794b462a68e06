// Enqueues and handles messages: any process handles any process's messages, each exactly once.

/** The time that a handler takes at most, in ms: far below the lock of a message. */
const HANDLING_MS_MAX = 5;
const DELAY_MS_MAX = 50;

/** Starts both, or enqueues only; `stopEnqueuing` resolves when the last enqueue has answered. */
export function queue(worker, random, listens) {
  const { kv, id } = worker;

  const handle = async (message) => {
    try {
      await new Promise((resolve) => setTimeout(resolve, random.between(0, HANDLING_MS_MAX)));
      const key = ["done", message.from, message.n];
      const { ok } = await kv.atomic().check({ key, versionstamp: null }).set(key, id).commit();
      if (ok) worker.count("handled");
      else worker.fault(`message ${message.from}/${message.n} was delivered again`);
    } catch (error) {
      worker.fault(`a handler failed: ${error?.stack ?? error}`);
    }
  };
  const listening = listens ? kv.listenQueue(handle) : undefined;

  async function enqueue() {
    for (let n = 0; !worker.stopped; n++) {
      try {
        const text = "m".repeat(random.oneIn(5) ? random.between(1000, 9000) : 10);
        const message = { from: id, n, text };
        const options = random.oneIn(2) ? { delay: random.between(0, DELAY_MS_MAX) } : undefined;
        if (random.oneIn(2)) await kv.enqueue(message, options);
        else await kv.atomic().enqueue(message, options).commit();
        worker.count("enqueued");
      } catch (error) {
        worker.fault(`enqueue: ${error?.stack ?? error}`);
      }
      await new Promise((resolve) => setTimeout(resolve, random.between(0, 4)));
    }
  }
  const enqueuing = enqueue();
  return { listening, stopEnqueuing: () => enqueuing };
}
