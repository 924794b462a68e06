// Duty: how the Rust tests are compiled, so that all commands of CI compile each crate once.

import { CLONE_PROFILE } from "./build-addon.mjs";

/** The addon's profile, with which the tests share most dependencies. */
export const PROFILE = CLONE_PROFILE;

/** All crates with every feature but the addon, so that the tests need no Node, and our crates as tests have them. */
export const FLAGS = [
  ...["--workspace", "--no-default-features", "--features", "server,defects"],
  ...["opt-level=0", "debug-assertions=true", "overflow-checks=true"].flatMap((setting) => [
    "--config",
    `profile.${PROFILE}.${setting}`,
  ]),
];
