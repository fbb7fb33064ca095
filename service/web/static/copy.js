// A button beside each command that copies it; without scripts it is selected by hand.
"use strict";

const select = (code) => {
  const range = document.createRange();
  range.selectNodeContents(code);
  const selection = getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
};

for (const command of document.querySelectorAll(".command")) {
  const code = command.querySelector("code");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      // Browsers let pages copy on loopback and over TLS alone.
      select(code);
      button.textContent = "Selected";
    }
  });
  command.append(button);
}
