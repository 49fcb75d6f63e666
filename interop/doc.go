// Package interop tests ingot against registries and clients of other projects.
//
//   - Registries: olareg (all of OCI 1.1, in process, with and without its referrers API) and Debian's docker-registry
//     (distribution 2.8, without referrers API). In the long form also distribution 3, go-containerregistry's, and
//     docker-registry behind nginx, which limits bodies to 1 MiB and to 20 MiB.
//   - Packers: images that oras, Docker Model Runner, modctl and KitOps made. setup.sh cannot install the last two, so
//     images follow their specifications, and the programs themselves run where INGOT_TEST_PROGRAMS names a folder with
//     them. It also has zot.
//   - Clients: crane, skopeo, oras-go, cosign, a reimplementation of Ollama's pull protocol, and transformers' loader
//     for extracted images.
//   - The server's page in a headless Chromium.
//   - Clients of structured output: openai-js and the AI SDK with Zod's types; instructor, outlines, pydantic-ai and
//     langchain with pydantic's.
//   - Coding clients with a scripted model, whose responses are known, and with a real one: Claude Code, Codex,
//     opencode, the CLIs of GitHub Copilot and Cline, and aider. Open WebUI, over the Ollama API and OpenAI's.
//   - lm-evaluation-harness, whose scores over the API are those with transformers.
//
// setup.sh installs what is missing; a missing tool fails a test. Each user of a test has a home, a store and a docker
// configuration of its own. Everything listens on loopback.
//
// The package is a module of its own, so that building ingot needs none of these dependencies. ingot itself is built
// from its own module, with the versions pinned there.
package interop
