// Package tools translates between the tools of OpenAI's API and functions, which are all that models are offered:
// functions in namespaces, custom tools (a free text instead of arguments) and the client's own tool search.
//
// Contract:
//   - A function without a namespace keeps its name. Other tools get a name that no other tool of the request has, of
//     at most 64 letters, digits, hyphens and underscores. The same request gets the same names.
//   - A call of the model is returned as the kind, the namespace and the name that the client knows, whatever the model
//     was offered. A call of a tool that was not offered is returned as the model wrote it.
//   - Tools that OpenAI runs itself are dropped from requests of the Responses API, where clients always send some, and
//     refused in chat completions.
//   - Errors are those of package wire and name the field.
package tools
