// A database file of a test's own.

import { freshPaths } from "../../kit/folder.mjs";

/** The path of a file that does not exist yet. */
export const newPath = freshPaths("test");
