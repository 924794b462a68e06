// Duty: how limiters and the rates of queues count.

/** The algorithms, by their numbers in frames. */
export const LIMIT_ALGORITHMS = ["fixed", "sliding", "token-bucket"] as const;
