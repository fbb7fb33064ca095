"use strict";

// Scripts within a page are not run here: the policy of /docs is strict.
const page = SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  layout: "BaseLayout",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  presets: [SwaggerUIBundle.presets.apis, SwaggerUIBundle.SwaggerUIStandalonePreset],
  // The routes of the other protocol stay folded until they are needed.
  onComplete: () =>
    page.layoutActions.show(["operations-tag", "open inference protocol"], false),
});
