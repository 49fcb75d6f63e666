// Package patience decides how long a transfer waits: for a server that is silent or slow, and for one that limits
// requests.
//
// Contract:
//
//   - A [Watch] ends a request over which too little moves, judged by bytes. What a [Host] was seen to need, and each
//     stall of one operation, a [Patience], makes it wait longer, up to [Most]. A fixed timeout stays as it is.
//   - A [Gate] is of one host: while requests are limited, all transfers wait at it, and it is closed once however many
//     of them meet the limit.
//   - Waiting at a gate is no stall: it pauses the watch of the request's context.
//   - Everything is safe for concurrent use, except that a Watch belongs to one request.
package patience
