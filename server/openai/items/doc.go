// Package items reads the input of OpenAI's Responses API, a list of items, as the messages of a conversation.
//
// Contract:
//   - A conversation that another model or server began can go on: an item holds text or a call for the model, or it is
//     skipped. Calls of tools that OpenAI runs become a call and its result. What is encrypted is skipped unless this
//     server wrote it. An item of an unknown type is skipped unless it is a message, a call or the result of a call.
//   - The order of the items is kept. Reasoning belongs to the message or call of the model that follows it; calls in a
//     row belong to one message.
//   - Errors are those of package wire and name the item.
package items
