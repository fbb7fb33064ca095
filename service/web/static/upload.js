// What the upload form has more than a form without scripts: files are dropped on its fields, and
// the button says that they travel.
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
  form.addEventListener("submit", () => {
    const button = form.querySelector("button");
    button.setAttribute("aria-busy", "true");
    button.textContent = "Uploading…";
  });
  // The page comes back from a browser's cache as it was left.
  window.addEventListener("pageshow", () => {
    const button = form.querySelector("button");
    button.removeAttribute("aria-busy");
    button.textContent = "Upload and calibrate";
  });
}
