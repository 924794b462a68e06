// Duty: starts the page.

import { render } from "preact";
import "@preact/signals";
import "./style/base.css";
import "./style/forms.css";
import "./style/shell.css";
import "./style/values.css";
import "./style/panels.css";
import { App } from "./shell/app";
import { listen } from "./shell/keys";
import { meetServer } from "./shell/session";
import { report } from "./shell/toasts";

meetServer().catch(report);
listen();
render(<App />, document.getElementById("app")!);
