// What the upload form has more than a form without scripts: files are dropped on its fields, the
// button says that they travel, and a refusal leaves everything as it was chosen.
"use strict";

for (const field of document.querySelectorAll(".drop")) {
  const input = field.querySelector("input[type=file]");
  const over = (on) => field.classList.toggle("over", on);
  field.addEventListener("dragover", (event) => {
    event.preventDefault();
    over(true);
  });
  field.addEventListener("dragleave", () => over(false));
  field.addEventListener("drop", (event) => {
    event.preventDefault();
    over(false);
    const files = new DataTransfer();
    for (const file of event.dataTransfer.files) {
      if (input.multiple || files.items.length === 0) files.items.add(file);
    }
    if (files.items.length > 0) input.files = files.files;
  });
}

for (const form of document.querySelectorAll("form.upload")) {
  const button = form.querySelector("button");
  const rest = () => {
    button.removeAttribute("aria-busy");
    button.textContent = "Upload and calibrate";
  };
  const refusal = document.getElementById("refusal");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.hasAttribute("aria-busy")) return;
    button.setAttribute("aria-busy", "true");
    button.textContent = "Uploading…";
    try {
      const answer = await fetch(form.action, { method: "POST", body: new FormData(form) });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const found = page.getElementById("refusal");
      if (answer.ok && answer.redirected) {
        location.assign(answer.url);
        return;
      }
      const shown = found?.children.length ? found : page.querySelector("main");
      refusal.replaceChildren(...shown.children);
      rest();
    } catch {
      const text = document.createElement("p");
      text.className = "refused";
      text.setAttribute("role", "alert");
      text.textContent = "The service did not answer, or a chosen file has changed. Try again.";
      refusal.replaceChildren(text);
      rest();
    }
    refusal.scrollIntoView({ block: "nearest" });
  });
  // The page comes back from a browser's cache as it was left.
  window.addEventListener("pageshow", rest);
}
