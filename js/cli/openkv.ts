#!/usr/bin/env node
// Duty: the command `openkv`.

import { argv } from "node:process";
import { run } from "./main.js";

void run(argv);
