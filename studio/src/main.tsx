// Duty: starts the page.

import { render } from "preact";
import "@preact/signals";
import "./style/base.css";
import "./style/forms.css";
import "./style/shell.css";
import "./style/values.css";
import "./style/panels.css";
import { Fault } from "./parts/fault";
import { App } from "./shell/app";
import { listen } from "./shell/keys";
import { meetServer } from "./shell/session";

const place = document.getElementById("app")!;
meetServer().then(
  () => {
    listen();
    render(<App />, place);
  },
  (error: Error) => {
    const text = `The server does not say what it is: ${error.message} Load the page again.`;
    render(<Fault text={text} />, place);
  },
);
