// Package wire has what all APIs share of HTTP: bounded bodies, JSON, streams of lines and events, and errors.
//
// Contract:
//   - An error before the first byte of a response has an HTTP status and one line of JSON, in the form of the API that
//     the path belongs to: see [Dialects]. After that it is the last message of the stream.
//   - A [Stream] sends keep-alives, so that its client never waits long for a byte.
//   - [ErrorOf] is where errors of other packages get their HTTP status.
//   - Bodies, the values decoded from them, and responses count in the account of their request before they take
//     memory, until the request has ended: see package budget.
//   - Text from outside that a message quotes is clipped: see [Clip]. Whatever is left, [Line] bounds every message.
package wire
