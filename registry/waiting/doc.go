// Package waiting decides how long a transfer waits: for a server that is silent or slow, and for one that limits
// requests.
//
// Contract:
//
//   - A [Watch] ends a request over which too little moves, judged by bytes. It waits longer for a [Host] that has been
//     slow, and after each stall of an operation ([Timeouts]), up to [Most]. A timeout that the user set is fixed.
//   - Each host has a [Gate]: while the host limits requests, all transfers wait at it. It is closed once, however many
//     of them meet the limit.
//   - Waiting at a gate is no stall: it pauses the watch of the request's context.
//   - Everything is safe for concurrent use, except that a Watch belongs to one request.
package waiting
