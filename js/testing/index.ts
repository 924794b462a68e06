// Duty: the entry of openkv/testing.
export {};
